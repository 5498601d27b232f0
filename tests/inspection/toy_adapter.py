"""An adapter as a test adds it: all that is to be known of a library that nobody knows."""

from __future__ import annotations

from typing import Any

from det_native.inspection.adapter import Content, Data, Library, Plain, Stream, Walk


class _Grid(Data):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("grid", value.unit)
        reader.numbers(value.read())
        return True

    def children(self, value: Any, walk: Walk) -> bool:
        walk.say(value.unit)
        walk.numbers(value.read())
        return True


class _Dice(Plain):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say(value.rolls())
        return True


def _read() -> int:
    import sys

    return int(sys.modules["toy"].rolled)


def _put_back(states: Any) -> None:
    import sys

    sys.modules["toy"].rolled = states["toy"]  # type: ignore[attr-defined]


LIBRARY = Library(
    {"toy.Grid": _Grid(), "toy.Dice": _Dice()},
    streams=(Stream("toy", _read, _put_back, lambda state: {"toy": state}, begins="toy"),),
)
