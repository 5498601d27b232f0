"""Arrays as parts of a fingerprint."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from det_native.proof.fingerprint import Fingerprint

_WHOLE_BYTES = 1 << 30  # of an input; arrays beyond are looked at in stretches
_STRETCHES = 256
_STRETCH_BYTES = 64 << 10


class Arrays:
    """Reads arrays of numpy's.

    Parameters
    ----------
    into : Fingerprint
    objects : callable
        Reads the elements of an array of objects, a list.
    """

    def __init__(self, into: Fingerprint, objects: Callable[[Iterable[Any]], None]) -> None:
        self._into = into
        self._objects = objects
        self._whole = _WHOLE_BYTES

    def read(self, value: Any, bytes_of_each: int = 0) -> None:
        """Read an array, or a number of numpy's; of numbers of so many bytes where that is not its type."""
        numpy = sys.modules["numpy"]
        array = numpy.asarray(value)
        self._into.both("array", str(array.shape), str(array.dtype))
        if array.dtype.hasobject:
            self._objects((array.reshape(-1).tolist(),))
            return
        if array.dtype.names is not None:
            for name in array.dtype.names:
                self.read(array[name])
            return
        stretches = [array]
        if array.nbytes > self._whole:
            stretches = _stretches(array)
            self._into.partly = f"{_STRETCHES} stretches of its large arrays"
        else:
            self._whole -= array.nbytes
        for stretch in stretches:
            numbers = numpy.ascontiguousarray(stretch)
            self._into.bytes(numbers, self._into.exact)
            if array.dtype.kind in "fc":
                self._into.numbers(numbers, bytes_of_each)
            elif array.dtype.kind != "V":
                self._into.bytes(numbers, self._into.loose)
            else:  # of a library: bfloat16 and the like
                try:
                    self._into.numbers(numbers.astype(numpy.float32), 2)
                except (TypeError, ValueError):
                    self._into.bytes(numbers, self._into.loose)


def _stretches(array: Any) -> list[Any]:
    """Return stretches from the whole length of an array."""
    if not array.flags.c_contiguous:
        step = max(1, array.shape[0] * _STRETCH_BYTES * _STRETCHES // array.nbytes)
        return [array[:: max(1, array.shape[0] // step)]] if array.ndim else [array]
    flat = array.reshape(-1)
    length = max(1, _STRETCH_BYTES // array.itemsize)
    starts = [int(place * (flat.size - length) / (_STRETCHES - 1)) for place in range(_STRETCHES)]
    return [flat[start : start + length] for start in starts]
