"""Kinds of live values, told by their type alone: nothing is imported, copied or called."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import functools
import os
import pathlib
import re
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

from det_native.capture.callables import keeps_state

_IMMUTABLE = (
    *(int, float, complex, str, bytes, bool, type(None), type(...), range, slice, enum.Enum, decimal.Decimal),
    *(fractions.Fraction, datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, pathlib.PurePath),
    *(re.Pattern, os.PathLike),
)
_CALLABLE = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_NO_HOLDERS = (*_IMMUTABLE, *_CALLABLE, types.ModuleType)
_CONTAINERS: dict[type, str] = {
    list: "list",
    deque: "list",
    dict: "dict",
    OrderedDict: "dict",
    defaultdict: "dict",
    Counter: "dict",
    set: "set",
}
_LOOKED_AT = 200
_NESTED = 3
_ITERATING_MODULES = frozenset({"builtins", "itertools", "_csv", "_io"})


def type_names(value: object) -> list[str]:
    """Return ``module.Name`` of the value's type and its bases."""
    return [f"{base.__module__}.{base.__qualname__}" for base in type(value).__mro__]


def type_name(value: object) -> str:
    """Return the name of the value's type as users know it: ``numpy.ndarray``, ``threading.Lock``."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return _KNOWN_AS.get(name, name.removeprefix("builtins.").removeprefix("__main__."))


_KNOWN_AS = {
    "_thread.lock": "threading.Lock",
    "_thread.RLock": "threading.RLock",
    "_io.TextIOWrapper": "an open file",
    "_io.BufferedReader": "an open file",
    "_io.BufferedWriter": "an open file",
    "_io.BufferedRandom": "an open file",
    "_io.FileIO": "an open file",
    "builtins.generator": "a generator",
    "builtins.coroutine": "a coroutine",
    "builtins.async_generator": "a generator",
}


def kind_of(value: Any) -> str | None:
    """Return what kind of thing a value is, as far as that says how it can change; None if nothing is known.

    ``immutable``, ``callable``, ``callable with state`` (a call may differ from the one before), ``module``, ``table``
    (pandas), ``array`` (numpy, owning its memory), ``array view``, ``tensor`` (torch), ``examples`` (torch's datasets),
    ``loader`` (torch's), ``dataset`` (tf.data, whose methods return new ones), ``iterator`` (Python's own, used up by
    being looked at), ``list``, ``dict``, ``growing dict`` (a defaultdict), ``set``, or ``data list`` and so on if
    nothing in it can hold code.
    """
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, _CALLABLE):
        return "callable with state" if keeps_state(value, _CONTAINERS) else "callable"
    if isinstance(value, _IMMUTABLE):
        return "immutable"
    if type(value) is functools.partial and kind_of((*value.args, *value.keywords.values())) == "immutable":
        return kind_of(value.func)
    if isinstance(value, tuple | frozenset):
        return "immutable" if all(kind_of(element) == "immutable" for element in list(value)[:_LOOKED_AT]) else None
    if type(value) in _CONTAINERS:
        kind = _CONTAINERS[type(value)]
        if isinstance(value, defaultdict) and value.default_factory is not None:
            kind = "growing dict"
        return f"data {kind}" if _is_data(value, 0) else kind
    if type(value).__module__ in _ITERATING_MODULES and isinstance(value, Iterator):
        return "iterator"
    return _library_kind(value)


def is_shallow(value: object) -> bool:
    """Whether a container keeps nothing that can change, as far as a look at its first elements shows."""
    if type(value) not in _CONTAINERS:
        return False
    elements = list(islice(value.values() if isinstance(value, dict) else value, _LOOKED_AT))  # type: ignore[call-overload]
    return all(kind_of(element) in {"immutable", "callable", "module"} for element in elements)


def is_foreign(value: Any) -> bool:
    """Whether a value is of no class of the notebook, nor such a class or something in the place of a function."""
    return not callable(value) and not any(base.__module__ == "__main__" for base in type(value).__mro__)


def own_classes(value: Any) -> frozenset[str]:
    """Return the names of the notebook's classes of which the value is, or keeps, instances, as far as a look shows."""
    found: set[str] = set()
    waiting, seen = [(value, 0)], {id(value)}
    while waiting and len(seen) < _LOOKED_AT:
        one, depth = waiting.pop()
        found.update(base.__qualname__ for base in type(one).__mro__ if base.__module__ == "__main__")
        if depth == _NESTED:
            continue
        for part in _kept_in(one):
            if id(part) not in seen and not isinstance(part, _NO_HOLDERS):
                seen.add(id(part))
                waiting.append((part, depth + 1))
    return frozenset(found)


def _kept_in(value: Any) -> list[Any]:
    kept = [*vars(value).values()] if type(getattr(value, "__dict__", None)) is dict else []
    if isinstance(value, dict):
        kept.extend(islice(dict.values(value), _LOOKED_AT))
    elif isinstance(value, list | tuple | set | deque):
        kept.extend(islice(value, _LOOKED_AT))
    return kept


def _library_kind(value: Any) -> str | None:
    names = type_names(value)
    if "numpy.ndarray" in names:
        return "array" if value.base is None else "array view"
    if "numpy.generic" in names:
        return "immutable"
    if any(name.startswith("pandas.") and name.rsplit(".", 1)[1] in {"DataFrame", "Series", "Index"} for name in names):
        return "table"
    if "torch.Tensor" in names:
        return "tensor"
    if any(name.startswith("torch.utils.data.") and name.endswith("DataLoaderIter") for name in names):
        return "iterator"
    if "torch.utils.data.dataloader.DataLoader" in names:
        return "loader"
    if any(name.startswith("torch.utils.data.") for name in names):
        return "examples"
    if any(name.startswith("tensorflow.python.data.") and name.endswith("DatasetV2") for name in names):
        return "dataset"
    if any(name.startswith("tensorflow.python.framework.") and name.endswith("Tensor") for name in names):
        return None if "tensorflow.python.ops.variables.Variable" in names else "immutable"
    return None


def _is_data(value: Any, depth: int) -> bool:
    """Whether a container holds plain data only, as far as a look at its first elements shows."""
    if type(value) not in _CONTAINERS and not isinstance(value, tuple):
        return kind_of(value) in {"immutable", "table", "array", "array view", "tensor"}
    if depth > 4 or len(value) > 100_000:
        return False
    elements = [*value.keys(), *value.values()] if isinstance(value, dict) else list(value)
    if isinstance(value, defaultdict) and not isinstance(value.default_factory, type | None):
        return False
    return all(_is_data(element, depth + 1) for element in elements[:_LOOKED_AT]) and len(elements) <= _LOOKED_AT * 50


def size_of(value: Any) -> int | None:
    """Return the bytes that a value takes if its type tells at once (arrays, tensors, tables, text), else None."""
    names = type_names(value)
    if "numpy.ndarray" in names:
        return int(value.nbytes)
    if "torch.Tensor" in names:
        return int(value.numel() * value.element_size())
    if any(name.startswith("pandas.") for name in names) and hasattr(value, "memory_usage"):
        usage = value.memory_usage(deep=False)
        return int(usage.sum()) if hasattr(usage, "sum") else int(usage)
    if any(name.startswith("tensorflow.python.framework.") and name.endswith("EagerTensor") for name in names):
        return int(value.shape.num_elements() * value.dtype.size)
    if isinstance(value, bytes | bytearray | str):
        return len(value)
    return None


def human_size(size: float) -> str:
    """Return ``200.0 MB`` for 200 000 000 bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("unreachable")
