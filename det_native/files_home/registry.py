"""Trainings that were submitted from this process, and whose files are not in the notebook's folder yet."""

from __future__ import annotations

import math
import os
import stat
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

from det_native.capture.path_texts import Role
from det_native.client.arguments import Show
from det_native.client.handles import Experiment
from det_native.errors import DetError
from det_native.files_home.dated import as_here
from det_native.files_home.patterns import concerns
from det_native.files_home.uses import PathUse

_FRESH_SECONDS = 1.0


@dataclass(eq=False)
class PendingFiles:
    """Files of a training that are not here yet.

    Attributes
    ----------
    experiment : Experiment
    folder : Path
        The working directory in which the call was made: there plain code would have written them.
    submitted : float
        When, in seconds since 1970: what has changed here since is not replaced.
    expected : tuple of PathUse
        What the code of the training says that it writes.
    search : bool
        It has several trials, whose files stay on the cluster.
    show : {"view", "bar", "none"}
        What is shown while it is waited for.
    given : frozenset of type
        Classes of what the training calls back: a path that such an object is made with is used by a training.
    trainers : frozenset of code
        Of the functions around the training call.
    owners : tuple of (object, str)
        What was trained and reads its files by itself (an estimator its checkpoints), with their folder.
    call : str
        The text of the training call.
    stayed : dict of str to str
        Files that have not come, by their absolute paths, with the reason; known once it has ended.
    arrived : frozenset of str
        Absolute paths of all files that the training has written; known once it has ended.
    forgotten : list of str
        Patterns of files for which no code is to wait any more.
    told : set of str
        Sentences that were said of files that are read.
    ended : bool
        What is to come has come.
    lock : threading.Lock
        Held while files are written.
    """

    experiment: Experiment
    folder: Path
    submitted: float
    expected: tuple[PathUse, ...] = ()
    search: bool = False
    show: Show = "view"
    given: frozenset[type] = frozenset()
    trainers: frozenset[CodeType] = frozenset()
    owners: tuple[tuple[Any, str], ...] = ()
    call: str = ""
    stayed: dict[str, str] = field(default_factory=dict)
    arrived: frozenset[str] = frozenset()
    told: set[str] = field(default_factory=set)
    forgotten: list[str] = field(default_factory=list)
    ended: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    _seen: tuple[float, frozenset[str]] = (-math.inf, frozenset())

    def written(self) -> frozenset[str]:
        """Return the absolute paths of what the training has written so far, as its worker says."""
        if self.ended:
            return self.arrived
        if time.monotonic() > self._seen[0] + _FRESH_SECONDS:
            source, paths = self.experiment.source, frozenset[str]()
            with suppress(DetError):
                trials = source.trials(self.experiment.id)
                written = [artifact.path for trial in trials for artifact in source.artifacts(trial.id)]
                names = self.names_here(written)
                paths = frozenset(str(self.folder / names.get(path, path)) for path in written)
            self._seen = time.monotonic(), paths
        return self._seen[1]

    def names_here(self, paths: Sequence[str]) -> dict[str, str]:
        """Return which files of the training have another name here, by the notebook's clock."""
        inside = f"{self.folder}{os.sep}"
        return as_here(paths, [use.pattern.removeprefix(inside) for use in self.expected])

    def has_filled(self, pattern: str) -> bool:
        """Whether a file of the training lies where a pattern says."""
        return any(concerns(pattern, path) for path in self.arrived)

    def expects(self, use: PathUse, *, trains: bool = False) -> PathUse | None:
        """Return which of the expected paths a piece of code may come upon; None if it does not.

        In code that `trains` again, the same call with the same text does what it did in the training: it writes.
        """
        if self.passes_over(use):
            return None
        return next(
            (
                path
                for path in self.expected
                if concerns(use.pattern, path.pattern) and not (trains and use.call and use.call == path.call)
            ),
            None,
        )

    def leaves_old_ones(self) -> bool:
        """Whether a file from before the submit has a name to which the training may write, and has not written."""
        paths = {path.pattern for path in self.expected} - self.arrived
        return any(is_from_before(path, self.submitted) for path in paths)

    def passes_over(self, use: PathUse) -> bool:
        """Whether a use is left alone: of a folder around all that is written, or of what is forgotten."""
        around = use.role is not Role.READ and (
            self.folder == Path(use.pattern) or Path(use.pattern) in self.folder.parents
        )
        return around or any(concerns(use.pattern, pattern) for pattern in self.forgotten)


def is_from_before(path: str, submitted: float) -> bool:
    """Whether there is a file that has not changed since a time, in seconds since 1970."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and max(status.st_mtime, status.st_ctime) <= submitted


_pending: list[PendingFiles] = []


def add(files: PendingFiles) -> None:
    """Note that files are to come home."""
    _pending.append(files)


def pending() -> list[PendingFiles]:
    """Return those whose files have not come, the oldest first."""
    return list(_pending)


def end(files: PendingFiles) -> None:
    """Wait for files no more."""
    if files in _pending:
        _pending.remove(files)


def of_experiment(experiment: Experiment) -> PendingFiles | None:
    """Return what is to come of an experiment."""
    same = (files for files in _pending if files.experiment.id == experiment.id)
    return next((files for files in same if files.experiment.source.url == experiment.source.url), None)


def forget(patterns: Iterable[str]) -> None:
    """Have no code wait for these files any more."""
    several = list(patterns)
    for files in _pending:
        files.forgotten += several
