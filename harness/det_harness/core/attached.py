"""The services of a trial in a process of the command that is its experiment's ``entrypoint``.

They are made of the worker's job, which lies in the file that ``DET_JOB`` names. What is reported goes to the worker
that has started the command (``serving.py``); checkpoints are written from here.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.connection import Client, Connection
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from det_harness.core.serving import in_folder
from det_harness.logged.recorder import Recorder
from det_harness.program.calls import ProgramSource
from det_harness.program.user_errors import describe
from det_harness.trial.batch_count import BatchCount
from det_harness.trial.checkpoint import TrialCheckpoints
from det_harness.trial.ending import told_length
from det_harness.trial.forks import is_forked_child, this_is_the_worker
from det_harness.trial.lengths import periods_of
from det_harness.trial.of_job import environment_of, journal_of, outputs_of, owner_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Reporter, Services
from det_native.core.cluster_info import JOB_VARIABLE
from det_native.errors import ArgumentError, CommandFailedError, DetError, DiskFullError, InvalidHP, MasterError
from det_native.logged.place import taken_by
from det_native.schema.job import AttachedProcess, TrialJob
from det_native.storage.checkpoints import CheckpointStorage

if TYPE_CHECKING:
    _ReporterBase = Reporter
else:  # whose own methods would hide those of the worker
    _ReporterBase = object


def job_of_process() -> TrialJob:
    """Return the job that this process works at.

    Raises
    ------
    ArgumentError
        If it belongs to no command of an experiment.
    """
    place = os.environ.get(JOB_VARIABLE, "")
    try:
        return TrialJob.model_validate_json(Path(place).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"{JOB_VARIABLE} is {place!r}, which is not the job of a running trial ({type(error).__name__}): remove "
            "that variable to train outside of any experiment."
        ) from error


class WorkerReporter(_ReporterBase):
    """Passes every report to the worker, and waits for its answer."""

    def __init__(self, place: AttachedProcess) -> None:
        self._place = place
        self._lines: tuple[int, threading.Lock, Connection[Any, Any]] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self._ask, name)

    @property
    def stop_requested(self) -> bool:
        """Whether the training is to end early."""
        return bool(self._ask("stop_requested"))

    def completed(self) -> None:
        """Say that the trial's whole length is trained."""
        self._ask("completed")

    def failed(self, failure: BaseException) -> None:
        """Say what ends the trial if the command fails."""
        self._ask("failed", failure)

    def _ask(self, name: str, *arguments: Any, **named: Any) -> Any:
        lock, line = self._line()
        try:
            with lock:
                line.send((name, arguments, named))
                done, answer = line.recv()
        except (EOFError, OSError) as error:
            raise MasterError("The worker that has started this process is gone; it cannot report.") from error
        if done:
            return answer
        kind, text = answer
        raise kind.__new__(kind, text)  # whatever else its class is made of

    def _line(self) -> tuple[threading.Lock, Connection[Any, Any]]:
        """Return the connection of this process; one that was forked makes its own."""
        if self._lines is None or self._lines[0] != os.getpid():
            try:
                with in_folder(Path(self._place.socket)) as address:
                    line = Client(address, "AF_UNIX", authkey=bytes.fromhex(self._place.key))
            except OSError as error:
                raise MasterError("The worker that has started this process is gone; it cannot report.") from error
            self._lines = os.getpid(), threading.Lock(), line
        return self._lines[1:]


@contextmanager
def attached() -> Iterator[Services]:
    """Give the services of the trial that this process of a command works at, for the block.

    An exception that leaves the block is told as the reason if the command fails.
    """
    job = job_of_process()
    assert job.attached is not None
    this_is_the_worker()
    with ExitStack() as stack:
        reporter: Any = WorkerReporter(job.attached)
        terminated = stack.enter_context(_terminated())

        def must_stop() -> bool:
            # The worker is asked in any case: it has to know that this process was told.
            return is_forked_child() or bool(reporter.stop_requested) or terminated.is_set()

        environment = environment_of(job)
        schedule = Schedule(periods_of(environment))
        count = BatchCount(schedule)
        place = job.attached

        def started(batch: int, notice: str) -> None:
            reporter.started(batch, told_length(schedule), notice or place.notice)

        checkpoints = TrialCheckpoints(
            CheckpointStorage(job.checkpoints, job.checkpoint_options),
            owner_of(job),
            reporter,
            resume=job.resume,
            manifests=job.manifests,
            on_start=started,
            journal=None if environment.ranks.rank else journal_of(job),
            stop=must_stop,
        )
        tensorboard = Path(place.tensorboard) if place.tensorboard else None
        recorder = Recorder(reporter, lambda: outputs_of(job), count, tensorboard)
        stack.callback(recorder.close)
        stack.enter_context(taken_by(recorder))
        services = Services(
            environment=environment,
            schedule=schedule,
            reporter=reporter,
            checkpoints=checkpoints,
            stop_requested=must_stop,
            validation_batches=1 if job.test else None,
            tensorboard=tensorboard,
            users_process=True,
            count=count,
            recorder=recorder,
            job=job,
        )
        try:
            yield services
            checkpoints.wait()
        except BaseException as error:
            _tell(error, reporter, job)
            raise
        if schedule.progress.validated_at_end:
            reporter.completed()


def _tell(error: BaseException, reporter: WorkerReporter, job: TrialJob) -> None:
    """Tell the worker of an exception that leaves the program."""
    if isinstance(error, SystemExit):
        return  # how the command ends says what that means
    try:
        if isinstance(error, InvalidHP | DiskFullError):  # they decide what becomes of the trial
            kind = InvalidHP if isinstance(error, InvalidHP) else DiskFullError
            reporter.failed(kind(str(error)))
            return
        info = describe(error, ProgramSource(job.bundle.program, Path(job.directory) / "work"))
        reporter.failed(
            CommandFailedError(info.message, kind=info.type, traceback=info.traceback, file=info.file, line=info.line)
        )
    except (DetError, TypeError, AttributeError):  # the worker is gone
        return


@contextmanager
def _terminated() -> Iterator[threading.Event]:
    """Have SIGTERM ask for a checkpoint and an end; under a launcher, which has its own ways, nothing changes."""
    asked = threading.Event()
    launched = "TORCHELASTIC_RUN_ID" in os.environ
    main = threading.current_thread() is threading.main_thread()
    if launched or not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield asked
        return

    def handle(number: int, frame: FrameType | None) -> None:
        asked.set()

    signal.signal(signal.SIGTERM, handle)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
