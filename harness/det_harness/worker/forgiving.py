"""Output for which a full disk has no room: it is lost, and said so, but it ends no training."""

from __future__ import annotations

import io
from typing import Any, Literal

from det_native.logged.place import hear
from det_native.storage.room import lacks_room


class _ForgivingFile(io.FileIO):
    """A file that takes what the disk does not, and says later how much that was."""

    _lost = 0

    def write(self, content: Any) -> int:
        """Write, or lose it."""
        try:
            if self._lost:
                super().write(f"[... {self._lost} bytes of output are lost: the disk was full ...]\n".encode())
                self._lost = 0
            return super().write(content)
        except OSError as error:
            if not lacks_room(error):
                raise
            size = memoryview(content).nbytes
            self._lost += size
            return size


class _HeardStream(io.TextIOWrapper):
    """A stream whose text the cell that waits for a training shows, too."""

    stream: Literal["stdout", "stderr"]

    def write(self, text: str) -> int:
        """Write, and say it to whoever takes what is shown."""
        written = super().write(text)
        hear(self.stream, text)
        return written


def forgiving(descriptor: int, *, heard: bool = True) -> io.TextIOWrapper:
    """Return a text stream on a descriptor, line by line, in which printing never fails for want of room.

    `heard`: the user's code writes to it, so that the cell shows it while it trains.
    """
    raw = io.BufferedWriter(_ForgivingFile(descriptor, "wb", closefd=False))
    kind = _HeardStream if heard else io.TextIOWrapper
    made = kind(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)
    if isinstance(made, _HeardStream):
        made.stream = "stdout" if descriptor == 1 else "stderr"
    return made
