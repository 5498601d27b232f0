"""Images of Pillow, whose content is outside of Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from det_native.heap.digests import digest
from det_native.heap.edges import BY_NAME, UNSEEN, ReadMemory, State
from det_native.heap.kinds.instances import AttributesKind

_MOST = 4 << 20  # pixels of an image that are copied for a look


class ImageKind(AttributesKind):
    """An image; one that is not read from its file yet is not read."""

    is_whole = True

    def described(self, obj: Any) -> Iterable[str]:
        held = vars(obj)
        if held.get("_im", held.get("im")) is None:
            return ()
        return (digest(obj.tobytes()), str(obj.getpalette()) if obj.mode in ("P", "PA") else "")

    def glance(self, obj: Any, read: ReadMemory) -> State:
        held = vars(obj)
        if held.get("_im", held.get("im")) is None or obj.width * obj.height > _MOST:
            return (obj.info,), UNSEEN
        return (obj.info,), (obj.mode, obj.size, str(obj.getpalette()), read(memoryview(obj.tobytes())))

    def reduced_alone(self, obj: Any) -> Any:
        return self.reduce(obj)


BY_NAME["PIL.Image.Image"] = ImageKind()
