"""The two fingerprints of a value, as they are taken up part by part, and the blocks of its numbers."""

from __future__ import annotations

import hashlib
import math
import sys
from typing import Any

from det_native.proof.blocks import Blocks


class Fingerprint:
    """Takes up the parts of one value.

    Attributes
    ----------
    exact, loose : hash
        Of all content, and of all but the floating-point numbers.
    blocks : Blocks
        What is known of these.
    partly : str
        What of the value was read, where that is not all of it.
    not_compared : list of str
        Classes of parts that cannot be read.
    """

    def __init__(self) -> None:
        self.exact = hashlib.sha256()  # processors have instructions for it
        self.loose = hashlib.blake2b(digest_size=16)
        self.blocks = Blocks()
        self.partly = ""
        self.not_compared: list[str] = []

    def both(self, *texts: str) -> None:
        """Take texts, into both fingerprints."""
        found = "\0".join(texts).encode("utf-8", "surrogatepass") + b"\1"
        self.exact.update(found)
        self.loose.update(found)

    def kind(self, value: Any) -> None:
        """Take the class of a value, or a class."""
        kind = value if isinstance(value, type) else type(value)
        self.both("kind", kind.__qualname__)

    def floats(self, kind: str, values: list[float]) -> None:
        """Take floating-point numbers of Python."""
        self.both(kind, str(len(values)))
        self.exact.update(repr(values).encode())
        if len(values) > 1:
            import numpy

            self.numbers(numpy.array(values))
        elif math.isfinite(values[0]):
            self.blocks.add_one(values[0])
        else:
            self.loose.update(repr(values).encode())

    def bytes(self, array: Any, into: Any) -> None:
        """Take the bytes of an array into one of the fingerprints."""
        into.update(array.reshape(-1).view(sys.modules["numpy"].uint8))

    def numbers(self, array: Any, bytes_of_each: int = 0) -> None:
        """Note floating-point numbers block by block; which of them are not finite is the same or not."""
        import numpy

        if array.dtype.kind == "c":
            array = array.reshape(-1).view(array.real.dtype)
        with numpy.errstate(all="ignore"):  # infinities of both signs
            total = array.sum(dtype=numpy.float64)
        if array.size and not numpy.isfinite(total):
            finite = numpy.isfinite(array)
            places = numpy.sign(array[~finite]).astype(numpy.float32)
            self.loose.update(numpy.packbits(finite).tobytes() + numpy.nan_to_num(places, nan=2.0).tobytes())
            array = numpy.where(finite, array, array.dtype.type(0))
        self.blocks.add(array, bytes_of_each or array.dtype.itemsize)
