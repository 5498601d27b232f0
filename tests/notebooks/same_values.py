"""Values of a notebook after its last cell: written by the kernel, compared between the ways in which it was run."""

from __future__ import annotations

import ast
import math
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

#: The file in the notebook's folder that has the values.
FILE = "same_values.pickle"


def expressions(text: str) -> list[str]:
    """Return the expressions of a text that has them between commas."""
    items = ast.parse(f"[{text}]", mode="eval").body
    assert isinstance(items, ast.List)
    return [ast.unparse(item) for item in items.elts]


def write_values(**values: Any) -> None:
    """Write values into the working directory, in the kernel."""
    Path(FILE).write_bytes(pickle.dumps({name: plain_value(value) for name, value in values.items()}))


def read_values(folder: Path) -> dict[str, Any]:
    """Read what a kernel in this folder has written."""
    values: dict[str, Any] = pickle.loads((folder / FILE).read_bytes())
    return values


def plain_value(value: Any) -> Any:
    """Return a value as numbers, texts and arrays in lists and dictionaries: a copy, with which no model can change.

    Examples
    --------
    >>> plain_value({"loss": (0.5, np.float32(0.25))})
    {'loss': [0.5, 0.25]}
    """
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        return value
    if isinstance(value, np.ndarray):
        return value.copy() if value.dtype != object else plain_value(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(item) for item in value]
    if hasattr(value, "detach"):  # a tensor of PyTorch
        return value.detach().cpu().numpy().copy()
    if hasattr(value, "to_dict"):  # a table or a column of pandas
        return plain_value(value.to_dict("list") if hasattr(value, "columns") else value.to_dict())
    if hasattr(value, "numpy"):  # a tensor or a variable of TensorFlow or Keras
        return np.array(value.numpy())
    raise TypeError(f"cannot compare a {type(value).__qualname__}: name its numbers")


def difference(first: Any, second: Any, within: float = 0.0, place: str = "") -> str:
    """Return the first place where two plain values differ, with what both have there; empty where they are equal.

    Parameters
    ----------
    first, second : Any
        As `plain_value` returns them. Their types, shapes and the order of their keys count, too.
    within : float
        By how much numbers may differ, of their size or absolutely; 0 if not by their last bit.
    place : str
        Where the two stand in what is compared.
    """
    if isinstance(first, dict) and isinstance(second, dict):
        if list(first) != list(second):
            return f"{place} keys: {list(first)} and {list(second)}"
        items = [(f"{place}[{key!r}]", first[key], second[key]) for key in first]
        return next(filter(None, (difference(a, b, within, at) for at, a, b in items)), "")
    if isinstance(first, list) and isinstance(second, list):
        if len(first) != len(second):
            return f"{place} length: {len(first)} and {len(second)}"
        pairs = enumerate(zip(first, second, strict=True))
        return next(filter(None, (difference(a, b, within, f"{place}[{at}]") for at, (a, b) in pairs)), "")
    if type(first) is not type(second):
        return f"{place}: {type(first).__name__} {first} and {type(second).__name__} {second}"
    if isinstance(first, np.ndarray):
        return _array_difference(first, second, within, place)
    return "" if _equal(first, second, within) else f"{place}: {first!r} and {second!r}"


def _array_difference(first: Any, second: Any, within: float, place: str) -> str:
    if (first.dtype, first.shape) != (second.dtype, second.shape):
        return f"{place}: {first.dtype}{list(first.shape)} and {second.dtype}{list(second.shape)}"
    if first.dtype.kind not in "fc":
        unequal = first != second
    elif within:
        unequal = ~np.isclose(first, second, rtol=within, atol=within, equal_nan=True)
    else:
        unequal = (first != second) & ~(np.isnan(first) & np.isnan(second))
    if not np.any(unequal):
        return ""
    at = tuple(int(index[0]) for index in np.nonzero(np.atleast_1d(unequal)))
    values = [np.atleast_1d(array)[at].item() for array in (first, second)]
    return f"{place}[{', '.join(map(str, at))}]: {values[0]!r} and {values[1]!r} ({np.sum(unequal)} of {first.size})"


def _equal(first: Any, second: Any, within: float) -> bool:
    if not isinstance(first, (float, np.floating)):
        return bool(first == second)
    if math.isnan(first):
        return math.isnan(second)
    return bool(first == second) or (within > 0 and math.isclose(first, second, rel_tol=within, abs_tol=within))
