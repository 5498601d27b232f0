"""Pillow: images."""

from __future__ import annotations

import sys
from typing import Any

from det_native.inspection.adapter import Content, Data, Library, Walk

_MOST = 4 << 20  # bytes of an image that are copied for a look


class _Image(Data):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("image", value.mode, str(value.size))
        reader.numbers(sys.modules["numpy"].asarray(value))
        reader.go((value.getpalette(),) if value.mode in ("P", "PA") else ())
        return True

    def children(self, value: Any, walk: Walk) -> bool:
        held = vars(value)
        walk.go((value.info,))
        size = value.width * value.height * len(value.getbands())
        if held.get("_im", held.get("im")) is None or size > _MOST:  # not read from its file yet, or large
            walk.say(value.mode, value.size)
            walk.cannot_see()
        else:
            walk.say(value.mode, value.size, str(value.getpalette()))
            walk.raw(memoryview(value.tobytes()))
        return True


LIBRARY = Library({"PIL.Image.Image": _Image()})
