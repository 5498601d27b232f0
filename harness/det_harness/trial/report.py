"""Reports of a worker: kept in a spool on disk, sent in batches by a thread. Training never waits for the master."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from det_harness.trial import activity
from det_harness.trial.forks import end_forked_child
from det_harness.trial.held import Held, HeldReports
from det_harness.trial.metrics import check_names, refuse_long_names
from det_harness.trial.rows import ROWS, Columns, LoggedRows, TrainingRows
from det_harness.trial.spool import Spool, SpooledBatch
from det_native.errors import (
    AuthenticationError,
    DiskFailedError,
    DiskFullError,
    FencedError,
    MasterError,
    RequestError,
    StorageError,
)
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.numbers import words
from det_native.schema.outputs import ArtifactsReport, WrittenFile
from det_native.schema.rest import (
    NOTICE_LENGTH,
    AnyReport,
    CaptureRow,
    CheckpointDeletedReport,
    CheckpointReport,
    ComparisonReport,
    EpochReport,
    EpochRow,
    ExitReport,
    LoggedMedium,
    MediaReport,
    MetricsReport,
    NoValidationReport,
    ReportsAccepted,
    RowsReport,
    StartedReport,
    SystemReport,
    SystemSample,
    UserErrorInfo,
    WarningReport,
)
from det_native.schema.states import ExitReason, MetricKind
from det_native.storage.room import WAITS_FOR_DISK, WAITS_FOR_ROOM

logger = logging.getLogger("det_harness")

MOST_ROWS = 300  # of one report
INTERVAL = 0.08
HEARTBEAT = 2.0
_LONGEST_BACKOFF = 5.0
# Of reports for which the disk has no room: how many are sent at once.
_HELD_AT_ONCE = 100
_UNWANTED = frozenset({403, 404, 410})
_REFUSED_FOR_GOOD = frozenset({400, 413, 422})


class Connection(Protocol):
    """The way to the master, for one run."""

    def send(self, reports: list[str], progress: int | None = None, waiting: str | None = None) -> ReportsAccepted:
        """Send reports (each as JSON), the number of steps done, and what the run waits for if that is new.

        Raises FencedError, RequestError or another MasterError.
        """

    def best(self) -> float | None:
        """Return the experiment's best value of the searcher's metric; raises MasterError if there is no answer."""


class SpoolReporter:
    """Implements ``services.Reporter`` for a worker.

    Rows of training metrics are gathered for `interval` seconds, or as long as the master asks; the first ones, and
    everything else, go at once.
    While the master is away the reports wait on disk and sending is tried again, at most 5 s apart.

    Parameters
    ----------
    interval : float
        Seconds between two batches of training metrics, at least; a master with many runs asks for more.
    on_checkpoint : callable, optional
        Called once the report of a checkpoint lies in the spool, before it can be sent.
    outages : int
        Level of the log at which is said that the master does not answer.
    """

    def __init__(
        self,
        connection: Connection,
        spool: Spool,
        *,
        metric: str | None,
        smaller_is_better: bool = True,
        interval: float = INTERVAL,
        on_checkpoint: Callable[[], None] | None = None,
        outages: int = logging.WARNING,
    ) -> None:
        self._connection = connection
        self._outages = outages
        self._on_checkpoint = on_checkpoint
        self._spool = spool
        self._metric = metric
        self._smaller_is_better = smaller_is_better
        self._interval = self._least_interval = interval
        self._wake = threading.Condition()
        self._seq = 0
        self._last_row = -1
        self._rows = TrainingRows()
        self._logged = LoggedRows()
        self._urgent = False
        self._had_rows = False
        self._closing = self._left = False
        self._deadline = float("inf")
        self._stop = False
        self._sending_ended = False
        self._failure: Exception | None = None
        self._waiting = self._told = ""
        self._held = HeldReports()
        self._lack = WAITS_FOR_ROOM
        self._own: list[float] = []
        self._best_known = True
        self._thread = threading.Thread(target=self._run, name="det-reports", daemon=True)
        self._thread.start()

    @property
    def stop_requested(self) -> bool:
        """Whether the master asked for an early end, or no longer wants this run."""
        return self._stop

    def started(self, batch: int, length: int | None = None, notice: str = "") -> None:
        """Report that training continues after `batch` batches of `length`, and what is to be known of that."""
        with self._wake:
            seq = self._next()
            self._append(StartedReport(seq=seq, batch=batch, length=length, notice=notice[:NOTICE_LENGTH]))

    def training(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        """Report rows of training metrics by column; ``batches[i]`` counts the batches done, from 1."""
        end_forked_child()
        check_names(metrics, batches[-1] if batches else 0)
        with self._wake:
            while self._held.full and not self._stop:
                self._wake.wait(_LONGEST_BACKOFF)
            if not self._had_rows:
                self._had_rows = self._urgent = True
            if not self._rows.takes(metrics.keys(), batches):
                self._append_rows()
            if not self._rows.batches:
                refuse_long_names(metrics, batches[-1] if batches else 0)
            if not self._rows.batches or self._urgent:  # otherwise the thread waits for the end of the interval already
                self._wake.notify()
            self._rows.add(batches, metrics)
            self._last_row = max(self._last_row, *batches)

    def logged(self, batch: int, metrics: Mapping[str, float]) -> None:
        """Report numbers that the user's code has logged after so many batches; of a name the last one counts."""
        with self._wake:
            if len(self._logged) >= ROWS:
                self._append_rows()
            if not self._logged:
                self._wake.notify()
            self._logged.add(batch, metrics)

    def media(self, items: list[LoggedMedium]) -> None:
        """Report what the user's code has logged, and whose contents are stored."""
        self._say(MediaReport, items=items)

    def validation(self, batch: int, metrics: Mapping[str, Any]) -> None:
        """Report the metrics of one validation."""
        check_names(metrics, batch)
        refuse_long_names(metrics, batch)
        with self._wake:
            self._append_rows()
            numbers: Columns = {}
            values: dict[str, list[Any]] = {}
            for name, value in metrics.items():
                if value is None or isinstance(value, int | float):
                    numbers[name] = [value]
                else:
                    values[name] = [words(value)]
            report = MetricsReport(
                seq=self._next(), kind=MetricKind.VALIDATION, batches=[batch], metrics=numbers, values=values
            )
            self._append(report)
            value = metrics.get(self._metric) if self._metric else None
            self._own.append(float("nan") if value is None else value)

    def epoch(self, row: EpochRow) -> None:
        """Report what the framework's own history has of an epoch that has ended."""
        self._say(EpochReport, row=row)

    def checkpoint(self, location: str, manifest: CheckpointManifest) -> None:
        """Report a complete checkpoint."""
        with self._wake:
            self._append_rows()
            report = CheckpointReport(seq=self._next(), location=location, manifest=manifest)
            self._append(report, durable=True, then=self._on_checkpoint)

    def checkpoint_deleted(self, uuid: str) -> None:
        """Report that the user's code has deleted a checkpoint."""
        self._say(CheckpointDeletedReport, uuid=uuid)

    def warning(self, text: str) -> None:
        """Report what has happened in the training and is no failure."""
        self._say(WarningReport, text=text)

    def rows(self, rows: list[CaptureRow]) -> None:
        """Report rows for the experiment's report."""
        self._say(RowsReport, rows=rows[:MOST_ROWS])

    def compare_by(self, metric: str, *, smaller_is_better: bool) -> None:
        """Report by which metric trials are compared."""
        with self._wake:
            self._append_rows()
            self._metric, self._smaller_is_better = metric, smaller_is_better
            self._append(ComparisonReport(seq=self._next(), name=metric, smaller_is_better=smaller_is_better))

    def no_validation(self) -> None:
        """Report that nothing validates."""
        self._say(NoValidationReport)

    def system(self, samples: list[SystemSample]) -> None:
        """Report what processes of the trial use; not while a full disk has the reports wait in memory."""
        with self._wake:
            if not self._held:
                self._append(SystemReport(seq=self._next(), samples=samples))

    def artifacts(self, files: list[WrittenFile], removed: list[str]) -> None:
        """Report files that the user's code has written, and paths that are not there any more."""
        with self._wake:
            self._append_rows()
            self._append(ArtifactsReport(seq=self._next(), files=files, removed=removed))

    def exit(
        self, reason: ExitReason, batch: int, error: UserErrorInfo | None = None, *, early: bool = False
    ) -> ExitReport:
        """Report the end of the run; returns the report. What cannot be reported before it is left out.

        `early` says that the user's code has ended the training before its length.
        """
        end_forked_child()
        with self._wake:
            try:
                self._append_rows()
            except (StorageError, ValueError) as unsaid:
                logger.error("The last rows of metrics cannot be reported: %s", unsaid)
                self._forget_rows()
            report = ExitReport(
                seq=self._next(), reason=reason, batch=batch, error=error, early=early, last_row=self._last_row
            )
            self._append(report, durable=True)
            return report

    def waiting(self, text: str) -> None:
        """Say what the trial waits for, or by an empty text that it waits no longer. It is no report: only the last
        word counts, and none is kept on the disk, which may be what is waited for.
        """
        with self._wake:
            self._waiting = text
            self._urgent = True
            self._wake.notify()

    def best_metric(self) -> float | None:
        """Return the experiment's best value of the searcher's metric, as far as it can be known now.

        Validations of this run count, but for the one reported last. The master is given a second to answer. That it
        does not is said once, until it has answered again: this is asked at every validation.
        """
        values = [value for value in self._own[:-1] if math.isfinite(value)]
        known = None
        try:
            known = self._connection.best()
            self._best_known = True
        except MasterError as error:
            if self._best_known:
                logger.warning("The experiment's best metric is not known, the master does not answer: %s", error)
            self._best_known = False
        if known is not None:
            values.append(known)
        if not values:
            return None
        return min(values) if self._smaller_is_better else max(values)

    def close(self, timeout: float = 10.0) -> bool:
        """Send what is left, for at most `timeout` seconds; returns whether the master has everything.

        Raises
        ------
        StorageError
            If reports could not be kept on disk.
        """
        with self._wake:
            self._append_rows()
            # What has no room on the disk would be lost with this process.
            while self._held and not self._stop and not self._sending_ended:
                self._wake.wait(_LONGEST_BACKOFF)
            self._closing = True
            self._deadline = time.monotonic() + timeout
            self._wake.notify()
        self._thread.join(timeout + 1.0)
        with self._wake:
            complete = self._spool.empty() and not self._held
            if not self._thread.is_alive():
                self._spool.close()
        if self._failure is not None:
            raise self._failure
        return complete

    def leave(self) -> None:
        """Have the thread send what is left; this process goes on, and its end does not wait for it."""
        with self._wake:
            self._closing = self._left = True
            self._wake.notify_all()

    def wait_sent(self, timeout: float) -> bool:
        """Wait until the master has all that was reported, for so many seconds; return whether it has."""

        def sent() -> bool:
            return not (self._rows.batches or self._logged or self._held) and self._spool.empty()

        with self._wake:
            return self._wake.wait_for(lambda: sent() or not self._thread.is_alive(), timeout) and sent()

    def _say(self, report: Callable[..., AnyReport], **fields: object) -> None:
        """Report something that comes after the rows so far."""
        with self._wake:
            self._append_rows()
            self._append(report(seq=self._next(), **fields))

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    def _append(self, report: AnyReport, *, durable: bool = False, then: Callable[[], None] | None = None) -> None:
        held = Held(report.seq, report.model_dump_json(), durable, then)
        try:
            if self._held or not self._spooled(held):
                self._held.add(held)
        except Exception:
            self._seq -= 1  # the number is free again: the master must not find a gap
            raise
        self._urgent = True
        self._wake.notify()

    def _spooled(self, held: Held) -> bool:
        """Put a report into the spool; False if the disk takes none: it then waits in memory, to be sent from there."""
        try:
            self._spool.append(held.seq, held.text, durable=held.durable)
        except (DiskFullError, DiskFailedError) as error:
            self._lack = WAITS_FOR_ROOM if isinstance(error, DiskFullError) else WAITS_FOR_DISK
            if not self._held:
                logger.warning("Reports wait in memory: %s", error)
            return False
        if held.then is not None:
            held.then()
        return True

    def _spool_held(self) -> None:
        while self._held and self._spooled(self._held.first(1)[0]):
            self._held.drop(1)

    def _append_rows(self) -> None:
        for kind, rows in ((MetricKind.TRAINING, self._rows), (MetricKind.LOGGED, self._logged)):
            for batches, columns in rows.take():
                self._append(MetricsReport(seq=self._next(), kind=kind, batches=batches, metrics=columns))

    def _forget_rows(self) -> None:
        self._rows.clear()
        self._logged.clear()

    def _run(self) -> None:
        """The body of the sending thread."""
        try:
            self._send_all()
        finally:
            with self._wake:
                if self._left:
                    self._spool.close()
                self._wake.notify_all()

    def _send_all(self) -> None:
        backoff = 0.1
        last_contact = 0.0
        batch: SpooledBatch | list[Held] | None = None
        while True:
            try:
                batch = self._next_batch(last_contact)
                if batch is None and self._closing:
                    return
                self._send(batch)
            except (FencedError, AuthenticationError) as error:
                self._end_sending(f"The master no longer wants reports of this run: {error}", stop=True)
                return
            except RequestError as error:
                if error.status in _UNWANTED:
                    self._end_sending(f"The master no longer knows this run: {error}", stop=True)
                    return
                if error.status in _REFUSED_FOR_GOOD and batch is not None:
                    self._end_sending(f"The master refused reports, which stay in the spool: {error}", stop=False)
                    return
                backoff = self._pause(backoff, error)
            except (MasterError, OSError) as error:
                backoff = self._pause(backoff, error)
            except StorageError as error:  # handed to the training thread, which ends with it
                self._failure = error
                self._end_sending(str(error), stop=True)
                return
            else:
                backoff = 0.1
            last_contact = time.monotonic()
            if time.monotonic() > self._deadline:
                return

    def _send(self, batch: SpooledBatch | list[Held] | None) -> None:
        waiting = self._waits_for
        if waiting != self._told:  # by itself: the master may have no room for reports
            self._accept(self._connection.send([], activity.steps(), waiting), None)
            self._told = waiting
        reports = [held.text for held in batch] if isinstance(batch, list) else batch.reports if batch else []
        self._accept(self._connection.send(reports, activity.steps()), batch)

    @property
    def _waits_for(self) -> str:
        """What the trial waits for, or its reports do."""
        return self._waiting or (f"{self._lack} in {self._spool.directory}" if self._held else "")

    def _next_batch(self, last_contact: float) -> SpooledBatch | list[Held] | None:
        """Wait for something to send; None means a heartbeat, or the end when closing."""
        with self._wake:
            while True:
                now = time.monotonic()
                due = last_contact + (0.0 if self._urgent or self._closing else self._interval)
                rows = bool(self._rows.batches or self._logged)
                reports = bool(rows or self._held) or not self._spool.empty()
                waiting = reports or self._waits_for != self._told
                if waiting and now >= due:
                    if rows:
                        self._append_rows_in_thread()
                    self._urgent = False
                    self._spool_held()
                    return self._spool.read() or self._held.first(_HELD_AT_ONCE) or None
                if self._closing or now >= last_contact + HEARTBEAT:
                    return None
                self._wake.wait((due if waiting else last_contact + HEARTBEAT) - now)

    def _append_rows_in_thread(self) -> None:
        try:
            self._append_rows()
        except (StorageError, ValueError) as error:
            self._fail(error)
            self._forget_rows()

    def _fail(self, error: Exception) -> None:
        """Hand an error to the training thread, which ends with it."""
        logger.error("%s", error)
        self._failure = error
        self._stop = True

    def _accept(self, accepted: ReportsAccepted, batch: SpooledBatch | list[Held] | None) -> None:
        with self._wake:
            if isinstance(batch, list):
                for held in batch:
                    if held.then is not None:
                        held.then()
                self._held.drop(len(batch))
                self._wake.notify_all()
            elif batch is not None:
                self._spool.confirm(batch)
                self._wake.notify_all()
            self._interval = max(self._least_interval, min(accepted.interval, HEARTBEAT))
            if accepted.stop:
                self._stop = True

    def _pause(self, backoff: float, error: Exception) -> float:
        if backoff < 0.2:
            logger.log(self._outages, "Reports wait, and are sent again: %s", error)
        end = time.monotonic() + backoff
        with self._wake:
            while (now := time.monotonic()) < min(end, self._deadline):
                self._wake.wait(min(end, self._deadline) - now)
        return min(backoff * 2, 0.5 if self._closing and not self._left else _LONGEST_BACKOFF)

    def _end_sending(self, sentence: str, *, stop: bool) -> None:
        # Of a run that has ended, another way may have brought the rest to the master.
        logger.log(self._outages if self._left else logging.ERROR, "%s", sentence)
        with self._wake:
            self._sending_ended = True
            self._stop = self._stop or stop
