"""Work beside a training on the same processors, in small pieces with rests, until somebody waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from typing import IO, TypeVar

from det_native.storage.folder import write_all
from det_native.storage.frames import Buffer

T = TypeVar("T")

# Of one core: PyTorch gives each of its threads an equal part of an operation, so that the slowest one holds up all.
_SHARE_BESIDE = 0.05
_PIECE = 4 << 20  # bytes


class Throttle:
    """Goes through pieces of work, and rests after each for many times the processor time that it took.

    Safe for several threads; each rests for what it did itself.

    Parameters
    ----------
    beside : bool
        Whether a training goes on that needs the processor; if not, there are no rests.
    """

    def __init__(self, *, beside: bool = False) -> None:
        self._awaited = threading.Event()
        if not beside:
            self._awaited.set()

    def __call__(self, pieces: Iterable[T]) -> Iterator[T]:
        """Yield the pieces; what is done to get one and what is done with it is work."""
        begin = time.thread_time()
        for piece in pieces:
            yield piece
            self._awaited.wait((time.thread_time() - begin) * (1 / _SHARE_BESIDE - 1))
            begin = time.thread_time()

    def release(self) -> None:
        """End the rests, this one and those to come: somebody waits."""
        self._awaited.set()

    def file(self, stream: IO[bytes]) -> ThrottledFile:
        """Return a file that writes to an unbuffered one in pieces."""
        return ThrottledFile(stream, self)


class ThrottledFile:
    """What of a file is needed to write to it."""

    def __init__(self, stream: IO[bytes], throttle: Throttle) -> None:
        self._stream, self._throttle = stream, throttle

    def write(self, content: Buffer) -> int:
        """Write all of it; return its length."""
        view = memoryview(content).cast("B")
        for start in self._throttle(range(0, len(view), _PIECE)):
            write_all(self._stream.fileno(), [view[start : start + _PIECE]])
        return len(view)

    def flush(self) -> None:
        """Do nothing: nothing is held back."""
