"""Pillow: images."""

from __future__ import annotations

from typing import Any

from det_native.heap.edges import BY_NAME, UNSEEN, ReadMemory, State
from det_native.heap.kinds.instances import PickledKind

_MOST = 4 << 20  # pixels of an image that are copied for a look


class ImageKind(PickledKind):
    """An image. A look does not read one from its file."""

    def glance(self, obj: Any, read: ReadMemory) -> State:
        held = vars(obj)
        if held.get("_im", held.get("im")) is None or obj.width * obj.height > _MOST:
            return (obj.info,), UNSEEN
        return (obj.info,), (obj.mode, obj.size, str(obj.getpalette()), read(memoryview(obj.tobytes())))


BY_NAME["PIL.Image.Image"] = ImageKind
