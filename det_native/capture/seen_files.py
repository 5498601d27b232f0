"""What the runs of a program were seen to read, and to make: sent along, that would be there before they make it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from det_native.capture.folders import real_path
from det_native.capture.log import SLOW, ExecutionLog
from det_native.capture.transform import transform
from det_native.schema.manifests import SettledEntry

_NEVER = (math.inf, -1, True)
#: Seconds: the longest tick of the clock by which a file system notes times.
_TICK = 0.01
#: Seconds by which two numbers of the same time may differ.
_ROUNDING = 1e-6


class SeenFiles:
    """What the runs of a program came upon.

    A file is made again that was not there before the runs, and was last written by one of them. A run that reached a
    network, started commands, took long or had lines that do not run again is none that makes something again: what it
    has made travels, so that the program finds it where it looks first.

    Parameters
    ----------
    log : ExecutionLog, optional
        Without one nothing was seen.
    program : iterable of int
        The executions that run again.
    label : callable
        Returns how the report calls one.
    watched : iterable of int
        Executions of which a part runs again that reads nothing.
    optional : mapping of int to int
        Executions that may fail, each with the line from which on: files that they name after it need not be there.

    Attributes
    ----------
    files, folders, patterns : dict of str to str
        Absolute paths of what was opened, listed and searched for, each with the label of the first run that did so.
    labels : frozenset of str
        The runs that were looked at.
    optional : dict of str to int
        Those that may fail, and from which line on.
    gone : dict of str to str
        Files that were read and are not there any more, likewise.
    moves : list of str
        Folders that the runs made the working directory.
    written : set of str
        Folders in which the runs wrote, made or removed something.
    """

    def __init__(
        self,
        log: ExecutionLog | None = None,
        program: Iterable[int] = (),
        label: Callable[[int], str] = lambda index: "",
        watched: Iterable[int] = (),
        optional: Mapping[int, int] | None = None,
    ) -> None:
        executions = log.executions if log is not None else []
        seen = {each.index: each.seen.paths for each in executions if each.seen.paths is not None}
        runs = {index: seen[index] for index in sorted(program) if index in seen}
        self.label = label
        self.labels = frozenset(label(index) for index in (*runs, *watched) if index in seen)
        self.optional = {label(index): line for index, line in (optional or {}).items()}
        self.moves = [folder for paths in runs.values() for folder in paths.moves]
        self.written = {os.path.dirname(path) for paths in runs.values() for path in paths.writes()}
        self.files: dict[str, str] = {}
        self.folders: dict[str, str] = {}
        self.patterns: dict[str, str] = {}
        self.gone: dict[str, str] = {}
        self._makers: set[int] = set()
        self._first: dict[str, tuple[float, int, bool]] = {}  # place in time, execution, whether it was there
        self._folders: dict[Path, tuple[str, tuple[float, int, bool]]] = {}
        self._spans = [(index, paths.started, paths.ended, frozenset(paths.writes())) for index, paths in seen.items()]
        for index, paths in runs.items():
            code = transform(executions[index].source)
            is_whole = not (code.shell or code.hidden or code.repeated)
            if is_whole and not paths.went_out and (paths.ended or time.time()) - paths.started <= SLOW:
                self._makers.add(index)
            for path, was_there in paths.in_order():
                self._first.setdefault(path, (len(self._first), index, was_there))
        places = {"file": self.files, "folder": self.folders, "pattern": self.patterns}
        for index, paths in runs.items():
            for kind, path in paths.reads():
                if kind != "file" or os.path.exists(path):
                    places[kind].setdefault(path, label(index))
                elif self._first_maker(Path(path)) is None:
                    self.gone.setdefault(path, label(index))

    def maker(self, file: Path) -> int | None:
        """Return the execution that makes a file, or a folder that it lies in; None if the file is to be sent."""
        maker = self._first_maker(file) if self._first else None
        writers = self._writers(file, maker) if maker is not None else set()
        return maker if writers and writers <= self._makers else None

    def last_writer(self, file: Path) -> int | None:
        """Return the execution that left a file as it is, if one that runs again makes it first; else None."""
        maker = self._first_maker(file) if self._first else None
        return max(self._writers(file, maker), default=None) if maker is not None else None

    def _writers(self, file: Path, maker: int) -> set[int]:
        """Return the executions that may have left a file as it is; none if something else has."""
        try:
            written = file.stat().st_ctime  # unlike the time of the content, nobody can set it
        except OSError:
            return set()
        # A file that came with its folder, when that was moved, has kept its time.
        folder = Path(self._of_folders(file.parent)[0])
        above = {str(each) for each in (folder, *folder.parents)}
        movers = {index for index, started, _, writes in self._spans if started > written and above & writes}
        # It was not there when its maker began: a time before that is the file system's, whose clock goes by ticks.
        writers = set()
        for index, started, ended, writes in self._spans:
            if started - (_TICK if index == maker else _ROUNDING) <= written and (ended is None or written <= ended):
                # That clock may also have been exact: the file was written before the run, unless the run was seen to.
                unseen = written < started + _TICK and str(file) not in writes
                if unseen and index != maker and not movers:
                    return set()
                writers.add(index)
        return writers | movers if writers else writers

    def makes_folder(self, folder: Path) -> bool:
        """Whether a run made a folder, or one that it lies in, which was not there; it may have been filled later."""
        if not self._first:
            return False
        _, index, was_there = self._of_folders(folder)[1]
        return not was_there and index >= 0

    def _first_maker(self, file: Path) -> int | None:
        """Return the execution that found nothing there, if it is the first that came upon it or a folder of it."""
        folder, of_folders = self._of_folders(file.parent)
        _, index, was_there = min(self._first.get(os.path.join(folder, file.name), _NEVER), of_folders)
        return index if not was_there and index in self._makers else None

    def _of_folders(self, folder: Path) -> tuple[str, tuple[float, int, bool]]:
        """Return the real path of a folder, and what was first come upon of it and those that it lies in."""
        if folder not in self._folders:
            real = Path(os.path.realpath(folder))
            places = (self._first.get(str(path), _NEVER) for path in (real, *real.parents))
            self._folders[folder] = str(real), min(places)
        return self._folders[folder]


def read_later(log: ExecutionLog, program: Iterable[int]) -> dict[int, tuple[int, str]]:
    """Return the executions that have written a file which a later one has read: that one, and the file's name.

    Parameters
    ----------
    program : iterable of int
        The executions that run again.
    """
    readers: dict[int, tuple[int, str]] = {}
    writers: dict[str, int] = {}
    for index in sorted(program):
        paths = log.executions[index].seen.paths
        if paths is None:
            continue
        for path in {real_path(path) for kind, path in paths.reads() if kind == "file"}:
            if path in writers:
                readers.setdefault(writers[path], (index, os.path.basename(path)))
        writers |= dict.fromkeys(paths.writes(), index)
    return readers


def settled_paths(
    log: ExecutionLog, runs: Sequence[int], place_after: Callable[[int], int], root: Path, seen: SeenFiles
) -> Callable[[Collection[str]], list[SettledEntry]]:
    """Return a function: for the files of a bundle it gives the paths to put right on the worker, each with its cell.

    Parameters
    ----------
    runs : sequence of int
        The executions that run again; the last one makes the call.
    place_after : callable
        Gives the first cell of the program that ran after an execution.
    root : Path
        The folder of the user's files.
    """

    def settled(files: Collection[str]) -> list[SettledEntry]:
        gone = ((Path(path), run) for path, run in _removed(log, runs))
        inside = ((path.relative_to(root).as_posix(), run) for path, run in gone if root in path.parents)
        found = {(text, run) for text, run in inside if text not in files}
        written = ((text, seen.last_writer(root / text)) for text in files)
        found |= {(text, run) for text, run in written if run is not None and run < runs[-1]}
        return [SettledEntry(path=text, before_cell=place_after(run)) for text, run in sorted(found)]

    return settled


def _removed(log: ExecutionLog, runs: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Yield what runs that run again have made and others removed, with the run after which it is gone.

    Where nobody saw who removed it, as a command, it is gone when the call begins.
    """
    made: set[str] = set()
    removed: set[str] = set()
    for logged in log.executions[: runs[-1] + 1]:
        if (paths := logged.seen.paths) is None:
            continue
        if logged.index in runs:
            made.update(paths.writes())
            removed.update(paths.removed())
        else:
            yield from ((path, logged.index) for path in paths.gone if not made.isdisjoint(_with_folders(path)))
    for path in made:
        if not os.path.lexists(path) and removed.isdisjoint(_with_folders(path)):
            yield path, runs[-1] - 1


def _with_folders(path: str) -> list[str]:
    return [path, *map(str, Path(path).parents)]
