"""One training in this process: a run of one trial, which the master of this machine records."""

from __future__ import annotations

import contextvars
import logging
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_native._version import PROTOCOL
from det_native.client import rendering
from det_native.client.addresses import named_master
from det_native.client.last import note_begun
from det_native.display.environment import in_notebook
from det_native.errors import DetError, InvalidHP
from det_native.experimental.choice import choice
from det_native.experimental.directory import working_directory
from det_native.experimental.local.checkpoint_place import place_of_checkpoints
from det_native.experimental.local.failures import describe
from det_native.experimental.local.output import copied_output
from det_native.experimental.local.program import kept_program
from det_native.experimental.local.progress import Observe, progress_bar, progress_line
from det_native.experimental.local.samples import Sample
from det_native.experimental.settings import Settings
from det_native.frameworks import get_framework
from det_native.kernel_runs.folder import VARIABLE, make_run_folder, records
from det_native.kernel_runs.process import this_process
from det_native.kernel_runs.recording import Recording
from det_native.runtime import Later
from det_native.schema.config import ExperimentConfig
from det_native.schema.environment import TrialEnvironment
from det_native.schema.kernel_runs import KernelRun
from det_native.schema.lengths import UNTOLD
from det_native.schema.manifests import CallKind, Framework
from det_native.schema.own_message import is_out_of_memory, memory_advice
from det_native.schema.rest import CaptureRow, Checkpoint, UserErrorInfo
from det_native.schema.states import ExitReason

if TYPE_CHECKING:
    from det_harness.local.run import LocalRun, LocalTrial
    from det_harness.trial.publications import Publications
    from det_harness.trial.report import SpoolReporter

    from det_native.capture.model import Bundle
    from det_native.client.handles import Experiment
    from det_native.experimental.origin import Origin
    from det_native.kernel_runs.source import KernelSource

_UNRECORDED = f"This run is not recorded: {VARIABLE} is off."
_NO_FOLDER = "This run is not recorded: neither DET_HOME nor the folder of temporary files could be written."
_QUICK_CHECK = "A quick check (test=True) is not recorded."


class LocalExperiment:
    """A training in this process, its code kept with it.

    Parameters
    ----------
    payload : FitCall, TorchCall, type or None
        What is trained; None where the code does it by itself.
    config : ExperimentConfig
        Complete.
    steps : int, optional
        Batches of an epoch, where the data tell them.

    """

    #: What changes is the experiment, not the notebook: capture tells this object by its identity.
    _det_known_by_identity = True

    def __init__(
        self,
        kind: CallKind,
        payload: Any,
        config: ExperimentConfig,
        framework: Framework,
        settings: Settings,
        origin: Origin,
        sample: Sample,
        steps: int | None = None,
    ) -> None:
        from det_native.storage.checkpoints import CheckpointStorage

        self._payload = payload
        self._framework: Framework = framework
        self._settings = settings
        self._sample = sample
        self._folder = folder = make_run_folder(recorded=records() and not settings.place.test)
        self._named = named = named_master(settings.master_url)
        self._place, self._config = place_of_checkpoints(config, folder, elsewhere=named is not None)
        self._storage = CheckpointStorage(*self._place)
        self._environment = TrialEnvironment(
            config=self._config.model_dump(mode="json"), hparams=sample.hparams, trial_seed=sample.seed
        )
        self._length = self._length_in(steps)
        self._run: LocalRun | None = None
        self._journal: Publications | None = None
        self._bundle: Bundle | None = None
        self._recording: Recording | None = None
        if not folder.temporary:
            self._bundle, why = kept_program(kind, payload, framework, settings, origin, folder.blobs)
            self._recording = Recording(folder, self._request(why), named)
        note_begun(Later(lambda: self.handle))

    @cached_property
    def handle(self) -> Experiment:
        """The handle, made when somebody asks for it first: what it needs is not loaded before the first batch."""
        from det_native.client.handles import Experiment

        return Experiment(self._source, self._source.number)

    @cached_property
    def _source(self) -> KernelSource:
        from det_native.kernel_runs.source import KernelSource

        unrecorded = _QUICK_CHECK if self._settings.place.test else _UNRECORDED if not records() else _NO_FOLDER
        return KernelSource(self._recording, self._load, unrecorded)

    @property
    def in_view(self) -> bool:
        """Whether a view shows it, which leaves nothing to say for bars."""
        return self._settings.show == "view" and not self._settings.place.test and in_notebook()

    def run(self) -> Any:
        """Train to the end and return what the user's call returns."""
        from det_harness.frameworks.base import harness_of

        harness = harness_of(self._framework)
        with self.running() as run:
            if not isinstance(self._payload, type):
                harness.build(self._payload)
                harness.note_names(self._payload)
            run.outcome = harness.controller(self._payload, run.services).run()
        return self.handle if run.outcome.result is None else run.outcome.result

    @contextmanager
    def running(self) -> Iterator[LocalRun]:
        """Report the training of the block, which runs in the context directory and has to say its outcome."""
        from det_harness.trial.forks import this_is_the_worker
        from det_harness.trial.services import OwnProcessNeededError

        this_is_the_worker()
        reporter = self._open_reporter()
        try:
            with (
                working_directory.inside(self._settings.context_dir),
                _environment_kept(self._payload),
                self._progress() as observe,
                self._kept_output(reporter),
                self._local_run(reporter, observe) as run,
            ):
                self._run = run
                yield run
            self._note_end(run)
        except OwnProcessNeededError:
            self._end(reporter, ExitReason.STOPPED)  # it starts over elsewhere: this is no failure
            raise
        except BaseException as error:
            if is_out_of_memory(error):
                slots = self._config.resources.slots_per_trial
                error.add_note(memory_advice(self._environment.batch_size, slots))
            reason = self._reason_of(error)
            failing = 0 if self._run is None else self._run.failing_batch
            self._end(reporter, reason, None if reason is ExitReason.STOPPED else describe(error, failing))
            raise
        stopped = run.outcome is not None and run.outcome.stopped and reporter.stop_requested
        if run.interrupted.is_set() or stopped:
            self._end(reporter, ExitReason.STOPPED)
        else:
            self._end(reporter, ExitReason.COMPLETED)

    def _reason_of(self, error: BaseException) -> ExitReason:
        """Return how the training ends by an exception."""
        return ExitReason.INVALID_HYPERPARAMETERS if isinstance(error, InvalidHP) else ExitReason.USER_ERROR

    def _open_reporter(self) -> SpoolReporter:
        from det_harness.local.connection import NoRecord, RecordedConnection
        from det_harness.trial.publications import Publications
        from det_harness.trial.report import SpoolReporter
        from det_harness.trial.spool import Spool

        folder, recording = self._folder, self._recording
        if recording is not None:
            self._journal = Publications(folder.path, folder.run_id, *self._place)
            self._show_when_recorded(recording)
        return SpoolReporter(
            NoRecord() if recording is None else RecordedConnection(recording, folder.run_id),
            Spool(folder.path / "spool"),
            metric=self._environment.metric,
            smaller_is_better=self._environment.smaller_is_better,
            on_checkpoint=None if self._journal is None else self._journal.end,
            outages=logging.DEBUG,
        )

    def _local_run(self, reporter: SpoolReporter, observe: Observe | None) -> AbstractContextManager[LocalRun]:
        from det_harness.local.run import local_run

        return local_run(**self._trial(reporter, observe))

    def _trial(self, reporter: SpoolReporter, observe: Observe | None) -> LocalTrial:
        """Return what the harness is to train."""
        from det_harness.frameworks.base import harness_for
        from det_harness.local.run import LocalTrial
        from det_harness.trial.checkpoint import CheckpointOwner

        folder = self._folder
        return LocalTrial(
            config=self._environment.config,
            hparams=self._sample.hparams,
            trial_seed=self._sample.seed,
            owner=CheckpointOwner(
                framework=self._framework,
                hparams=self._sample.hparams,
                experiment_id=0,  # the master has the numbers, and none may be there yet
                trial_id=0,
                run_id=folder.run_id,
                bundle_id=None if self._bundle is None else self._bundle.manifest.id,
            ),
            checkpoints=self._storage,
            blobs=folder.blobs,
            tensorboard=folder.tensorboard,
            reporter=reporter,
            test=self._settings.place.test,
            observe=observe,
            journal=self._journal,
            seeded=self._payload is None or harness_for(self._payload).begins_with_seed(self._payload),
            part=getattr(self._payload, "part", "batch"),
        )

    @contextmanager
    def _kept_output(self, reporter: SpoolReporter) -> Iterator[None]:
        """Keep what the training in the block prints, and the files that it writes."""
        from det_harness.local.written_files import files_reported

        if self._recording is None:
            yield
            return
        with (
            copied_output(self._folder.path / "output.log") as write,
            files_reported(self._folder.blobs, reporter.artifacts, self._batches),
        ):
            if getattr(self._payload, "bar_left_out", False):
                self._payload.log_line = lambda text: write(f"{text}\n")
            yield

    @contextmanager
    def _progress(self) -> Iterator[Observe | None]:
        """Show how far the training in the block is; gives what is told of each report."""
        settings, recording = self._settings, self._recording
        target, metric = self._length, self._environment.metric
        shown: AbstractContextManager[Observe | None] = nullcontext()
        if self.in_view:
            shown = progress_line(target, metric, over=lambda: recording is not None and recording.numbers is not None)
        elif settings.show != "none" and not settings.place.test and not get_framework(self._framework).own_progress:
            shown = progress_bar(target, metric)
        with shown as show:
            if recording is None:
                yield show
                return

            def observe(batches: int, metrics: Mapping[str, Any]) -> None:
                recording.begun.set()
                if show is not None:
                    show(batches, metrics)

            yield observe

    def _show_when_recorded(self, recording: Recording) -> None:
        """Have a live view under this cell as soon as there is something that it can ask."""
        if not self.in_view:
            return
        context = contextvars.copy_context()  # in which the thread publishes under this cell

        def show() -> None:
            import det_native.display  # noqa: F401 (registers what shows it)

            with suppress(DetError, OSError):
                context.run(rendering.current().follow, self.handle, "view")

        recording.when_recorded(lambda: threading.Thread(target=show, name="det-live-begins", daemon=True).start())

    def _note_end(self, run: LocalRun) -> None:
        """Make of this process what a training leaves beside its objects."""
        from det_harness.frameworks.base import harness_for

        last = run.reporter.last_checkpoint
        if last is None or self._payload is None or isinstance(self._payload, type):
            return
        harness, location = harness_for(self._payload), Path(last[0])
        if location.is_dir():
            harness.note_end(self._payload, location)
            return
        with tempfile.TemporaryDirectory(prefix="det-checkpoint-") as folder:
            self._storage.fetch(last[1].uuid, Path(folder) / "files", last[1].sha256)
            harness.note_end(self._payload, Path(folder) / "files")

    def _end(self, reporter: SpoolReporter, reason: ExitReason, error: UserErrorInfo | None = None) -> None:
        """Report how the training has ended; the thread goes on sending."""
        from det_harness.trial.ending import ended_early, leave_exit_report

        run, folder, recording = self._run, self._folder, self._recording
        early = (
            reason is ExitReason.COMPLETED
            and run is not None
            and run.outcome is not None
            and ended_early(run.outcome, run.services.schedule, run.told_length)
        )
        report = reporter.exit(reason, self._batches(), error, early=early)
        if recording is None:
            reporter.close()
            folder.remove()
            return
        leave_exit_report(folder.path, report)
        reporter.leave()
        self._source.ended(reporter)
        recording.end()
        if choice().folder is not None:  # a notebook that runs as a whole, where nobody waits
            with suppress(DetError):
                choice().note(self.handle.id, self._named or "")
        if recording.failed:
            print(recording.why_not)
        elif reason is ExitReason.USER_ERROR and report.batch:
            print("What was done before the error is kept: det.last_experiment() has it.")

    def _batches(self) -> int:
        return 0 if self._run is None else self._run.batches

    def _request(self, why_no_program: str) -> KernelRun:
        found = [] if self._bundle is None else self._bundle.report
        return KernelRun(
            protocol=PROTOCOL,
            run_id=self._folder.run_id,
            token=self._folder.token,
            config=self._environment.config,
            framework=self._framework,
            hparams=self._sample.hparams,
            trial_seed=self._sample.seed,
            length=self._length,
            bundle=None if self._bundle is None else self._bundle.manifest,
            no_program=why_no_program,
            report=[CaptureRow.model_validate(row.model_dump()) for row in found],
            process=this_process(),
            directory=str(self._folder.path),
            started=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        )

    def _length_in(self, steps: int | None) -> int:
        """Return the batches of the trial; 0 where the training says by itself how long it is."""
        from det_harness.trial.lengths import in_whole_epochs, one_of_each, periods_of

        environment, records = self._environment, self._config.records_per_epoch
        periods = one_of_each() if self._settings.place.test else periods_of(environment)
        if steps is None and get_framework(self._framework).whole_epochs and records and environment.batch_size:
            steps = -(-records // environment.batch_size)
        length = (periods if steps is None else in_whole_epochs(periods, environment, steps)).length
        return 0 if length == UNTOLD.units else length

    def _load(self, checkpoint: Checkpoint, directory: Path) -> Any:
        """Load a checkpoint by what this process has, in the directory that it was trained in."""
        from det_harness.program.load import load_weights

        with working_directory.inside(self._settings.context_dir):
            return load_weights(self._payload, directory, self._environment)


@contextmanager
def _environment_kept(payload: Any) -> Iterator[None]:
    """Give the context of a call what `init()` knew of the trial, after the block: another call fills in its own."""
    context = None if payload is None or isinstance(payload, type) else payload.context
    environment = None if context is None else context.env
    try:
        yield
    finally:
        if context is not None:
            context.use_environment(environment)
