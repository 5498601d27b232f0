"""Training in this process: one call of ``fit()``, or the trials of a Trial class one after the other."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_native.client import rendering
from det_native.client.handles import Experiment
from det_native.client.progress import newest_metrics
from det_native.experimental.directory import working_directory
from det_native.experimental.local_program import keep_program
from det_native.experimental.local_source import LocalSource
from det_native.experimental.local_store import LocalStore, now, trial_row
from det_native.experimental.settings import Settings, complete_for_fit
from det_native.frameworks import get_framework
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import CallKind, CheckpointManifest, Framework
from det_native.schema.retention import superfluous
from det_native.schema.sampling import grid_points, sample_hyperparameters, trial_seeds
from det_native.schema.states import CheckpointState, ExperimentState, TrialState

if TYPE_CHECKING:
    from det_harness.local.run import LocalReporter, LocalRun
    from det_harness.trial.services import Controller, Services

    from det_native.experimental.origin import Origin
    from det_native.trial import Trial

BuildController = Callable[["Services"], "Controller"]


def fit_here(call: Any, settings: Settings, origin: Origin) -> Any:
    """Run a captured call of ``fit()`` in this process and return Keras's ``History``.

    Ctrl-C ends the training with a checkpoint; the history so far is returned.

    Parameters
    ----------
    call : FitCall
    settings : Settings
    origin : Origin
    """
    from det_harness.frameworks.base import harness_of

    config = config_of_one_trial(settings, call)
    environment: TrialEnvironment = call.context.env
    experiment = LocalExperiment(config, call.framework, whole_epochs=True)
    experiment.keep_program("fit", call, settings, origin)
    call.context.experiment = experiment.handle(call)
    with experiment.running(), working_directory.inside(settings.context_dir):
        return experiment.run_trial(
            lambda services: harness_of(call.framework).controller(call, services),
            hparams=sample_hyperparameters(config.hyperparameters, environment.trial_seed) | environment.hparams,
            seed=environment.trial_seed,
            test=settings.place.test,
        )


def config_of_one_trial(settings: Settings, call: Any) -> ExperimentConfig:
    """Return the configuration of a call that trains here: one trial, with the sample that ``init()`` has drawn.

    Parameters
    ----------
    settings : Settings
    call : FitCall or TorchCall
    """
    config = complete_for_fit(settings, call)
    if config.searcher.name != "single" and not settings.place.test:
        print(
            f"searcher.name is {config.searcher.name}: here, {call.kind}() trains the model as it was built, with one "
            "sample of the hyperparameters. On the cluster it runs the search."
        )
    # init() has drawn the sample that the model was built with: its seed is the experiment's.
    return config.with_seed(call.context.env.config["reproducibility"]["experiment_seed"])


def create_here(
    trial_class: type[Trial],
    framework: Framework,
    config: ExperimentConfig,
    settings: Settings,
    origin: Origin,
) -> Experiment:
    """Train a Trial class in this process: every trial of the search, one after the other.

    Ctrl-C ends the trial under way with a checkpoint, and the search with it. Without a seed in the configuration one
    is drawn, which stands in the experiment's own.
    """
    from det_harness.frameworks.base import harness_of

    config = config.with_some_seed()
    experiment = LocalExperiment(config, framework)
    experiment.keep_program("create", trial_class, settings, origin)
    samples = list(_samples(config, test=settings.place.test))
    with experiment.running(planned=len(samples)), working_directory.inside(settings.context_dir):
        for hparams, seed in samples:
            experiment.run_trial(
                lambda services: harness_of(framework).controller(trial_class, services),
                hparams=hparams,
                seed=seed,
                test=settings.place.test,
            )
            if experiment.interrupted:
                break
    return experiment.handle(trial_class)


def _samples(config: ExperimentConfig, *, test: bool) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield hyperparameters and seed of each trial, the same that the master's searchers would give."""
    searcher = config.searcher
    seed = config.reproducibility.experiment_seed
    assert seed is not None
    seeds = trial_seeds(seed)
    if searcher.name == "grid" and not test:
        yield from zip(grid_points(config.hyperparameters), seeds, strict=False)
        return
    count = searcher.max_trials if searcher.name == "random" and not test else 1
    for seed in islice(seeds, count):
        yield sample_hyperparameters(config.hyperparameters, seed), seed


class LocalExperiment:
    """One experiment that runs here: its record, and its trials as they come.

    Parameters
    ----------
    config : ExperimentConfig
    framework : str
    whole_epochs : bool
        Whether epochs end with a smaller batch, which a length in records does not know.
    """

    def __init__(self, config: ExperimentConfig, framework: Framework, *, whole_epochs: bool = False) -> None:
        self._whole_epochs = whole_epochs
        self._config = config.model_dump(mode="json")
        self._policy = config.checkpoint_storage
        self._framework: Framework = framework
        self._store = LocalStore.create()
        self._trials: list[rest.Trial] = []
        metric = config.searcher.metric
        self._metric = metric or ""
        self._smaller_is_better = config.searcher.smaller_is_better
        self._detail = rest.ExperimentDetail(
            id=self._store.number,
            name=config.name or config.description or f"local {framework} experiment",
            state=ExperimentState.ACTIVE,
            config=self._config,
            bundle_id=None,
            framework=framework,
            metric=self._metric,
            smaller_is_better=self._smaller_is_better,
            progress=0.0,
            trials=0,
            best_validation=None,
            error=None,
            created=now(),
            started=now(),
            ended=None,
        )

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the last trial."""
        return bool(self._trials) and self._trials[-1].state is TrialState.CANCELED

    def keep_program(self, kind: CallKind, payload: Any, settings: Settings, origin: Origin) -> None:
        """Keep the code of the call with the experiment, for loading its checkpoints in other processes."""
        bundle_id = keep_program(self._store, kind, payload, self._framework, settings, origin)
        self._detail = self._detail.model_copy(update={"bundle_id": bundle_id})

    def handle(self, payload: Any) -> Experiment:
        """Return the handle of the experiment.

        Parameters
        ----------
        payload : type or FitCall
            What makes the user's model again, for loading a checkpoint.
        """
        import det_native.display  # noqa: F401 (handles show themselves by what it registers)

        return Experiment(LocalSource(self._store, self._loader(payload)), self._store.id)

    @contextmanager
    def running(self, planned: int = 1) -> Iterator[None]:
        """Keep the record up to date around the trials."""
        self._planned = planned
        with self._store.lock:
            self._store.write_experiment(self._detail)
            try:
                yield
            except BaseException as error:
                self._end(ExperimentState.ERROR, describe(error))
                if any(trial.batches for trial in self._trials):
                    print(f"What was done before the error is kept: det.attach({self._store.id!r}).")
                raise
            self._end(ExperimentState.CANCELED if self.interrupted else ExperimentState.COMPLETED)

    def run_trial(self, build: BuildController, *, hparams: dict[str, Any], seed: int, test: bool) -> Any:
        """Run one trial to its end and return what the user's call returns."""
        with self.trial(hparams=hparams, seed=seed, test=test) as run:
            run.outcome = build(run.services).run()
        return run.outcome.result

    @contextmanager
    def trial(self, *, hparams: dict[str, Any], seed: int, test: bool, steps: int | None = None) -> Iterator[LocalRun]:
        """Record the trial that is run in the block, which has to say its outcome.

        Parameters
        ----------
        hparams : dict
        seed : int
        test : bool
        steps : int, optional
            Batches of an epoch, where the data tell them.
        """
        from det_harness.local.run import LocalReporter, local_run
        from det_harness.trial.lengths import in_whole_epochs, one_of_each, periods_of

        environment = TrialEnvironment(config=self._config, hparams=hparams, trial_seed=seed)
        periods = one_of_each() if test else periods_of(environment)
        if steps is not None:
            periods = in_whole_epochs(periods, environment, steps)
        trial = trial_row(self._store, len(self._trials) + 1, hparams, seed, periods.length)
        self._trials.append(trial)
        self._store.write_trial(trial)
        if self._planned > 1:
            print(f"Trial {trial.id} of {self._planned}: {hparams}")
        progress = None if test or get_framework(self._framework).own_progress else _Progress(trial, self._metric)
        reporter = LocalReporter(
            self._metric or None,
            smaller_is_better=self._smaller_is_better,
            observe=progress.observe if progress else None,
        )
        try:
            with (
                progress or nullcontext(),
                local_run(
                    config=self._config,
                    hparams=hparams,
                    trial_seed=seed,
                    directory=self._files(trial.id),
                    framework=self._framework,
                    test=test,
                    reporter=reporter,
                ) as run,
            ):
                yield run
        except BaseException as error:
            self._record(trial, reporter, TrialState.ERROR, describe(error))
            raise
        assert run.outcome is not None
        self._record(trial, reporter, run.state, batches=run.outcome.batches)

    def _record(
        self,
        trial: rest.Trial,
        reporter: LocalReporter,
        state: TrialState,
        error: rest.UserErrorInfo | None = None,
        batches: int | None = None,
    ) -> None:
        store, number = self._store, trial.id
        store.write_rows(number, "training", reporter.training_rows)
        store.write_rows(number, "validation", reporter.validation_rows)
        validated = {row.batch: row.metrics for row in reporter.validation_rows}
        store.write_checkpoints(
            number,
            [
                self._checkpoint(number, location, manifest, validated.get(manifest.batch, {}))
                for location, manifest in reporter.checkpoints
            ],
        )
        last = max((row.batch for row in (*reporter.training_rows[-1:], *reporter.validation_rows[-1:])), default=0)
        self._trials[-1] = trial.model_copy(
            update={
                "state": state,
                "batches": last if batches is None else batches,
                "best_validation": reporter.best_metric(),
                "error": error,
                "ended": now(),
            }
        )
        if state is TrialState.COMPLETED and self._whole_epochs and batches:
            # fit() counts the smaller last batch of each epoch, which a length in records does not know.
            self._trials[-1] = self._trials[-1].model_copy(update={"target_batches": batches})
        store.write_trial(self._trials[-1])
        self._update(progress=len(self._trials) / self._planned)

    def _checkpoint(
        self, trial_id: int, location: str, manifest: CheckpointManifest, metrics: dict[str, Any]
    ) -> rest.Checkpoint:
        return rest.Checkpoint(
            uuid=manifest.uuid,
            trial_id=trial_id,
            experiment_id=self._store.number,
            batch=manifest.batch,
            state=CheckpointState.COMPLETED,
            size=manifest.size,
            metrics=metrics,
            location=location,
            created=manifest.created,
            manifest=manifest,
        )

    def _files(self, trial_id: int) -> Path:
        folder = self._store.trial_folder(trial_id) / "files"
        folder.mkdir(exist_ok=True)
        return folder

    def _end(self, state: ExperimentState, error: rest.UserErrorInfo | None = None) -> None:
        self._collect()
        done = {"progress": 1.0} if state is ExperimentState.COMPLETED else {}
        self._update(state=state, error=error, ended=now(), **done)

    def _collect(self) -> None:
        """Delete the checkpoints that the configuration does not keep; what is known of them stays, as on a master."""
        from det_harness.program.load import delete_checkpoint

        found = {trial.id: self._store.checkpoints(trial.id) for trial in self._trials}
        doomed = set(
            superfluous(
                [one for mine in found.values() for one in mine],
                metric=self._metric,
                smaller_is_better=self._smaller_is_better,
                experiment_best=self._policy.save_experiment_best,
                trial_best=self._policy.save_trial_best,
                trial_latest=self._policy.save_trial_latest,
            )
        )
        for trial_id, mine in found.items():
            gone = {one.uuid for one in mine if one.uuid in doomed}
            if not gone:
                continue
            for one in mine:
                if one.uuid in gone:
                    delete_checkpoint(one)
            deleted = {"state": CheckpointState.DELETED}
            rows = [one.model_copy(update=deleted) if one.uuid in gone else one for one in mine]
            self._store.write_checkpoints(trial_id, rows)

    def _update(self, **changes: Any) -> None:
        values = [trial.best_validation for trial in self._trials if trial.best_validation is not None]
        best = (min(values) if self._smaller_is_better else max(values)) if values else None
        self._detail = self._detail.model_copy(update={"trials": len(self._trials), "best_validation": best} | changes)
        self._store.write_experiment(self._detail)

    def _loader(self, payload: Any) -> Callable[[rest.Checkpoint, Path], Any]:
        def load(checkpoint: rest.Checkpoint, directory: Path) -> Any:
            from det_harness.program.load import load_weights

            trial = next(trial for trial in self._store.trials() if trial.id == checkpoint.trial_id)
            environment = TrialEnvironment(config=self._config, hparams=trial.hparams, trial_seed=trial.seed)
            return load_weights(payload, directory, environment)

        return load


class _Progress:
    """A progress bar for one trial that runs here.

    Parameters
    ----------
    trial : rest.Trial
    metric : str or None
        The searcher's.
    """

    def __init__(self, trial: rest.Trial, metric: str | None) -> None:
        self._trial = trial
        self._metric = metric
        self._metrics: dict[str, Any] = {}

    def __enter__(self) -> None:
        import det_native.display  # noqa: F401 (registers what shows progress)

        self._view = rendering.current().progress(f"Trial {self._trial.id}")

    def __exit__(self, *_: object) -> None:
        self._view.close()

    def observe(self, batches: int, metrics: Mapping[str, Any]) -> None:
        """Show how far the trial is, and its newest metrics."""
        self._metrics |= metrics
        fraction = min(batches / max(self._trial.target_batches, 1), 1.0)
        self._view.update(fraction, newest_metrics(self._metrics, self._metric))


def describe(error: BaseException) -> rest.UserErrorInfo:
    """Return an exception of a local run as it is kept with the experiment."""
    return rest.UserErrorInfo(
        type=type(error).__name__,
        message=str(error),
        traceback="".join(traceback.format_exception(error)),
    )
