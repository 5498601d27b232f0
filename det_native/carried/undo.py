"""Takes back, in place, what has changed in objects since a moment."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

from det_native.carried import states
from det_native.carried.table import Part
from det_native.inspection.registry import adapter_of

#: Bytes of an array, or of an object that is only known as a whole, of which a copy is kept.
_SMALL = 1 << 20


class Undo:
    """Keeps what objects hold now. Large arrays stay as they are then.

    Parameters
    ----------
    parts : iterable of Part
        Of a table that has just been made.
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts = [part for part in parts if part.whole or not part.fixed]
        self._copies = {part: _copy_of(part) for part in self._parts}

    def undo(self) -> None:
        """Give them back what they held."""
        for part in self._parts:
            copy = self._copies[part]
            if part.whole:
                _put_whole(part.value, copy)
                continue
            now = states.state_of(part.value)
            if "numbers" in now:
                if copy is not None and not states.is_same(part.before, now):
                    states.put(part.value, {"numbers": copy})
            elif not states.is_same(part.before, now):
                states.put(part.value, _content(part.before, now))


def _copy_of(part: Part) -> Any:
    value = part.value
    if not part.whole:
        small = "numbers" in part.before and getattr(value, "nbytes", _SMALL + 1) <= _SMALL
        return value.copy() if small and hasattr(value, "flags") else None
    adapter = adapter_of(type(value))
    state = None if adapter is None else adapter.state(value)
    if state is None and hasattr(value, "__setstate__"):
        reduced = value.__reduce__()
        state = reduced[2] if isinstance(reduced, tuple) and len(reduced) > 2 else None
    return None if state is None else pickle.dumps(state)


def _put_whole(value: Any, copy: Any) -> None:
    if copy is None:
        return
    state, adapter = pickle.loads(copy), adapter_of(type(value))
    if (adapter is None or not adapter.put_state(value, state)) and hasattr(value, "__setstate__"):
        value.__setstate__(state)


def _content(before: states.State, now: states.State) -> states.State:
    """Return what gives an object that has the state `now` the one that it had before."""
    content: states.State = {}
    for aspect, held in before.items():
        if aspect in ("attributes", "content"):
            content[aspect] = (dict(held), [name for name in now.get(aspect, {}) if name not in held])
        else:
            content[aspect] = [*held.items()] if isinstance(held, dict) else held
    return content
