"""Values taken out of a nesting of dictionaries and lists, and put back, by the path of their place."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

TAKEN = object()


def split(value: Any, kept: Callable[[Any], Any], taken: dict[str, Any], path: str = "") -> Any:
    """Return `value` with the leaves that `kept` does not keep moved to `taken`, by their paths.

    Parameters
    ----------
    value
        Dictionaries with keys that are text or whole numbers, lists and tuples are entered; all else is a leaf.
    kept : callable
        Returns what stays in the place of a leaf, or ``TAKEN``.
    taken : dict
        Is added to.
    """
    kind = type(value)
    if kind in (dict, OrderedDict) and all(type(key) in (str, int) for key in value):
        parts = {key: split(part, kept, taken, f"{path}\0{_step(key)}") for key, part in value.items()}
        if all(parts[key] is value[key] for key in value):
            return value  # itself: a module's state carries the versions of its layers as an attribute
        rebuilt = copy.copy(value)
        rebuilt.update(parts)
        return rebuilt
    if kind in (list, tuple):
        items = [split(part, kept, taken, f"{path}\0{_step(index)}") for index, part in enumerate(value)]
        # A tuple becomes a list only if something in it has to be put back by place.
        moved = any(key.startswith(f"{path}\0") for key in taken)
        return items if kind is list or moved else tuple(items)
    found = kept(value)
    if found is not TAKEN:
        return found
    taken[path] = value
    return None


def put(state: Any, path: str, value: Any) -> None:
    """Put a value back into its place.

    Raises
    ------
    KeyError, IndexError, TypeError
        If the nesting has no such place.
    """
    *steps, last = (int(step[1:]) if step[0] == "i" else step[1:] for step in path.split("\0")[1:])
    for step in steps:
        state = state[step]
    state[last] = value


def _step(key: str | int) -> str:
    return f"i{key}" if isinstance(key, int) else f"s{key}"
