"""Names and sizes of live values, told by their type alone: nothing is imported, copied or called."""

from __future__ import annotations

from typing import Any

from det_native.inspection.registry import adapter_of


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
    adapter = adapter_of(type(value))
    try:
        if issubclass(type(value), bytes | bytearray | str):
            return len(value)
        return None if adapter is None else adapter.size(value)
    except Exception:  # noqa: BLE001 (a class of the user's may raise whatever is asked of it)
        return None


def human_size(size: float) -> str:
    """Return ``200.0 MB`` for 200 000 000 bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("unreachable")
