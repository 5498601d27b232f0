"""What a cell did with paths: what it read, and what was there when it first made, replaced or removed something.

Python itself tells of each file that is opened, folder that is listed and pattern that is searched for, before it does
so. A cell may open ten thousand files.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from det_native.capture.folders import real_path
from det_native.capture.side_effects.owners import owner_of, owners

#: Events of Python's audit about paths, besides ``open``.
_READS = frozenset(
    {"os.listdir", "os.scandir", "glob.glob", "pathlib.Path.glob", "pathlib.Path.rglob", "sqlite3.connect"}
)
PATH_EVENTS = _READS | {"os.mkdir", "os.rename", "os.link", "os.symlink", "os.remove", "os.rmdir", "shutil.rmtree"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CODE = (".py", ".pyc")
_MOST = 100_000
#: Modules of Python's that list folders to find what matches a pattern, of which Python tells, too.
_PYTHON = os.path.dirname(os.__file__) + os.sep
_SEARCHES = (f"{_PYTHON}glob.py", f"{_PYTHON}pathlib")
#: The clock of the times that a file system gives to files: it goes by ticks, of a few milliseconds. Linux calls it
#: ``CLOCK_REALTIME_COARSE``, and Python has no name for it. By the usual clock, which is ahead of it, a file that is
#: written as soon as a cell begins would be older than the cell. Elsewhere files have the times of the usual clock.
_CLOCK = 5 if sys.platform == "linux" else time.CLOCK_REALTIME
_POLL = 0.0005


@dataclass
class PathsSeen:
    """What an execution came upon, until it ended or made a training call: nothing does again what a training does.

    Attributes
    ----------
    log : dict of (kind, path) to int or None
        Absolute paths that it has read (``file``), listed (``folder``), searched for (``pattern``), and made, replaced
        or removed (``write``), in order. With it when what was of use there was last written, in nanoseconds; None
        where nothing was, or it threw that away first.
    known : set of str
        Files that were opened to be read in the present working directory, by the names that they were opened by.
    moves : list of str
        Folders that the user's code made the working directory.
    ended : float or None
        None as long as it goes on; seconds since the epoch, as `started`.
    went_out : bool
        It has reached a network or started commands, so that nobody can say what it would find the next time.
    removals : dict of str to None
        Absolute paths that were there, and that it removed or moved away, or tried to.
    gone : frozenset of str
        The real paths of those of them that were not there at its end.
    """

    log: dict[tuple[str, str], int | None] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    moves: list[str] = field(default_factory=list)
    started: float = field(default_factory=lambda: _now())
    ended: float | None = None
    went_out: bool = False
    removals: dict[str, None] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()

    def end(self) -> None:
        """Take no more note; what is written from now on has a later time than what has been."""
        if self.ended is not None:
            return
        self.ended = time.time()
        self.gone = frozenset(real_path(path) for path in self.removals if not os.path.lexists(path))
        writes = any(kind == "write" for kind, _ in self.log)
        while writes and _now() <= self.ended <= time.time():  # unless the clock was set back
            time.sleep(_POLL)

    def move(self, folder: Any, caller: FrameType) -> None:
        """Take note that the working directory changes."""
        self.known = set()
        if self.ended is None and type(folder) is not int and owner_of(caller.f_code.co_filename) == "user":
            self.moves.append(os.path.abspath(os.fsdecode(folder)))

    def open(self, path: Any, flags: int, caller: FrameType) -> None:
        """Take note of a file that is opened with such flags, in this frame."""
        if not isinstance(path, str | bytes | os.PathLike):
            return
        name = os.fsdecode(path)
        if not _is_by_cell(caller, name):
            return
        if not flags & (os.O_TRUNC | os.O_EXCL):
            self._note("file", name)
        if flags & _WRITES:
            self._note("write", name, emptied=bool(flags & os.O_TRUNC))
        elif self.log.get(("file", os.path.abspath(name))) is not None:
            self.known.add(name)

    def take(self, event: str, given: tuple[Any, ...], caller: FrameType) -> None:
        """Take one of :data:`PATH_EVENTS`; Python tells it before anything happens."""
        if self.ended is not None:
            return
        if event in _READS:
            self._take_read(event, given, caller)
        elif event == "os.mkdir":
            if is_here(given[2]) and not os.path.exists(given[0]):  # of a folder that is there it does nothing
                self._note("write", given[0])
        elif event in ("os.rename", "os.link"):
            if event == "os.rename" and is_here(given[2]):
                self._note_removal(given[0])
            if is_here(given[3]):
                self._note("write", given[1])
        elif event == "os.symlink":
            if is_here(given[2]):
                self._note("write", given[1])
        elif len(given) < 2 or is_here(given[1]):
            self._note_removal(given[0])

    def _take_read(self, event: str, given: tuple[Any, ...], caller: FrameType) -> None:
        if event in ("os.listdir", "os.scandir"):
            searches = event == "os.scandir" and caller.f_code.co_filename.startswith(_SEARCHES)
            if not searches and _is_by_cell(caller, ""):
                self._note("folder", "." if given[0] is None else given[0])
        elif event == "glob.glob":
            self._note("pattern", given[0])
        elif event == "sqlite3.connect":
            self.open(given[0], os.O_RDWR, caller)
        else:
            parts = (given[0], *(["**"] if event.endswith("rglob") else []), given[1])
            self._note("pattern", os.path.join(*map(os.fsdecode, parts)))

    def reads(self) -> Iterator[tuple[str, str]]:
        """Yield the kind and the path of what was read."""
        for (kind, path), written in list(self.log.items()):
            if kind in ("folder", "pattern") or (kind == "file" and written is not None):
                yield kind, path

    def writes(self) -> Iterator[str]:
        """Yield the real paths of what it made, replaced or removed."""
        for kind, path in list(self.log):
            if kind == "write":
                yield real_path(path)

    def removed(self) -> Iterator[str]:
        """Yield the real paths of what was there, and that it removed or moved away."""
        for path in list(self.removals):
            yield real_path(path)

    def in_order(self) -> Iterator[tuple[str, bool]]:
        """Yield the real paths of files that it read, and of what it wrote, and whether it found there what it uses."""
        for (kind, path), written in list(self.log.items()):
            if kind == "write" or (kind == "file" and written is not None):
                yield real_path(path), written is not None

    def _note_removal(self, path: Any) -> None:
        self._note("write", path)
        known = isinstance(path, str | bytes | os.PathLike) and len(self.removals) < _MOST
        if known and os.path.lexists(path):
            self.removals[os.path.abspath(os.fsdecode(path))] = None

    def _note(self, kind: str, path: Any, *, emptied: bool = False) -> None:
        if not isinstance(path, str | bytes | os.PathLike) or len(self.log) >= _MOST:
            return
        entry = kind, os.path.abspath(os.fsdecode(path))
        if self.log.get(entry) is not None or (kind == "write" and entry in self.log):
            return
        try:
            written: int | None = os.stat(entry[1], follow_symlinks=kind != "write").st_mtime_ns
        except OSError:
            written = None
        self.log.pop(entry, None)  # what it asked for in vain before, it may read now
        self.log[entry] = None if emptied else written


def _now() -> float:
    return time.clock_gettime(_CLOCK)


def is_here(folder: Any) -> bool:
    """Whether a path is meant as it is, and not from the folder of an open file (as in the middle of ``rmtree``)."""
    return folder is None or folder == -1


def _is_by_cell(caller: FrameType, path: str) -> bool:
    """Whether something is done for a cell: by its code, or in a thread of a library's; what we do ourselves is not.

    Neither is it for a cell that Python loads a module, nor that a library reads the source of one, to show it.
    """
    for place, owner in enumerate(owners(caller)):
        if owner == "user":
            return True
        if owner == "ours" or (owner == "import" and not place) or (owner == "library" and path.endswith(_CODE)):
            return False
    return not path.endswith(_CODE)
