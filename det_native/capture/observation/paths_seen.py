"""What a cell did with paths: what it read, and what was there when it first made, replaced or removed something.

Python itself tells of each file that is opened, folder that is listed and pattern that is searched for, before it does
so. What is told is noted as it is, as a cell may open ten thousand files; :meth:`PathsSeen.reads` makes sense of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

#: Events of Python's audit about paths, besides ``open``.
_READS = frozenset(
    {"os.listdir", "os.scandir", "glob.glob", "pathlib.Path.glob", "pathlib.Path.rglob", "sqlite3.connect"}
)
PATH_EVENTS = _READS | {"os.mkdir", "os.rename", "os.link", "os.symlink", "os.remove", "os.rmdir", "shutil.rmtree"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CODE = (".py", ".pyc")
_MOST, _MOST_OPENED = 20_000, 100_000
#: Modules of Python's that list folders to find what matches a pattern, of which Python tells, too.
_PYTHON = os.path.dirname(os.__file__) + os.sep
_SEARCHES = (f"{_PYTHON}glob.py", f"{_PYTHON}pathlib")
#: The clock of the times that a file system gives to files: it goes by ticks, of a few milliseconds.
_CLOCK = getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME)
_POLL = 0.0005
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


class PathRead(NamedTuple):
    """A file that was opened, a folder that was listed, or a pattern that was searched for; all are absolute.

    `place` is how many other paths had been made, replaced or removed by then.
    """

    path: str
    kind: str
    place: int


@dataclass
class PathsSeen:
    """What an execution came upon, until it ended or made a training call: nothing does again what a training does.

    Attributes
    ----------
    first : dict of str to bool
        Real paths of what it made, replaced or removed, in order: whether something was there.
    emptied : set of str
        Those of them that were there, and of which it threw away the content first.
    known : dict of str to int
        Files that were opened to be read in the present working directory, each with its place; see :class:`PathRead`.
    opened : list of (str, dict)
        The same of each working directory.
    were : dict of str to int
        Of what was there, when it was last written, in nanoseconds.
    moves : list of str
        Folders that the user's code made the working directory.
    sought : dict of (kind, path) to int
        Folders that were listed and patterns that were searched for.
    started : float
    ended : float or None
        None as long as it goes on; seconds since the epoch, as `started`.
    went_out : bool
        It has reached a network or started commands, so that nobody can say what it would find the next time.
    """

    first: dict[str, bool] = field(default_factory=dict)
    emptied: set[str] = field(default_factory=set)
    were: dict[str, int] = field(default_factory=dict)
    moves: list[str] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)
    opened: list[tuple[str, dict[str, int]]] = field(default_factory=list)
    sought: dict[tuple[str, str], int] = field(default_factory=dict)
    started: float = field(default_factory=lambda: _now())
    ended: float | None = None
    went_out: bool = False

    def end(self) -> None:
        """Take no more note; what is written from now on has a later time than what has been."""
        if self.ended is not None:
            return
        self.ended = time.time()
        self._forget_misses()
        while self.first and _now() <= self.ended <= time.time():  # unless the clock was set back
            time.sleep(_POLL)

    def move(self, folder: Any, caller: FrameType) -> None:
        """Take note that the working directory changes."""
        self.known = {}
        if self.ended is None and type(folder) is not int and _owner_of(caller.f_code.co_filename) == "user":
            self.moves.append(os.path.abspath(os.fsdecode(folder)))

    def open(self, path: Any, flags: int, caller: FrameType) -> None:
        """Take note of a file that is opened with such flags, in this frame."""
        if type(path) is not str:
            if not isinstance(path, bytes | os.PathLike):
                return
            path = os.fsdecode(path)
        known = self.known
        if not _is_by_cell(caller, path) or len(known) >= _MOST_OPENED:
            return
        if not known:
            self.opened.append((os.getcwd(), known))
        if not flags & _WRITES:
            if path not in known:
                known[path] = len(self.first)
            return
        if not flags & (os.O_TRUNC | os.O_EXCL):
            known.setdefault(path, len(self.first))
        self._come_upon(path, emptied=bool(flags & os.O_TRUNC))

    def take(self, event: str, given: tuple[Any, ...], caller: FrameType) -> None:
        """Take one of :data:`PATH_EVENTS`; Python tells it before anything happens."""
        if self.ended is not None:
            return
        if event in _READS:
            self._take_read(event, given, caller)
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

    def _take_read(self, event: str, given: tuple[Any, ...], caller: FrameType) -> None:
        if event in ("os.listdir", "os.scandir"):
            self._list(event, given[0], caller)
        elif event == "glob.glob":
            self._seek("pattern", given[0])
        elif event == "sqlite3.connect":
            self.open(given[0], os.O_RDWR, caller)
        else:
            parts = (given[0], *(["**"] if event.endswith("rglob") else []), given[1])
            self._seek("pattern", os.path.join(*map(os.fsdecode, parts)))

    def reads(self) -> Iterator[PathRead]:
        """Yield what was read; until it ends, files that it asked for in vain are among that."""
        for folder, files in list(self.opened):
            for path, place in list(files.items()):
                yield PathRead(os.path.normpath(os.path.join(folder, path)), "file", place)
        for (kind, path), place in list(self.sought.items()):
            yield PathRead(os.path.normpath(path), kind, place)

    def in_order(self) -> Iterator[tuple[str, bool]]:
        """Yield the real paths that it came upon, in order, and whether it found there what is of use to it.

        What was not there, or was emptied before it was read, is of none.
        """
        read = [(one.place, real_path(one.path)) for one in self.reads() if one.kind == "file"]
        read.reverse()
        for place, (path, was_there) in enumerate(list(self.first.items())):
            while read and read[-1][0] <= place:
                if self.first.get(earlier := read.pop()[1], True):
                    yield earlier, True
            yield path, was_there and path not in self.emptied
        yield from ((path, True) for _, path in reversed(read) if self.first.get(path, True))

    def _list(self, event: str, folder: Any, caller: FrameType) -> None:
        searches = event == "os.scandir" and caller.f_code.co_filename.startswith(_SEARCHES)
        if type(folder) is not int and not searches and _is_by_cell(caller, ""):
            self._seek("folder", "." if folder is None else folder)

    def _seek(self, kind: str, path: Any) -> None:
        if len(self.sought) < _MOST and isinstance(path, str | bytes | os.PathLike):
            self.sought.setdefault((kind, os.path.abspath(os.fsdecode(path))), len(self.first))

    def _forget_misses(self) -> None:
        """Keep of files that were opened those that are there, and those that were until they were removed."""
        for folder, files in self.opened:
            for path in list(files):
                full = os.path.join(folder, path)
                if not os.path.exists(full) and not self.first.get(real_path(full)):
                    del files[path]

    def _come_upon(self, path: Any, *, only_new: bool = False, emptied: bool = False) -> None:
        if not isinstance(path, str | bytes | os.PathLike) or len(self.first) >= _MOST:
            return
        real = real_path(os.path.abspath(os.fsdecode(path)))
        try:
            written: int | None = os.lstat(real).st_mtime_ns
        except OSError:
            written = None
        if not (only_new and written is not None) and real not in self.first:
            self.first[real] = written is not None
            if written is not None:
                self.were[real] = written
                self.emptied |= {real} if emptied else set()


def real_path(path: str) -> str:
    """Return an absolute path with that of its folder resolved: a link stays one."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def _now() -> float:
    return time.clock_gettime(_CLOCK)


def _is_here(folder: Any) -> bool:
    """Whether a path is meant as it is, and not from the folder of an open file (as in the middle of ``rmtree``)."""
    return folder is None or folder == -1


# Who does it --------------------------------------------------------------------------------------------------------


#: Whose code files have, as far as that was asked for.
_owners: dict[str, str] = {}


def _is_by_cell(caller: FrameType, path: str) -> bool:
    """Whether something is done for a cell: by its code, or in a thread of a library's; what we do ourselves is not.

    Neither is it for a cell that Python loads a module, nor that a library reads the source of one, to show it.
    """
    frame: FrameType | None = caller
    while frame is not None:
        file = frame.f_code.co_filename
        owner = _owners.get(file) or _owner_of(file)
        if owner == "user":
            return True
        if owner == "ours" or (owner == "import" and frame is caller) or (owner == "library" and path.endswith(_CODE)):
            return False
        frame = frame.f_back
    return not path.endswith(_CODE)


def _owner_of(file: str) -> str:
    """Return whose code a file has: ``ours``, ``user``, ``import``, ``library`` or ``python``."""
    if file.startswith(_OURS):
        owner = "ours"
    elif file.startswith("<frozen importlib"):
        owner = "import"
    elif "ipykernel_" in file or file.startswith("<ipython-input"):
        owner = "user"
    elif file.startswith(("<", _PYTHON)) and "site-packages" not in file:
        owner = "python"
    else:
        _owners[file] = "library"  # until it is known: what is imported here asks for it
        from det_native.inspection.own_code import is_library_file

        owner = "library" if is_library_file(file) else "user"
    _owners[file] = owner
    return owner
