"""The processes of one trial besides this one: who among them reports, and who failed first."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from det_harness.trial.services import Reporter
from det_native.errors import RankLostError, UnreachableError
from det_native.schema.environment import Ranks
from det_native.schema.job import Gang
from det_native.schema.outputs import LoggedMedium, WrittenFile
from det_native.schema.ranks import SHARED_WITHIN
from det_native.schema.reports import CaptureRow, ExitReport, UserErrorInfo
from det_native.schema.states import ExitReason

_FAILED_SUFFIX = ".failed"


def ranks_of(gang: Gang | None) -> Ranks:
    """Return the place of this process; that of the only one without a gang."""
    if gang is None:
        return Ranks()
    return Ranks(gang.rank, gang.size, gang.local_rank, gang.local_size, agents=gang.cross_size)


def run_folder(directory: Path, gang: Gang | None) -> Path:
    """Return the folder of the whole run, of which `directory` is this process's own."""
    return directory if gang is None or gang.rank == 0 else directory.parent


class Failures:
    """Which of the processes of a trial failed first: by it the others fail too, in whatever way.

    On several machines it waits until these know, before the others can notice by what they wait for.
    """

    def __init__(self, gang: Gang | None) -> None:
        self._gang = gang
        self._first: bool | None = None

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Note a failure of the block as soon as it happens, before the others can notice and fail by it."""
        try:
            yield
        except BaseException as error:
            self.is_first(error)
            raise

    def is_first(self, error: BaseException) -> bool:
        """Whether this process failed by itself, before all others; who asks first is the first."""
        if self._gang is None:
            return True
        if self._first is None:
            self._first = not _came_by_another(error) and self._claim(self._gang)
        return self._first

    def name(self, error: UserErrorInfo) -> UserErrorInfo:
        """Say in an error which process it is of, where there are several."""
        if self._gang is None:
            return error
        return error.model_copy(update={"rank": self._gang.rank, "role": self._gang.role})

    @staticmethod
    def _claim(gang: Gang) -> bool:
        path = gang.rendezvous + _FAILED_SUFFIX
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
                stream.write(f"{gang.rank}\n")
        except FileExistsError:
            return False
        except OSError:  # the disk is full, say: better told twice than not at all
            return True
        if gang.cross_size > 1:
            time.sleep(SHARED_WITHIN)
        return True


class SilentReporter(Reporter):
    """The reporter of every process but the first, which reports for all: by itself a reporter does nothing.

    What it answers is the first rank's to know, too: ``best_metric`` has to be asked there and handed on.
    """

    stop_requested = False

    def started(self, batch: int, length: int | None = None, notice: str = "") -> None:
        """Report nothing."""

    def logged(self, batch: int, metrics: Mapping[str, float]) -> None:
        """Report nothing: only what the first rank logs counts."""

    def media(self, items: list[LoggedMedium]) -> None:
        """Report nothing."""

    def rows(self, rows: list[CaptureRow]) -> None:
        """Report nothing: the first process finds the same."""

    def artifacts(self, files: list[WrittenFile], removed: list[str]) -> None:
        """Report nothing: the first process reports the files of all."""

    def exit(
        self, reason: ExitReason, batch: int, error: UserErrorInfo | None = None, *, early: bool = False
    ) -> ExitReport:
        """Return what is to be left on disk."""
        return exit_report(reason, batch, error)

    def close(self, timeout: float = 10.0) -> bool:
        """Return True: nothing is left to send."""
        return True


def exit_report(reason: ExitReason, batch: int, error: UserErrorInfo | None) -> ExitReport:
    """Return an exit report that goes to disk only."""
    return ExitReport(seq=1, reason=reason, batch=batch, error=error)


def _came_by_another(error: BaseException) -> bool:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        if isinstance(one, RankLostError) and not isinstance(one, UnreachableError):
            return True
        seen.add(id(one))
        waiting += [one.__cause__, one.__context__]
    return False
