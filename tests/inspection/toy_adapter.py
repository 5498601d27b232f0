"""An adapter as a test adds it: all that is to be known of a library that nobody knows."""

from __future__ import annotations

from typing import Any

from det_native.inspection.adapter import Content, Data, Encoded, Library, Plain, Walk


class _Grid(Data):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("grid", value.unit)
        reader.numbers(value.read())
        return True

    def children(self, value: Any, walk: Walk) -> bool:
        walk.say(value.unit)
        walk.numbers(value.read())
        return True

    def size(self, value: Any) -> int:
        return int(value.read().nbytes)

    def codec(self, value: Any) -> Encoded:
        return Encoded("npy", value.read().tobytes(), "a grid")


class _Dice(Plain):
    never_sent = "dice"

    def content(self, value: Any, reader: Content) -> bool:
        reader.say(value.rolls())
        return True


LIBRARY = Library({"toy.Grid": _Grid(), "toy.Dice": _Dice()})
