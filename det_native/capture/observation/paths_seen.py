"""What was there of paths when a cell first made, replaced or removed them: Python itself tells before it does so."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any

#: Events of Python's audit about paths.
PATH_EVENTS = frozenset(
    {"open", "os.mkdir", "os.rename", "os.link", "os.symlink", "os.remove", "os.rmdir", "shutil.rmtree"}
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_MOST = 20_000
#: The clock of the times that a file system gives to files: it goes by ticks, of a few milliseconds.
_CLOCK = getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME)
_POLL = 0.0005


@dataclass
class PathsSeen:
    """What an execution came upon, until it ended or made a training call: nothing does again what a training does.

    Attributes
    ----------
    first : dict of str to bool
        Real paths, in the order in which they were come upon: whether something was there.
    started : float
    ended : float or None
        None as long as it goes on; seconds since the epoch, as `started`.
    went_out : bool
        It has reached a network or started commands, so that nobody can say what it would find the next time.
    """

    first: dict[str, bool] = field(default_factory=dict)
    started: float = field(default_factory=lambda: _now())
    ended: float | None = None
    went_out: bool = False

    def end(self) -> None:
        """Take no more note; what is written from now on has a later time than what has been."""
        if self.ended is not None:
            return
        self.ended = time.time()
        while self.first and _now() <= self.ended <= time.time():  # unless the clock was set back
            time.sleep(_POLL)

    def take(self, event: str, given: tuple[Any, ...]) -> None:
        """Take one of :data:`PATH_EVENTS`; Python tells it before anything happens."""
        if self.ended is not None:
            return
        if event == "open":
            if isinstance(given[2], int) and given[2] & _WRITES:
                self._come_upon(given[0])
        elif event == "os.mkdir":
            if _is_here(given[2]):
                self._come_upon(given[0], only_new=True)  # of a folder that is there it does nothing
        elif event in ("os.rename", "os.link"):
            if event == "os.rename" and _is_here(given[2]):
                self._come_upon(given[0])
            if _is_here(given[3]):
                self._come_upon(given[1])
        elif event == "os.symlink":
            if _is_here(given[2]):
                self._come_upon(given[1])
        elif len(given) < 2 or _is_here(given[1]):
            self._come_upon(given[0])

    def _come_upon(self, path: Any, *, only_new: bool = False) -> None:
        if not isinstance(path, str | bytes | os.PathLike) or len(self.first) >= _MOST:
            return
        folder, name = os.path.split(os.path.abspath(os.fsdecode(path)))
        real = os.path.join(os.path.realpath(folder), name)
        was_there = os.path.lexists(real)
        if not (only_new and was_there):
            self.first.setdefault(real, was_there)


def _now() -> float:
    return time.clock_gettime(_CLOCK)


def _is_here(folder: Any) -> bool:
    """Whether a path is meant as it is, and not from the folder of an open file (as in the middle of ``rmtree``)."""
    return folder is None or folder == -1
