"""Values in a few words."""

from __future__ import annotations

import itertools
import sys
import types
from typing import Any


def describe(value: Any) -> str:
    """Return a value in a few words: kind, shape, mean."""
    if value is None or isinstance(value, bool | int | float | str):
        return f"{value!r:.80}"
    if isinstance(value, type | types.ModuleType):
        return f"{'class' if isinstance(value, type) else 'module'} {value.__name__}"
    shape = getattr(value, "shape", None)
    if _is_array(value):
        kind = value.dtype
        return f"{_sizes(shape)} {getattr(kind, 'name', str(kind)).removeprefix('torch.')}{_mean(value)}"
    if shape is not None and hasattr(value, "columns"):
        return f"table of {shape[0]:,} rows and {shape[1]} columns"
    if isinstance(value, list | tuple | set | frozenset | dict):
        inner = [describe(one) for one in itertools.islice(value.values() if isinstance(value, dict) else value, 3)]
        return f"{type(value).__name__} of {len(value):,}" + (f": {'; '.join(inner)}" if inner else "")
    data = getattr(value, "dataset", value)
    size = _size(data)
    return type(data).__name__ + (f" of {size:,}" if size is not None else "") + _inner(data)


def in_short(value: Any) -> str:
    """Return the kind of a value, and its size."""
    size = _size(value) if isinstance(value, list | tuple | set | frozenset | dict) else None
    return type(value).__name__ + (f" of {size:,}" if size is not None else "")


def _is_array(value: Any) -> bool:
    """Whether a value has a shape and a type of elements; `numpy` itself, and its classes, have these names, too."""
    if isinstance(value, type | types.ModuleType):
        return False
    shape = getattr(value, "shape", None)
    return shape is not None and not callable(shape) and getattr(value, "dtype", None) is not None


def _sizes(shape: Any) -> str:
    try:
        return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
    except ValueError:  # TensorFlow's shape of a tensor that may have any
        return "(...)"


def _mean(value: Any) -> str:
    numpy = sys.modules.get("numpy")
    try:
        array = value.detach().cpu().float().numpy() if hasattr(value, "detach") else value
        array = array.numpy() if hasattr(array, "numpy") and not hasattr(array, "to_numpy") else array
        few = numpy.asarray(array).reshape(-1)  # type: ignore[union-attr]
        few = few[:: max(1, few.size // 1_000_000)]
        with numpy.errstate(all="ignore"):  # type: ignore[union-attr]
            return f", mean {few.mean(dtype=float):.6g}" if few.size and few.dtype.kind in "fiub" else ""
    except Exception:  # noqa: BLE001 (a mean is only for the reader)
        return ""


def _size(value: Any) -> int | None:
    try:
        return len(value)
    except Exception:  # noqa: BLE001 (a user's own __len__)
        return None


def _inner(data: Any) -> str:
    """Return the arrays that an object holds, in a few words."""
    elements = getattr(data, "element_spec", None)  # of TensorFlow's Datasets: what they hold besides is their own
    if elements is not None and not callable(elements):
        return f" ({describe(elements)})"
    held = vars(data) if isinstance(getattr(data, "__dict__", None), dict) else {}
    parts = [part for value in held.values() for part in (value if isinstance(value, tuple | list) else (value,))[:4]]
    arrays = [describe(array) for array in itertools.islice(filter(_is_array, parts), 3)]
    return f" ({'; '.join(arrays)})" if arrays else ""
