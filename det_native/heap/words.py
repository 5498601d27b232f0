"""Values in a few words. No code of a user's class is called: what a value says of itself, a library's class says."""

from __future__ import annotations

import itertools
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
        kind = value.dtype
        return f"{_sizes(value.shape)} {getattr(kind, 'name', str(kind)).removeprefix('torch.')}{_mean(value)}"
    if is_offered(cls, "shape", "columns"):
        return f"table of {value.shape[0]:,} rows and {value.shape[1]} columns"
    if _base_of(cls):
        inner = [describe(one) for one in itertools.islice(_members(value), 3)]
        return in_short(value) + (f": {'; '.join(inner)}" if inner else "")
    data = attributes_of(value).get("dataset", value)
    return in_short(data) + _inner(data)


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


def _sizes(shape: Any) -> str:
    try:
        return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
    except ValueError:  # TensorFlow's shape of a tensor that may have any
        return "(...)"


def _mean(value: Any) -> str:
    import numpy

    try:
        if is_offered(type(value), "is_complex", "detach"):
            value = value.detach().cpu()
            value = (value if value.is_complex() else value.float()).clone()  # of which nobody resizes the memory
        # pandas' own method is another one.
        has_numpy = is_offered(type(value), "numpy") and not is_offered(type(value), "to_numpy")
        few = numpy.asarray(value.numpy() if has_numpy else value).reshape(-1)
        few = few[:: max(1, few.size // 1_000_000)]
        with numpy.errstate(all="ignore"):
            return f", mean {few.mean(dtype=float):.6g}" if few.size and few.dtype.kind in "fiub" else ""
    except Exception:  # noqa: BLE001 (a mean is only for the reader)
        return ""


def _inner(data: Any) -> str:
    """Return what an object holds, in a few words: arrays, else containers."""
    if is_offered(type(data), "element_spec"):  # of TensorFlow's Datasets: what they hold besides is their own
        return f" ({describe(data.element_spec)})"
    held = [*attributes_of(data).values()]
    parts = [part for value in held for part in (value if type(value) in (tuple, list) else (value,))[:4]]
    found = [describe(array) for array in itertools.islice(filter(_is_array, parts), 3)]
    found = found or [in_short(value) for value in held if _base_of(type(value))][:3]
    return f" ({'; '.join(found)})" if found else ""
