"""Pillow: images."""

from __future__ import annotations

import sys
from typing import Any

from det_native.inspection.adapter import Content, Data, Library

_MOST = 4 << 20  # bytes of an image that are copied for a look


class _Image(Data):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("image", value.mode, str(value.size))
        reader.numbers(sys.modules["numpy"].asarray(value))
        reader.go((value.getpalette(),) if value.mode in ("P", "PA") else ())
        return True


LIBRARY = Library({"PIL.Image.Image": _Image()})
