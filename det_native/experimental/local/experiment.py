"""One experiment that runs on this machine: the block around its trials, and what each of them is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from det_native.client import rendering
from det_native.client.handles import Checkpoint, Experiment
from det_native.client.last import note_begun
from det_native.client.local_source import LocalSource
from det_native.display.environment import in_notebook
from det_native.errors import InvalidHP
from det_native.experimental.directory import working_directory
from det_native.experimental.local.failures import describe
from det_native.experimental.local.output import copied_output
from det_native.experimental.local.program import keep_program
from det_native.experimental.local.progress import Progress
from det_native.experimental.local.record import Record
from det_native.experimental.local.samples import Sample, Stage
from det_native.experimental.local.written_files import files_listed
from det_native.experimental.settings import Settings
from det_native.frameworks import get_framework
from det_native.local.log import LogWriter
from det_native.local.store import LocalStore
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.environment import TrialEnvironment
from det_native.schema.job import WarmStartSource
from det_native.schema.lengths import UNTOLD
from det_native.schema.manifests import CallKind, CheckpointManifest, Framework
from det_native.schema.own_message import is_out_of_memory, memory_advice
from det_native.schema.stage_words import begins_with, trained_on
from det_native.schema.states import ExperimentState, MetricKind, TrialState

if TYPE_CHECKING:
    from det_harness.local.report import LocalReporter
    from det_harness.local.run import LocalRun

    from det_native.experimental.origin import Origin


# A trial that has begun: as it is recorded, what is asked of it, what its reports go to, and its log.
_Begun: TypeAlias = "tuple[rest.Trial, Stage, LocalReporter, LogWriter]"


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
    ) -> None:
        self._payload = payload
        self._complete = config
        self._config = config.model_dump(mode="json")
        self._framework: Framework = framework
        self._settings = settings
        self._store = store = LocalStore.create()
        bundle_id = keep_program(store, kind, payload, framework, settings, origin)
        self._failing_batch = 0
        self._failure: tuple[BaseException, rest.UserErrorInfo] | None = None
        self._record = Record(store, config, framework, bundle_id, whole_epochs=whole_epochs)
        # Each trial of a search has made models of its own, which may have other layers: its program makes them again.
        made_elsewhere = config.searcher.name != "single" and not isinstance(payload, type)
        loader = None if made_elsewhere else _loader(store, self._config, payload, settings.context_dir)
        self.handle = Experiment(LocalSource(store, loader), store.id)
        note_begun(self.handle)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the last trial."""
        return self._record.interrupted

    @property
    def in_view(self) -> bool:
        """Whether a live view shows it, which leaves nothing to say for bars and for lines between trials."""
        return self._settings.show == "view" and not self._settings.place.test and in_notebook()

    @property
    def record(self) -> Record:
        """What is kept of it and its trials."""
        return self._record

    @contextmanager
    def running(
        self, planned: int | None = 1, share_done: Callable[[Mapping[int, float]], float] | None = None
    ) -> Iterator[None]:
        """Keep the record up to date around the trials, which run in the context directory.

        Parameters
        ----------
        planned : int or None
            How many trials there will be; None where what they come to decides it.
        share_done : callable, optional
            See ``Record.begin()``.
        """
        from det_harness.trial.services import OwnProcessNeededError

        with self._store.lock:
            self._record.begin(planned, share_done)
            if self.in_view:
                rendering.current().follow(self.handle, "view")
            try:
                with working_directory.inside(self._settings.context_dir), _environment_kept(self._payload):
                    yield
            except BaseException as error:
                failure = self._failure
                told = failure is not None and failure[0] is error
                state = ExperimentState.CANCELED if isinstance(error, OwnProcessNeededError) else ExperimentState.ERROR
                self._record.end(state, failure[1] if failure and told else describe(error))
                if self._record.trained:
                    print(f"What was done before the error is kept: det.attach({self._store.id!r}).")
                raise
            finally:
                self._failure = None  # its traceback holds the user's objects
            if self.interrupted:
                self._record.end(ExperimentState.CANCELED, self._record.why_interrupted())
            else:
                self._record.end(ExperimentState.COMPLETED)

    def run_trial(self, sample: Sample, steps: int | None = None) -> Any:
        """Run the trial to its end and return what the user's call returns.

        Parameters
        ----------
        sample : Sample
        steps : int, optional
            Batches of an epoch, where the data tell them.
        """
        from det_harness.frameworks.base import harness_of

        harness = harness_of(self._framework)
        with self._recorded(Stage(1, sample), steps) as begun:
            if not isinstance(self._payload, type):
                harness.build(self._payload)
                harness.note_names(self._payload)
            with self._run_of(begun) as run:
                run.outcome = harness.controller(self._payload, run.services).run()
            return run.outcome.result

    @contextmanager
    def trial(self, sample: Sample, steps: int | None = None) -> Iterator[LocalRun]:
        """Record the trial that is run in the block, in this process, which has to say its outcome."""
        with self._recorded(Stage(1, sample), steps) as begun, self._run_of(begun) as run:
            yield run

    @contextmanager
    def _run_of(self, begun: _Begun) -> Iterator[LocalRun]:
        from det_harness.frameworks.base import harness_for
        from det_harness.local.bundle import blobs_of
        from det_harness.local.run import local_run

        trial, stage, reporter, log = begun
        harness = harness_for(self._payload)
        if getattr(self._payload, "bar_left_out", False):
            self._payload.log_line = partial(log.write, stream="stdout")
        with (
            copied_output(log),
            files_listed(self._store, trial.id, reporter),
            local_run(
                config=self._config,
                hparams=stage.sample.hparams,
                trial_seed=stage.sample.seed,
                stage=_written(stage),
                resume=self._resume(stage, reporter),
                warm_start=self._weights(stage),
                directory=self._files(trial.id),
                outputs=blobs_of(self._store.folder),
                framework=self._framework,
                test=self._settings.place.test,
                reporter=reporter,
                seeded=harness.begins_with_seed(self._payload),
                part=getattr(self._payload, "part", "batch"),
            ) as run,
        ):
            try:
                yield run
            except BaseException:
                self._failing_batch = run.failing_batch
                raise
        if reporter.checkpoints and not isinstance(self._payload, type):
            harness.note_end(self._payload, Path(reporter.checkpoints[-1][0]))
        assert run.outcome is not None
        self._record.end_trial(reporter, run.state, batches=run.outcome.batches)

    @contextmanager
    def _recorded(self, stage: Stage, steps: int | None) -> Iterator[_Begun]:
        """Begin a trial and show how far it is; an exception of the block ends it, else the block does."""
        from det_harness.local.report import LocalReporter
        from det_harness.trial.services import OwnProcessNeededError

        weights = self._weights(stage)
        warm_start = None if weights is None else weights.manifest.uuid
        trial = self._record.begin_trial(stage, self._length(stage, steps), warm_start)
        quiet = self.in_view or self._settings.show == "none"
        if self._record.planned != 1 and not quiet:
            print(self._announced(trial, stage))
        searcher = self._config["searcher"]
        own_bar = get_framework(self._framework).own_progress
        progress = None if self._settings.place.test or own_bar or quiet else Progress(trial, searcher["metric"] or "")
        reporter = LocalReporter(
            searcher["metric"] or None,
            smaller_is_better=searcher["smaller_is_better"],
            observe=progress.observe if progress else None,
        )
        if stage.goes_on:
            checkpoints = [(one.location, one.manifest) for one in self._store.checkpoints(trial.id)]
            training, validation, logged = (self._store.rows(trial.id, kind) for kind in MetricKind)
            epochs, media = self._store.epochs(trial.id), self._store.media(trial.id)
            reporter.take_up(training, validation, checkpoints, epochs, logged, media)
            reporter.system(self._store.samples(trial.id))
        self._record.follow(reporter)
        try:
            with progress or nullcontext(), self._log(trial) as log:
                self._log_stage(stage, weights, log)
                yield trial, stage, reporter, log
        except BaseException as error:
            if is_out_of_memory(error):
                error.add_note(
                    memory_advice(self._environment(stage).batch_size, self._complete.resources.slots_per_trial)
                )
            # Of what starts over in a process of its own, this is no failure.
            ended = isinstance(error, InvalidHP | OwnProcessNeededError)
            state = TrialState.CANCELED if ended else TrialState.ERROR
            self._failure = error, describe(error, self._failing_batch)
            self._record.end_trial(reporter, state, self._failure[1])
            raise

    @contextmanager
    def _log(self, trial: rest.Trial) -> Iterator[LogWriter]:
        log = LogWriter(self._store.trial_folder(trial.id), trial.id, f"{self._store.id}-{trial.id}")
        with closing(log):
            yield log

    def _announced(self, trial: rest.Trial, stage: Stage) -> str:
        """Return the line between two trials."""
        if stage.goes_on:
            return f"Trial {trial.id} goes on, to batch {trial.target_batches}."
        of = "" if self._record.planned is None else f" of {self._record.planned}"
        return f"Trial {trial.id}{of}: {trial.hparams}"

    def _log_stage(self, stage: Stage, weights: WarmStartSource | None, log: LogWriter) -> None:
        """Tell the trial's log what the search asks of it, as a master does."""
        if stage.goes_on and stage.length is not None:
            log.write(trained_on(stage.length), "system")
        if weights is not None:
            log.write(begins_with(stage.parent, weights.manifest), "system")

    def _resume(self, stage: Stage, reporter: LocalReporter) -> CheckpointManifest | None:
        """Return the checkpoint where a trial goes on."""
        return reporter.checkpoints[-1][1] if stage.goes_on and reporter.checkpoints else None

    def _weights(self, stage: Stage) -> WarmStartSource | None:
        """Return whose weights a new trial begins with."""
        if stage.parent is None or stage.goes_on:
            return None
        found = self._store.checkpoints(stage.parent)
        if not found:
            return None
        return WarmStartSource(checkpoints=str(self._files(stage.parent)), manifest=found[-1].manifest)

    def _length(self, stage: Stage, steps: int | None) -> int:
        from det_harness.trial.lengths import in_whole_epochs, one_of_each, periods_of

        environment = self._environment(stage)
        periods = one_of_each() if self._settings.place.test else periods_of(environment)
        records = self._complete.records_per_epoch
        if steps is None and get_framework(self._framework).whole_epochs and records and environment.batch_size:
            steps = -(-records // environment.batch_size)
        length = (periods if steps is None else in_whole_epochs(periods, environment, steps)).length
        return 0 if length == UNTOLD.units else length

    def _environment(self, stage: Stage) -> TrialEnvironment:
        hparams, seed = stage.sample
        return TrialEnvironment(config=self._config, hparams=hparams, trial_seed=seed, stage=_written(stage))

    def last_value(self, trial_id: int, metric: str) -> float | None:
        """Return a metric of a trial at its last validation that has it; None if there is none."""
        found = [row.metrics[metric] for row in self._store.rows(trial_id, "validation") if metric in row.metrics]
        return float(found[-1]) if found else None

    def folder_of(self, checkpoint: Checkpoint) -> Path:
        """Return where the files of a checkpoint of its lie."""
        return self._files(checkpoint.trial_id) / checkpoint.uuid

    def _files(self, trial_id: int) -> Path:
        folder = self._store.trial_folder(trial_id) / "files"
        folder.mkdir(exist_ok=True)
        return folder


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


def _written(stage: Stage) -> dict[str, int] | None:
    return None if stage.length is None else stage.length.model_dump()


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
