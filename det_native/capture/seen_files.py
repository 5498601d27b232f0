"""What the runs of a program were seen to read: its inputs, but for what they make themselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from det_native.capture.log import ExecutionLog
from det_native.capture.made_again import MadeAgain
from det_native.capture.observation.paths_seen import PathsSeen, real_path
from det_native.capture.stale import CLOCK


@dataclass(frozen=True)
class SeenFiles:
    """What the runs of a program came upon.

    Attributes
    ----------
    files, folders, patterns : dict of str to str
        Absolute paths of what was opened, listed and searched for, each with the label of the first run that did so.
    labels : frozenset of str
        The runs that were looked at.
    gone : dict of str to str
        Files that were read and are not there any more, likewise.
    changed : dict of str to str
        Files that a run has both found there and changed.
    moves : tuple of str
        Folders that the runs made the working directory.
    """

    files: dict[str, str] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    patterns: dict[str, str] = field(default_factory=dict)
    labels: frozenset[str] = frozenset()
    gone: dict[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)
    moves: tuple[str, ...] = ()


def seen_files(
    log: ExecutionLog, program: Iterable[int], label: Callable[[int], str], made: MadeAgain, watched: Iterable[int] = ()
) -> SeenFiles:
    """Return what the runs of a program were seen to read.

    Parameters
    ----------
    log : ExecutionLog
    program : iterable of int
        The executions that run again.
    label : callable
        Returns how the report calls one.
    made : MadeAgain
        Of the same program.
    watched : iterable of int
        Executions of which a part runs again that reads nothing.
    """
    runs = [(label(index), paths) for index in sorted(program) if (paths := log.executions[index].paths) is not None]
    labels = {label(index) for index in watched if log.executions[index].paths is not None}
    moves = tuple(folder for _, paths in runs for folder in paths.moves)
    found = SeenFiles(labels=frozenset({*labels, *(name for name, _ in runs)}), moves=moves)
    places = {"file": found.files, "folder": found.folders, "pattern": found.patterns}
    for name, paths in runs:
        for read in paths.reads():
            if read.path in places[read.kind]:
                continue
            if read.kind != "file" or os.path.exists(read.path):
                places[read.kind][read.path] = name
                if read.kind == "file" and _has_changed(read.path, paths):
                    found.changed[read.path] = name
            elif paths.ended is not None and not made.makes(read.path):
                found.gone.setdefault(read.path, name)
    return found


def _has_changed(path: str, paths: PathsSeen) -> bool:
    """Whether a run has changed a file that was there."""
    before = paths.were.get(real_path(path)) if paths.were else None
    written = os.stat(path)
    is_later = paths.ended is not None and written.st_mtime > paths.ended + CLOCK
    return before is not None and written.st_mtime_ns != before and not is_later
