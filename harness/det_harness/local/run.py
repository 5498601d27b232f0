"""Real training in the user's own process: the same controllers, with the reports kept in memory."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from det_harness.trial import rng
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.lengths import one_of_each, periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Controller, Outcome, Reporter, Services
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import CheckpointManifest, Framework
from det_native.schema.rest import MetricRow
from det_native.schema.states import TrialState
from det_native.storage.checkpoints import CheckpointStorage


class LocalReporter(Reporter):
    """Keeps a local trial's reports in memory, in the shape in which a master would return them.

    Parameters
    ----------
    metric : str or None
        The searcher's metric.
    smaller_is_better : bool
    observe : callable, optional
        Is told of each report: batches done, and the newest metrics.

    Attributes
    ----------
    training_rows, validation_rows : list of MetricRow
        In order of batches.
    checkpoints : list of (str, CheckpointManifest)
        Location and manifest of each, in the order in which they were completed.
    """

    def __init__(
        self,
        metric: str | None = None,
        *,
        smaller_is_better: bool = True,
        observe: Callable[[int, Mapping[str, Any]], None] | None = None,
    ) -> None:
        self._metric = metric
        self._smaller_is_better = smaller_is_better
        self._observe = observe
        # As they were reported: making rows of them would cost the loop more than all else that is kept of a batch.
        self._reported: deque[tuple[list[int], Mapping[str, list[float | None]]]] = deque()
        self._training_rows: list[MetricRow] = []
        self._making_rows = threading.Lock()
        self.validation_rows: list[MetricRow] = []
        self.checkpoints: list[tuple[str, CheckpointManifest]] = []

    def training(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        """Keep rows of training metrics."""
        self._reported.append((batches, metrics))
        if self._observe is not None and batches:
            self._observe(batches[-1], _row(metrics, -1))

    @property
    def training_rows(self) -> list[MetricRow]:
        """The rows of training metrics; a thread may ask while others are reported."""
        with self._making_rows:
            while self._reported:
                batches, metrics = self._reported.popleft()
                self._training_rows += [
                    MetricRow(batch=batch, metrics=_row(metrics, index)) for index, batch in enumerate(batches)
                ]
            return self._training_rows

    def validation(self, batch: int, metrics: Mapping[str, float | None]) -> None:
        """Keep the metrics of one validation."""
        row = {name: value for name, value in metrics.items() if value is not None}
        self.validation_rows.append(MetricRow(batch=batch, metrics=row))
        if self._observe is not None:
            self._observe(batch, row)

    def checkpoint(self, location: str, manifest: CheckpointManifest) -> None:
        """Keep what is known of a checkpoint."""
        self.checkpoints.append((location, manifest))

    def best_metric(self) -> float | None:
        """Return the best value of the searcher's metric so far."""
        values = [row.metrics[self._metric] for row in self.validation_rows if self._metric in row.metrics]
        if not values:
            return None
        best: float = min(values) if self._smaller_is_better else max(values)
        return best


def _row(metrics: Mapping[str, list[float | None]], index: int) -> dict[str, float]:
    return {name: value for name, column in metrics.items() if (value := column[index]) is not None}


@dataclass(frozen=True)
class LocalResult:
    """A local trial that has ended.

    Attributes
    ----------
    outcome : Outcome
        ``outcome.result`` is what the user's call returns, where that is not a handle (Keras's ``History``).
    state : TrialState
        COMPLETED; CANCELED after Ctrl-C.
    reporter : LocalReporter
        The rows of metrics and the checkpoints.
    """

    outcome: Outcome
    state: TrialState
    reporter: LocalReporter = field(repr=False)


@dataclass
class LocalRun:
    """A local trial that is being run.

    Attributes
    ----------
    services : Services
        For its controller.
    interrupted : threading.Event
        Set by Ctrl-C.
    outcome : Outcome or None
        How it ended; whoever runs the controller says it.
    """

    services: Services
    interrupted: threading.Event
    outcome: Outcome | None = None

    @property
    def state(self) -> TrialState:
        """COMPLETED; CANCELED after Ctrl-C."""
        return TrialState.CANCELED if self.interrupted.is_set() else TrialState.COMPLETED


@contextmanager
def local_run(
    *,
    config: dict[str, Any],
    hparams: dict[str, Any],
    trial_seed: int,
    directory: Path,
    framework: Framework,
    test: bool = False,
    bundle_id: str | None = None,
    reporter: LocalReporter | None = None,
) -> Iterator[LocalRun]:
    """Be ready in the block to train one trial in this process; see :func:`run_local`."""
    environment = TrialEnvironment(config=config, hparams=hparams, trial_seed=trial_seed)
    kept = reporter or _reporter_for(config)
    reporting = _PrintingReporter(kept) if test else kept
    with ExitStack() as stack:
        stack.enter_context(rng.preserved())
        stack.enter_context(_same_directory())
        interrupted = stack.enter_context(interruptible())
        checkpoints = TrialCheckpoints(
            CheckpointStorage(str(directory)), CheckpointOwner(framework, hparams, bundle_id=bundle_id), reporting
        )
        services = Services(
            environment=environment,
            schedule=Schedule(one_of_each() if test else periods_of(environment)),
            reporter=reporting,
            checkpoints=checkpoints,
            stop_requested=interrupted.is_set,
            validation_batches=1 if test else None,
            tensorboard=directory.parent / "tensorboard",
        )
        if test:
            print("Quick check: training on one batch, validating on one batch, saving one checkpoint.")
        rng.seed_all(trial_seed)
        try:
            yield LocalRun(services, interrupted)
        finally:
            checkpoints.wait()
    if test:
        print("The quick check passed.")


def run_local(
    build: Callable[[Services], Controller],
    *,
    config: dict[str, Any],
    hparams: dict[str, Any],
    trial_seed: int,
    directory: Path,
    framework: Framework,
    test: bool = False,
    bundle_id: str | None = None,
    reporter: LocalReporter | None = None,
) -> LocalResult:
    """Train one trial in this process, to the end.

    Ctrl-C ends the training after the batch under way, with a checkpoint; a second Ctrl-C ends it at once. Random
    number generators, signal handlers and the working directory are afterwards what they were before.

    Parameters
    ----------
    build : callable
        Makes the controller out of its services.
    config : dict
        The experiment configuration with all defaults filled in.
    hparams : dict
        One value for every hyperparameter.
    trial_seed : int
    directory : Path
        Where the checkpoints go, a folder for each.
    framework : str
    test : bool
        One minimal loop only: one batch of training, one batch of validation, one checkpoint.
    bundle_id : str, optional
        For the manifests of the checkpoints.
    reporter : LocalReporter, optional
        To see the reports while they come, or after an exception.

    Returns
    -------
    LocalResult

    Raises
    ------
    Exception
        Whatever the user's code raises, as it is.
    """
    kept = reporter or _reporter_for(config)
    with local_run(
        config=config,
        hparams=hparams,
        trial_seed=trial_seed,
        directory=directory,
        framework=framework,
        test=test,
        bundle_id=bundle_id,
        reporter=kept,
    ) as run:
        run.outcome = build(run.services).run()
    return LocalResult(run.outcome, run.state, kept)


def _reporter_for(config: dict[str, Any]) -> LocalReporter:
    searcher = config.get("searcher") or {}
    return LocalReporter(searcher.get("metric"), smaller_is_better=bool(searcher.get("smaller_is_better", True)))


class _PrintingReporter(Reporter):
    """Says what happens while a quick check runs."""

    def __init__(self, reporter: LocalReporter) -> None:
        self._reporter = reporter

    def training(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        """Pass on rows of training metrics and say them."""
        self._reporter.training(batches, metrics)
        print(f"  trained on one batch: {_listed({name: column[-1] for name, column in metrics.items()})}")

    def validation(self, batch: int, metrics: Mapping[str, float | None]) -> None:
        """Pass on the metrics of a validation and say them."""
        self._reporter.validation(batch, metrics)
        print(f"  validated: {_listed(metrics)}")

    def checkpoint(self, location: str, manifest: CheckpointManifest) -> None:
        """Pass on a checkpoint and say where it is."""
        self._reporter.checkpoint(location, manifest)
        print(f"  saved a checkpoint of {manifest.size} bytes: {location}")

    def best_metric(self) -> float | None:
        """Return the best value of the searcher's metric so far."""
        return self._reporter.best_metric()


def _listed(metrics: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} = {value:.4g}" for name, value in metrics.items() if value is not None)


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C inside the block into a set event; the second one interrupts as usual.

    Outside the main thread nothing changes: Ctrl-C does not arrive there.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    previous = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()
        print("Interrupted: the training ends after this batch, with a checkpoint. Interrupt again to end it at once.")

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, previous if previous is not None else signal.SIG_DFL)


@contextmanager
def _same_directory() -> Iterator[None]:
    before = os.getcwd()
    try:
        yield
    finally:
        os.chdir(before)
