"""Files that the program makes itself where it runs: sent along, they would be there before it makes them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from pathlib import Path

from det_native.capture.explain import SLOW
from det_native.capture.log import ExecutionLog
from det_native.capture.observation.paths_seen import real_path
from det_native.capture.transform import transform

_NEVER = (math.inf, -1, True)


class MadeAgain:
    """Says which files were not there before the executions of a program, and were last written by one of them.

    An execution that reached a network, started commands, took long or had lines that do not run again is none that
    makes something again: what it has made travels, so that the program finds it where it looks first.

    Parameters
    ----------
    log : ExecutionLog
    program : iterable of int
        The executions that run again.
    """

    def __init__(self, log: ExecutionLog, program: Iterable[int]) -> None:
        self._makers: set[int] = set()
        self._first: dict[str, tuple[float, int, bool]] = {}  # place in time, execution, whether it was there
        self._folders: dict[Path, tuple[str, tuple[float, int, bool]]] = {}
        for index in sorted(program):
            seen = log.executions[index].paths
            if seen is None:
                continue
            code = transform(log.executions[index].source)
            is_whole = not (code.shell or code.hidden or code.repeated)
            if is_whole and not seen.went_out and (seen.ended or time.time()) - seen.started <= SLOW:
                self._makers.add(index)
            for path, was_there in seen.in_order():
                self._first.setdefault(path, (len(self._first), index, was_there))
        self._spans = [
            (each.index, each.paths.started, each.paths.ended) for each in log.executions if each.paths is not None
        ]

    def makes(self, path: str) -> bool:
        """Whether a run of the program has made what was at a path, before any had a use for it."""
        return self._first_maker(Path(path)) is not None

    def maker(self, file: Path) -> int | None:
        """Return the execution that makes a file, or a folder that it lies in; None if the file is to be sent."""
        maker = self._first_maker(file) if self._first else None
        if maker is None:
            return None
        try:
            written = file.stat().st_ctime  # unlike the time of the content, nobody can set it
        except OSError:
            return None
        writers = {
            index for index, started, ended in self._spans if started <= written and (ended is None or written <= ended)
        }
        return maker if writers and writers <= self._makers else None

    def _first_maker(self, file: Path) -> int | None:
        """Return the execution that found nothing there, if it is the first that came upon it or a folder of it."""
        folder, of_folders = self._of_folders(file.parent)
        _, index, was_there = min(self._first.get(os.path.join(folder, file.name), _NEVER), of_folders)
        return index if not was_there and index in self._makers else None

    def _of_folders(self, folder: Path) -> tuple[str, tuple[float, int, bool]]:
        """Return the real path of a folder, and what was first come upon of it and those that it lies in."""
        if folder not in self._folders:
            real = Path(os.path.realpath(folder))
            found = (self._first.get(str(each), _NEVER) for each in (real, *real.parents))
            self._folders[folder] = str(real), min(found)
        return self._folders[folder]


def read_later(log: ExecutionLog, program: Iterable[int]) -> dict[int, tuple[int, str]]:
    """Return the executions that have written a file which a later one has read: that one, and the file's name.

    Parameters
    ----------
    log : ExecutionLog
    program : iterable of int
        The executions that run again.
    """
    found: dict[int, tuple[int, str]] = {}
    writers: dict[str, int] = {}
    for index in sorted(program):
        seen = log.executions[index].paths
        if seen is None:
            continue
        for path in {real_path(one.path) for one in seen.reads() if one.kind == "file"}:
            if path in writers:
                found.setdefault(writers[path], (index, os.path.basename(path)))
        writers |= dict.fromkeys(seen.first, index)
    return found
