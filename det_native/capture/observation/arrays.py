"""How a look reads arrays: small ones whole, of large ones samples of the whole length."""

from __future__ import annotations

import mmap
import sys
import zlib
from typing import Any, Protocol

from det_native.inspection.adapter import Walk
from det_native.inspection.registry import adapter_of

_WHOLE = 1 << 20  # bytes of an array that are read whole in each look; of a larger one, so many stretches
_STRETCHES = 16
_STRETCH = 1 << 16


class BoundedWalk(Walk, Protocol):
    """A walk that ends somewhere: after so many objects, and so many bytes of large arrays that are read whole."""

    left: int
    room: int
    full: int | None


def walk_raw(walk: BoundedWalk, content: Any) -> None:
    """Take a contiguous buffer of bytes into the fingerprint, a large one by samples.

    Where there is room for it, a large one is read whole besides.
    """
    size = content.nbytes
    walk.left -= min(size, _WHOLE) >> 13
    if size <= _WHOLE:
        walk.say(size, zlib.crc32(content))
        return
    if walk.full is not None:
        walk.full = hash((walk.full, zlib.crc32(content))) if size <= walk.room else None
        walk.room -= size if size <= walk.room else 0
    step = (size - _STRETCH) // (_STRETCHES - 1)
    walk.say(size, *(zlib.crc32(content[start : start + _STRETCH]) for start in range(0, size - _STRETCH + 1, step)))


def whole_with(full: int | None, own: int | None) -> int | None:
    """Return the number for the large arrays of several objects, None if some were not read whole."""
    return None if full is None or own is None else hash((full, own)) if own else full


def walk_array(walk: BoundedWalk, value: Any) -> None:
    """Look at an array of numpy's, or a number of one: its numbers, and what they lie in."""
    numpy = sys.modules["numpy"]
    plain = numpy.ndarray
    if not isinstance(value, plain):
        walk.say(value.dtype.str, value.tobytes())
        return
    walk.say(value.shape, value.strides, str(value.dtype), value.flags.writeable)
    root, base = value, value.base
    while isinstance(base, plain):
        walk.changeable.add(id(base))
        root, base = base, base.base
    if root.nbytes > _WHOLE:  # a tensor may have the same numbers
        owner = adapter_of(type(base))
        address = None if owner is None else owner.address(base)
        walk.changeable.add(root.__array_interface__["data"][0] if address is None else address)
    base = base.obj if type(base) is memoryview else base
    if type(base) is mmap.mmap:  # to read it after its file was cut short is the end of the kernel
        walk.cannot_see()
        return
    if base is not None:
        walk.changeable.add(id(base))
    if type(value) is not plain:
        walk.cannot_see()  # a masked array keeps more than its numbers
        walk.go([*value.__dict__, *value.__dict__.values()] if getattr(value, "__dict__", None) else ())
    view = value.view(plain)
    if value.dtype.hasobject:
        walk.go(view.ravel()[: max(walk.left, 0) + 1].tolist())
        return
    if not view.flags.c_contiguous:
        if view.nbytes > _WHOLE:
            first = view[tuple(slice(None, None, max(1, size // 32)) for size in view.shape)]
            walk.say(zlib.crc32(numpy.ascontiguousarray(first).reshape(-1).view(numpy.uint8)))
            walk.full = None
            return
        view = numpy.ascontiguousarray(view)
    walk_raw(walk, view.reshape(-1).view(numpy.uint8))
