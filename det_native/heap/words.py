"""Values in a few words. No code of a user's class is called: what a value says of itself, a library's class says."""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Iterable
from typing import Any

from det_native.heap.edges import kind_of
from det_native.heap.kinds.instances import attributes_of
from det_native.heap.ownership import is_offered


def describe(value: Any) -> str:
    """Return a value in a few words: kind, shape, mean."""
    cls = type(value)
    if value is None or (issubclass(cls, bool | int | float | str) and is_offered(cls, "__repr__")):
        return f"{value!r:.80}"
    if issubclass(cls, type | types.ModuleType):
        return f"{'class' if issubclass(cls, type) else 'module'} {cls.__getattribute__(value, '__name__')}"
    if _is_array(value):
<<<<<<< HEAD
        return _array(value)
    if is_offered(cls, "shape", "columns"):
        return f"table of {value.shape[0]:,} rows and {value.shape[1]} columns{_mean_of_table(value)}"
    if _base_of(cls):
        inner = [describe(one) for one in itertools.islice(_members(value), 3)]
        return in_short(value) + (f": {'; '.join(inner)}" if inner else "")
    data = attributes_of(value).get("dataset", value)
    return in_short(data) + _inner(data)
=======
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
>>>>>>> main


def in_short(value: Any) -> str:
    """Return the kind of a value, and its size."""
    cls = type(value)
    base = _base_of(cls)
    if base is None and kind_of(value).is_whole and is_offered(cls, "__len__"):
        base = cls
    try:
        return f"{cls.__name__} of {base.__len__(value):,}" if base else cls.__name__
    except Exception:  # noqa: BLE001 (a Dataset of TensorFlow that may have any length)
        return cls.__name__


def _base_of(cls: type) -> Any:
    return next((base for base in (list, tuple, set, frozenset, dict) if issubclass(cls, base)), None)


def _members(container: Any) -> Iterable[Any]:
    base = _base_of(type(container))
    return base.values(container) if base is dict else base.__iter__(container)


def _is_array(value: Any) -> bool:
    """Whether a library's class gives a value a shape and a type of elements."""
    return is_offered(type(value), "shape", "dtype") and not callable(value.shape) and value.dtype is not None


def _array(value: Any) -> str:
    torch = sys.modules.get("torch")
    kind = value.dtype
    try:
        if torch is not None and issubclass(type(value), torch.Tensor):
            real = value.detach().cpu()
            mean = "" if real.is_complex() else _mean(real.float().numpy())
        elif is_offered(type(value), "numpy") and not is_offered(type(value), "to_numpy"):
            mean = _mean(value.numpy())
        else:
            mean = _mean(value)
    except Exception:  # noqa: BLE001 (a mean is only for the reader)
        mean = ""
    return f"{_sizes(value.shape)} {getattr(kind, 'name', str(kind)).removeprefix('torch.')}{mean}"


def _sizes(shape: Any) -> str:
    try:
        return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
    except ValueError:  # TensorFlow's shape of a tensor that may have any
        return "(...)"


def _mean(array: Any) -> str:
    import numpy

    few = numpy.asarray(array).reshape(-1)
    few = few[:: max(1, few.size // 1_000_000)]
    with numpy.errstate(all="ignore"):
        return f", mean {few.mean(dtype=float):.6g}" if few.size and few.dtype.kind in "fiub" else ""


<<<<<<< HEAD
def _mean_of_table(table: Any) -> str:
    if not is_offered(type(table), "iloc", "mean", "_constructor"):
        return ""
    try:
        numbers = table.iloc[:100_000].mean(numeric_only=True)
        return f", means {', '.join(f'{one:.5g}' for one in list(numbers)[:3])}" if len(numbers) else ""
    except Exception:  # noqa: BLE001 (a mean is only for the reader)
        return ""


def _inner(data: Any) -> str:
    """Return what an object holds, in a few words: arrays, else containers."""
    if is_offered(type(data), "element_spec"):  # of TensorFlow's Datasets: what they hold besides is their own
        return f" ({describe(data.element_spec)})"
    held = attributes_of(data)
    rows = (value if type(value) in (tuple, list) else (value,) for value in held.values())
    parts = [one for row in rows for one in row[:4]]
    found = [describe(one) for one in itertools.islice(filter(_is_array, parts), 3)]
    numbers = held.get("indices")
    if not found and type(numbers) in (list, tuple) and numbers:
        found = [f"rows {', '.join(f'{one}' for one in numbers[:4] if type(one) is int)}, ..."]
    if not found:
        found = [in_short(one) for one in held.values() if _base_of(type(one))][:3]
    return f" ({'; '.join(found)})" if found else ""
=======
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
>>>>>>> main
