"""One attempt at a trial: the program is unpacked and run up to its training call, and how it ended is reported."""

from __future__ import annotations

import importlib
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType

from det_harness.frameworks.base import harness_of
from det_harness.logged.cell_output import CellOutput
from det_harness.logged.deaf import DeafRecorder
from det_harness.logged.recorder import Recorder
from det_harness.logged.showing import figures_kept
from det_harness.program.earlier import files_on_worker
from det_harness.program.host import WorkerHost
from det_harness.program.inputs import has_notebooks_seed, input_check
from det_harness.program.reads import check_reads
from det_harness.program.runner import ProgramRunner, check_versions
from det_harness.program.user_errors import advised, describe, raised_by_user
from det_harness.ranks.communicator import Communicator
from det_harness.ranks.gang import Failures, SilentReporter, exit_report, ranks_of, run_folder
from det_harness.system.gang import measured
from det_harness.trial import rng
from det_harness.trial.batch_count import BatchCount
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.divergence import LossWatch
from det_harness.trial.ending import ended_early, leave_exit_report, told_length
from det_harness.trial.forks import end_forked_child, is_forked_child, this_is_the_worker
from det_harness.trial.lengths import periods_for
from det_harness.trial.publications import Publications
from det_harness.trial.report import SpoolReporter
from det_harness.trial.schedule import Schedule, Train
from det_harness.trial.services import Outcome, Services
from det_harness.trial.spool import Spool
from det_harness.trial.user_files import UserFiles
from det_harness.trial.warm_start import WarmStart
from det_harness.trial.written_files import WrittenFiles
from det_harness.worker.connection import MasterConnection, session_of_run
from det_harness.worker.gpu_check import check_gpus
from det_native.core.cluster_info import info_of, set_info
from det_native.errors import (
    BundleCheckError,
    BundleCorruptError,
    CheckpointError,
    DiskFullError,
    DivergedError,
    InvalidHP,
    MasterError,
    MissingDependencyError,
    RankLostError,
    StorageError,
    WorkerEnvironmentError,
)
from det_native.frameworks import get_framework
from det_native.schema.environment import TrialEnvironment
from det_native.schema.job import EXIT_RANK_FAILED, TrialJob
from det_native.schema.rest import UserErrorInfo
from det_native.schema.states import ExitReason
from det_native.storage.blobs import BlobStore
from det_native.storage.cached_blobs import blobs_of_job
from det_native.storage.checkpoints import CheckpointStorage
from det_native.storage.linked_data import link_files
from det_native.storage.reached import check_reached
from det_native.storage.room import lacks_room
from det_native.storage.unpack import unpack_bundle

logger = logging.getLogger("det_harness")

EXIT_DONE = 0
EXIT_USER_ERROR = 1
EXIT_HARNESS_ERROR = 3

CLOSE_SECONDS = 5.0

# Not the user's, unless the user's code has raised them.
_RARELY_THE_USERS = (
    BundleCheckError,
    BundleCorruptError,
    CheckpointError,
    MasterError,
    MissingDependencyError,
    RankLostError,
    StorageError,
    WorkerEnvironmentError,
)


class TrialRun:
    """One attempt at a trial, from unpacking to the last report."""

    def __init__(self, job: TrialJob) -> None:
        self._job = job
        self._directory = Path(job.directory)
        self._work = self._directory / "work"
        self._stop = threading.Event()
        self._told_to_stop = False
        self._begun = False
        self._length_told: int | None = None
        self._environment = TrialEnvironment(
            config=job.config,
            hparams=job.hparams,
            experiment_id=job.experiment_id,
            trial_id=job.trial_id,
            trial_seed=job.trial_seed,
            ranks=ranks_of(job.gang),
            stage=job.stage,
        )
        self._output = CellOutput()
        self._failures = Failures(job.gang)
        self._publications = Publications(self._directory, job.run_id, job.checkpoints, job.checkpoint_options)
        self._reporter: SpoolReporter | SilentReporter = (
            SilentReporter() if self._environment.ranks.rank else self._open_reporter()
        )
        self._schedule: Schedule | None = None
        self._written = WrittenFiles(
            self._directory,
            rank=self._environment.ranks.rank,
            ranks=self._environment.ranks.size,
            blobs=self._outputs,
            report=self._reporter.artifacts,
            batches=self._batches,
        )
        self._runner: ProgramRunner | None = None
        self._host: WorkerHost | None = None

    def run(self) -> int:
        """Train, report how it ended, and return the worker's exit code."""
        this_is_the_worker()
        set_info(partial(info_of, self._job))
        with self._terminated_by_signal():
            try:
                with measured(self._job, self._environment.ranks, self._reporter.system):
                    outcome = self._train()
            except BaseException as error:  # noqa: BLE001 (the exit report of this process; reported whatever it is)
                return self._failed(error)
            return self._ended(outcome)

    def _open_reporter(self) -> SpoolReporter:
        job = self._job
        return SpoolReporter(
            MasterConnection(session_of_run(job.master_url, job.token, job.home), job.run_id),
            Spool(self._directory / "spool"),
            metric=self._environment.metric,
            smaller_is_better=self._environment.smaller_is_better,
            on_checkpoint=self._checkpoint_reported,
        )

    def _checkpoint_reported(self) -> None:
        self._publications.end()
        self._written.look_soon()

    def _outputs(self) -> BlobStore:
        """Return where goes what the code writes and logs."""
        return BlobStore(self._job.outputs or self._job.blobs, self._job.storage_options)

    def _batches(self) -> int:
        return self._schedule.progress.batches if self._schedule is not None else 0

    def _train(self) -> Outcome:
        job = self._job
        if job.gang is None or not job.gang.local_rank:  # once on each machine
            for address, mark in job.marks.items():
                check_reached(
                    address, job.checkpoint_options if address == job.checkpoints else job.storage_options, mark
                )
        blobs = blobs_of_job(job.blobs, job.storage_options, job.cache)
        check_versions(job.bundle)
        unpack_bundle(job.bundle, blobs, self._work)
        link_files(job.bundle.links, job.data, self._work, job.storage_options, job.cache)
        check_reads(job.bundle.reads)
        importlib.import_module("det_native.compat")
        importlib.import_module(get_framework(job.bundle.program.framework).module)
        harness = harness_of(job.bundle.program.framework)
        harness.prepare_process()
        self._runner = runner = ProgramRunner(job.bundle, blobs.read, self._work)
        self._schedule = Schedule(periods_for(job.bundle.program.framework, self._environment))
        folder = run_folder(self._directory, job.gang)
        with harness.joined(job.gang, job.config, folder, runner.source) as communicator, harness.calls_taken():
            return self._run_program(runner, self._schedule, communicator, blobs)

    def _run_program(
        self, runner: ProgramRunner, schedule: Schedule, communicator: Communicator, blobs: BlobStore
    ) -> Outcome:
        job = self._job
        folder = run_folder(self._directory, job.gang)
        checkpoints = self._checkpoints()
        events = folder.parent.parent / "tensorboard" / str(job.experiment_id) / str(job.trial_id)
        count = BatchCount(schedule)
        # Only what the first rank logs counts: the others log the same.
        first = not self._environment.ranks.rank
        recorder = Recorder(self._reporter, self._outputs, count, events if first else None, self._output)
        services = Services(
            environment=self._environment,
            schedule=schedule,
            reporter=LossWatch(self._reporter, self._environment),
            checkpoints=checkpoints,
            stop_requested=self._must_stop,
            validation_batches=1 if job.test else None,
            tensorboard=events,
            files=UserFiles(self._work, earlier=checkpoints.earlier),
            add_folder=self._written.add_folder,
            communicator=communicator,
            warm_start=None if job.warm_start is None else WarmStart(job.warm_start),
            count=count,
            recorder=recorder if first else DeafRecorder(),
        )
        runner.own_seed = has_notebooks_seed(job)
        runner.add_rows = self._reporter.rows
        self._written.namespace = vars(runner.module)
        title, add_rows = runner.source.program.title, self._reporter.rows
        check = input_check(job, title, blobs.read, add_rows, place=runner.place, folder=self._work)
        harness = harness_of(job.bundle.program.framework)

        def before() -> None:
            check_gpus(job, harness, self._reporter)
            self._written.begin()

        self._host = host = WorkerHost(
            self._environment,
            runner.calls,
            services,
            check,
            read_blob=blobs.read,
            files=files_on_worker(job.earlier),
            before_training=before,
        )
        figures_kept()
        rng.seed_process(job.trial_seed)
        try:
            with self._failures.noted():
                return host.run(runner.run)
        finally:
            recorder.close()
            services.checkpoints.wait()

    def _checkpoints(self) -> TrialCheckpoints:
        job = self._job
        owner = CheckpointOwner(
            framework=job.bundle.program.framework,
            hparams=job.hparams,
            experiment_id=job.experiment_id,
            trial_id=job.trial_id,
            run_id=job.run_id,
            bundle_id=job.bundle_id,
        )
        return TrialCheckpoints(
            CheckpointStorage(job.checkpoints, job.checkpoint_options),
            owner,
            self._reporter,
            resume=job.resume,
            manifests=job.manifests,
            on_start=self._started,
            journal=None if self._environment.ranks.rank else self._publications,
            stop=self._must_stop,
            output=self._output,
        )

    def _started(self, batch: int, notice: str) -> None:
        self._begun = True
        self._length_told = told_length(self._schedule)
        self._reporter.started(batch, self._length_told, notice)

    def _must_stop(self) -> bool:
        """Whether training is to end early, which the controller then knows."""
        if is_forked_child():
            return True  # it ends at the next batch, and there for good
        if self._stop.is_set() or self._reporter.stop_requested:
            self._told_to_stop = True
        return self._told_to_stop

    def _ended(self, outcome: Outcome) -> int:
        # Where the user's own code had ended training before, a stop asked for later changes nothing.
        if outcome.stopped and self._told_to_stop:
            return self._exit(ExitReason.STOPPED, outcome.batches, None, EXIT_DONE)
        early = ended_early(outcome, self._schedule, self._length_told)
        return self._exit(ExitReason.COMPLETED, outcome.batches, None, EXIT_DONE, early=early)

    def _failed(self, error: BaseException) -> int:
        end_forked_child()
        done = self._batches()
        first = self._failures.is_first(error)
        runner = self._runner
        if runner is None or (isinstance(error, _RARELY_THE_USERS) and not raised_by_user(error, runner.source)):
            if isinstance(error, RankLostError | WorkerEnvironmentError):
                logger.error("%s", error)
            else:
                logger.error("The worker failed.", exc_info=error)
            kind = DiskFullError if lacks_room(error) else type(error)
            info = UserErrorInfo(type=kind.__name__, message=str(error), traceback="", batch=done)
            reason, code = ExitReason.HARNESS_ERROR, EXIT_HARNESS_ERROR
        else:
            info = advised(
                describe(error, runner.source, self._failing_batch(done)), error, self._environment, runner.source
            )
            if isinstance(error, DivergedError):  # no line of the code is to blame: a sentence says it all
                info = UserErrorInfo(
                    type=info.type, message=error.without_batch, traceback="", batch=error.batch or done
                )
            reason, code = ExitReason.USER_ERROR, EXIT_USER_ERROR
            if isinstance(error, InvalidHP):
                reason = ExitReason.INVALID_HYPERPARAMETERS
            else:  # what is refused is no error, and the master's line in the log says it
                print(
                    info.traceback or f"{info.type} at batch {info.batch}: {info.message}", file=sys.stderr, flush=True
                )
        if not first:
            reason, code = ExitReason.PEER_FAILED, EXIT_RANK_FAILED
        return self._exit(reason, done, self._failures.name(info), code)

    def _failing_batch(self, done: int) -> int:
        """Return the batch in which an exception was raised: one that was not completed, if it was one of training."""
        if self._host is None or self._host.failure is None or self._schedule is None or not self._begun:
            return done
        return done + 1 if isinstance(self._schedule.next(), Train) else done

    def _exit(
        self, reason: ExitReason, batches: int, error: UserErrorInfo | None, code: int, *, early: bool = False
    ) -> int:
        self._written.end()
        if reason is ExitReason.PEER_FAILED:  # the master hears of the failure from the process that it was in
            report = exit_report(reason, batches, error)
        else:
            report = self._reporter.exit(reason, batches, error, early=early)
        leave_exit_report(self._directory, report)
        if not self._reporter.close(CLOSE_SECONDS):
            logger.warning("The master did not take the last reports; they are in the run's spool.")
        return code

    @contextmanager
    def _terminated_by_signal(self) -> Iterator[None]:
        """SIGTERM asks for a checkpoint and an end."""

        def handle(number: int, frame: FrameType | None) -> None:
            self._stop.set()

        previous = signal.signal(signal.SIGTERM, handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, previous)
