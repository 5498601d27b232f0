"""One experiment that runs on this machine: the block around its trials, and what each of them is given."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from det_native.client import rendering
from det_native.client.handles import Checkpoint, Experiment
from det_native.client.local_source import LocalSource
from det_native.display.environment import in_notebook
from det_native.errors import DivergedError
from det_native.experimental.directory import working_directory
from det_native.experimental.local.output import copied_output
from det_native.experimental.local.own_processes import ProcessFailedError, train_in_processes, wants_processes
from det_native.experimental.local.program import keep_program
from det_native.experimental.local.progress import Progress
from det_native.experimental.local.record import Record
from det_native.experimental.local.samples import Sample
from det_native.experimental.settings import Settings
from det_native.frameworks import get_framework
from det_native.local.log import LogWriter
from det_native.local.store import LocalStore
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.environment import TrialEnvironment
from det_native.schema.lengths import UNTOLD
from det_native.schema.manifests import CallKind, Framework
from det_native.schema.own_message import is_out_of_memory, memory_advice, own_message, with_advice
from det_native.schema.states import ExperimentState, TrialState

if TYPE_CHECKING:
    from det_harness.frameworks.base import FrameworkHarness
    from det_harness.local.report import LocalReporter
    from det_harness.local.run import LocalRun

    from det_native.experimental.origin import Origin


# A trial that has begun: as it is recorded, what its reports go to, and its log.
_Begun: TypeAlias = "tuple[rest.Trial, LocalReporter, LogWriter]"


class LocalExperiment:
    """One experiment that runs here, its code kept with it, and its trials as they come.

    Parameters
    ----------
    kind : {"fit", "train", "create", "train_and_evaluate"}
    payload : FitCall, TorchCall or type
        What is trained.
    config : ExperimentConfig
        Complete.
    framework : str
    settings : Settings
    origin : Origin
    whole_epochs : bool
        Whether epochs end with a smaller batch, which a length in records does not know.
    in_processes : bool
        Whether its trials cannot run in this process, whatever its framework says.

    Attributes
    ----------
    handle : Experiment
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
        *,
        whole_epochs: bool = False,
        in_processes: bool = False,
    ) -> None:
        self._payload = payload
        self._complete = config
        self._config = config.model_dump(mode="json")
        self._framework: Framework = framework
        self._settings = settings
        self._needs_processes = in_processes
        self._store = store = LocalStore.create()
        bundle_id = keep_program(store, kind, payload, framework, settings, origin)
        self._record = Record(store, config, framework, bundle_id, whole_epochs=whole_epochs)
        self.handle = Experiment(
            LocalSource(store, _loader(store, self._config, payload, settings.context_dir)), store.id
        )

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the last trial."""
        return self._record.interrupted

    @property
    def in_view(self) -> bool:
        """Whether a live view shows it, which leaves nothing to say for bars and for lines between trials."""
        return self._settings.show == "view" and not self._settings.place.test and in_notebook()

    @contextmanager
    def running(self, planned: int = 1) -> Iterator[None]:
        """Keep the record up to date around the trials, which run in the context directory."""
        with self._store.lock:
            self._record.begin(planned)
            if self.in_view:
                rendering.current().follow(self.handle, "view")
            try:
                with working_directory.inside(self._settings.context_dir):
                    yield
            except BaseException as error:
                self._record.end(ExperimentState.ERROR, describe(error))
                if self._record.trained:
                    print(f"What was done before the error is kept: det.attach({self._store.id!r}).")
                raise
            if self.interrupted:
                self._record.end(ExperimentState.CANCELED, self._record.why_interrupted())
            else:
                self._record.end(ExperimentState.COMPLETED)

    @property
    def in_processes(self) -> bool:
        """Whether its trials run in processes of their own."""
        return self._needs_processes or wants_processes(self._complete, self._framework)

    def run_trial(self, sample: Sample, steps: int | None = None) -> Any:
        """Run one trial to its end and return what the user's call returns: the handle, from processes of its own.

        Parameters
        ----------
        sample : Sample
        steps : int, optional
            Batches of an epoch, where the data tell them.
        """
        from det_harness.frameworks.base import harness_of
        from det_harness.trial.services import OwnProcessNeededError

        harness = harness_of(self._framework)
        with self._recorded(sample, steps) as begun:
            if not self.in_processes:
                try:
                    return self._run_here(sample, begun, harness)
                except OwnProcessNeededError as need:
                    # The trials that follow do the same: they need not be tried here first.
                    self._needs_processes = True
                    print(f"{need}: the trial starts over in a process of its own.")
            self._run_in_processes(begun, harness)
        return self.handle

    def _run_here(self, sample: Sample, begun: _Begun, harness: FrameworkHarness) -> Any:
        with self._run_of(sample, begun) as run:
            run.outcome = harness.controller(self._payload, run.services).run()
        return run.outcome.result

    def _run_in_processes(self, begun: _Begun, harness: FrameworkHarness) -> None:
        trial, reporter, log = begun
        test = self._settings.place.test
        state, batches = train_in_processes(self._store, trial, self._complete, reporter, log, test=test)
        if reporter.checkpoints and not isinstance(self._payload, type):
            # After fit() or train() the user's own objects are trained, wherever that was done.
            harness.bring_back(self._payload, Path(reporter.checkpoints[-1][0]))
        self._record.end_trial(reporter, state, batches=batches)

    @contextmanager
    def trial(self, sample: Sample, steps: int | None = None) -> Iterator[LocalRun]:
        """Record the trial that is run in the block, in this process, which has to say its outcome."""
        with self._recorded(sample, steps) as begun, self._run_of(sample, begun) as run:
            yield run

    @contextmanager
    def _run_of(self, sample: Sample, begun: _Begun) -> Iterator[LocalRun]:
        from det_harness.local.run import local_run

        trial, reporter, log = begun
        with (
            copied_output(log),
            local_run(
                config=self._config,
                hparams=sample.hparams,
                trial_seed=sample.seed,
                directory=self._files(trial.id),
                framework=self._framework,
                test=self._settings.place.test,
                reporter=reporter,
            ) as run,
        ):
            yield run
        assert run.outcome is not None
        self._record.end_trial(reporter, run.state, batches=run.outcome.batches)

    @contextmanager
    def _recorded(self, sample: Sample, steps: int | None) -> Iterator[_Begun]:
        """Begin a trial and show how far it is; an exception of the block ends it, else the block does."""
        from det_harness.local.report import LocalReporter

        trial = self._record.begin_trial(sample, self._length(sample, steps))
        quiet = self.in_view or self._settings.show == "none"
        if self._record.planned > 1 and not quiet:
            print(f"Trial {trial.id} of {self._record.planned}: {sample.hparams}")
        searcher = self._config["searcher"]
        own_bar = get_framework(self._framework).own_progress
        progress = None if self._settings.place.test or own_bar or quiet else Progress(trial, searcher["metric"] or "")
        reporter = LocalReporter(
            searcher["metric"] or None,
            smaller_is_better=searcher["smaller_is_better"],
            observe=progress.observe if progress else None,
        )
        self._record.follow(reporter)
        try:
            with progress or nullcontext(), self._log(trial) as log:
                yield trial, reporter, log
        except BaseException as error:
            if is_out_of_memory(error):
                error.add_note(
                    memory_advice(self._environment(sample).batch_size, self._complete.resources.slots_per_trial)
                )
            self._record.end_trial(reporter, TrialState.ERROR, describe(error))
            raise

    @contextmanager
    def _log(self, trial: rest.Trial) -> Iterator[LogWriter]:
        log = LogWriter(self._store.trial_folder(trial.id), trial.id, f"{self._store.id}-{trial.id}")
        with closing(log):
            yield log

    def _length(self, sample: Sample, steps: int | None) -> int:
        from det_harness.trial.lengths import in_whole_epochs, one_of_each, periods_of

        environment = self._environment(sample)
        periods = one_of_each() if self._settings.place.test else periods_of(environment)
        length = (periods if steps is None else in_whole_epochs(periods, environment, steps)).length
        return 0 if length == UNTOLD.units else length

    def _environment(self, sample: Sample) -> TrialEnvironment:
        return TrialEnvironment(config=self._config, hparams=sample.hparams, trial_seed=sample.seed)

    def folder_of(self, checkpoint: Checkpoint) -> Path:
        """Return where the files of a checkpoint of its lie."""
        return self._files(checkpoint.trial_id) / checkpoint.uuid

    def _files(self, trial_id: int) -> Path:
        folder = self._store.trial_folder(trial_id) / "files"
        folder.mkdir(exist_ok=True)
        return folder


def _loader(
    store: LocalStore, config: dict[str, Any], payload: Any, context_dir: Path | None
) -> Callable[[rest.Checkpoint, Path], Any]:
    """Return what loads a checkpoint by what this process has, in the directory that it was trained in."""

    def load(checkpoint: rest.Checkpoint, directory: Path) -> Any:
        from det_harness.program.load import load_weights

        trial = next(trial for trial in store.trials() if trial.id == checkpoint.trial_id)
        environment = TrialEnvironment(config=config, hparams=trial.hparams, trial_seed=trial.seed)
        with working_directory.inside(context_dir):
            return load_weights(payload, directory, environment)

    return load


def describe(error: BaseException) -> rest.UserErrorInfo:
    """Return an exception of a local run as it is kept with the experiment."""
    for told in (error, error.__cause__):
        if isinstance(told, ProcessFailedError):
            return told.info
    if isinstance(error, DivergedError):
        return rest.UserErrorInfo(
            type=type(error).__name__, message=error.without_batch, traceback="", batch=error.batch or 0
        )
    notes = getattr(error, "__notes__", ())
    return rest.UserErrorInfo(
        type=type(error).__name__,
        message=with_advice(own_message(error), " ".join(notes)) if notes else own_message(error),
        traceback="".join(traceback.format_exception(error)),
    )
