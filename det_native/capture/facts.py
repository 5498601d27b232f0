"""Names and sizes of live values, told by their type alone: nothing is imported, copied or called."""

from __future__ import annotations

from typing import Any


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
