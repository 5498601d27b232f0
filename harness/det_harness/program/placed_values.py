"""Paths in values that travelled, as they are here."""

from __future__ import annotations

import argparse
import pathlib
import types
from collections.abc import Callable
from typing import Any

from det_native.heap.ownership import is_users_module

#: Parts that are looked at, of a value.
_MOST = 200_000
_NAMESPACES = (types.SimpleNamespace, argparse.Namespace)


class PlacedValue:
    """Changes the texts and paths in a value: in containers, in settings, and in objects of the user's classes.

    Parameters
    ----------
    place : callable
        Gives the path that is used instead of one.
    """

    def __init__(self, place: Callable[[str], str]) -> None:
        self._place = place
        self._room = _MOST
        self._seen: dict[int, Any] = {}  # kept, so that no identity is given away twice

    def of(self, value: Any) -> Any:
        """Return a value with other paths: the same object, where it can be changed."""
        self._room -= 1
        if self._room < 0:
            return value
        kind = type(value)
        if kind is str:
            return self._place(value) if value.startswith(("/", "~/")) else value
        if isinstance(value, pathlib.Path):
            placed = self._place(str(value))
            return value if placed == str(value) else kind(placed)
        if kind is tuple:
            parts = tuple(map(self.of, value))
            return value if all(map(_is_same, parts, value)) else parts
        if id(value) not in self._seen:
            self._seen[id(value)] = value
            self._change(value)
        return value

    def _change(self, value: Any) -> None:
        kind = type(value)
        if kind is list:
            for index, part in enumerate(value):
                if (placed := self.of(part)) is not part:
                    value[index] = placed
        elif kind is set:
            parts = [*map(self.of, value)]
            if not all(map(_is_same, parts, value)):
                value.clear()
                value.update(parts)
        elif isinstance(value, dict) and (kind is dict or hasattr(kind, "move_to_end")):
            self._change_items(value)
        elif isinstance(value, _NAMESPACES) or is_users_module(kind.__module__):
            held = getattr(value, "__dict__", None)
            if isinstance(held, dict):
                self._change_items(held)

    def _change_items(self, items: dict[Any, Any]) -> None:
        for key, part in list(items.items()):
            if (placed := self.of(part)) is not part:
                items[key] = placed


def _is_same(one: Any, other: Any) -> bool:
    return one is other
