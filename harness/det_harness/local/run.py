"""Real training in the user's own process, by the same controllers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NotRequired, TypedDict, Unpack

from det_harness.local.report import LocalReporter, reporting
from det_harness.logged.recorder import Recorder
from det_harness.system.sampler import sampled
from det_harness.trial import rng
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.divergence import LossWatch
from det_harness.trial.lengths import one_of_each, periods_of
from det_harness.trial.schedule import Schedule, Train
from det_harness.trial.services import Controller, Outcome, Services
from det_harness.trial.warm_start import WarmStart
from det_native.logged.place import taken_by
from det_native.schema.environment import TrialEnvironment
from det_native.schema.job import WarmStartSource
from det_native.schema.manifests import CheckpointManifest, Framework
from det_native.schema.nvml import own_gpus
from det_native.schema.states import TrialState
from det_native.storage.blobs import BlobStore
from det_native.storage.checkpoints import CheckpointStorage


class LocalTrial(TypedDict):
    """A trial that is trained in this process.

    Attributes
    ----------
    config : dict
        The experiment configuration with all defaults filled in.
    hparams : dict
        One value for every hyperparameter.
    trial_seed : int
    directory : Path
        Where the checkpoints go, a folder for each.
    framework : str
    outputs : str, optional
        Where contents go of what it logs; by default beside `directory`.
    test : bool
        One minimal loop only: one batch of training, one batch of validation, one checkpoint.
    reporter : LocalReporter, optional
        To see the reports while they come, or after an exception.
    stage : dict, optional
        To where it trains, in a search that decides in stages; see ``TrialEnvironment``.
    resume : CheckpointManifest, optional
        The checkpoint in `directory` to continue from.
    warm_start : WarmStartSource, optional
        The checkpoint of another trial whose weights it begins with, where it does not continue.
    seeded : bool, optional
        Whether it begins with random numbers of its seed, or where the program has come to. The former by default.
    """

    config: dict[str, Any]
    hparams: dict[str, Any]
    trial_seed: int
    directory: Path
    framework: Framework
    test: NotRequired[bool]
    reporter: NotRequired[LocalReporter]
    stage: NotRequired[dict[str, int] | None]
    resume: NotRequired[CheckpointManifest | None]
    warm_start: NotRequired[WarmStartSource | None]
    seeded: NotRequired[bool]
    part: NotRequired[str]
    outputs: NotRequired[str]


@dataclass
class LocalRun:
    """A local trial that is being run.

    Attributes
    ----------
    services : Services
        For its controller.
    reporter : LocalReporter
        The rows of metrics and the checkpoints.
    interrupted : threading.Event
        Set by Ctrl-C.
    outcome : Outcome or None
        How it ended; whoever runs the controller says it. ``outcome.result`` is what the user's call returns, where
        that is not a handle (Keras's ``History``).
    """

    services: Services
    reporter: LocalReporter = field(repr=False)
    interrupted: threading.Event = field(repr=False)
    outcome: Outcome | None = None

    @property
    def state(self) -> TrialState:
        """COMPLETED; CANCELED after Ctrl-C."""
        return TrialState.CANCELED if self.interrupted.is_set() else TrialState.COMPLETED

    @property
    def failing_batch(self) -> int:
        """The batch, counted from 1, in which an exception was raised; 0 before the first one was done."""
        schedule = self.services.schedule
        reported = self.reporter.training_rows[-1:]
        done = max(schedule.progress.batches, *(row.batch for row in reported), 0)
        return done + 1 if done and isinstance(schedule.next(), Train) else done


@contextmanager
def local_run(**trial: Unpack[LocalTrial]) -> Iterator[LocalRun]:
    """Be ready in the block to train one trial in this process.

    Ctrl-C ends the training after the batch under way, with a checkpoint; a second Ctrl-C ends it at once. Random
    number generators, signal handlers and the working directory are afterwards what they were before.
    """
    config, hparams, seed, test = trial["config"], trial["hparams"], trial["trial_seed"], trial.get("test", False)
    environment = TrialEnvironment(config=config, hparams=hparams, trial_seed=seed, stage=trial.get("stage"))
    source = trial.get("warm_start")
    kept = trial.get("reporter") or LocalReporter(environment.metric, smaller_is_better=environment.smaller_is_better)
    with ExitStack() as stack:
        reporter = stack.enter_context(reporting(kept, test=test))
        stack.enter_context(rng.preserved())
        stack.enter_context(_same_directory())
        interrupted = stack.enter_context(interruptible(trial.get("part", "batch")))

        def must_stop() -> bool:
            return interrupted.is_set() or kept.stop_asked

        owner = CheckpointOwner(trial["framework"], hparams)
        storage = CheckpointStorage(str(trial["directory"]))
        checkpoints = TrialCheckpoints(storage, owner, reporter, resume=trial.get("resume"), stop=must_stop)
        services = Services(
            environment=environment,
            schedule=Schedule(one_of_each() if test else periods_of(environment)),
            reporter=LossWatch(reporter, environment),
            checkpoints=checkpoints,
            stop_requested=must_stop,
            validation_batches=1 if test else None,
            tensorboard=trial["directory"].parent / "tensorboard",
            users_process=True,
            warm_start=None if source is None else WarmStart(source),
        )
        outputs = trial.get("outputs") or str(trial["directory"].parent / "outputs")
        services.recorder = recorder = Recorder(
            reporter, lambda: BlobStore(outputs), services.count, services.tensorboard
        )
        stack.callback(recorder.close)
        stack.enter_context(taken_by(recorder))
        # Entered last: its last sample comes before all else of the trial is taken back.
        stack.enter_context(sampled(config, own_gpus, kept.system))
        if trial.get("seeded", True):
            rng.seed_all(seed)
        try:
            yield LocalRun(services, kept, interrupted)
        finally:
            checkpoints.wait()


def run_local(build: Callable[[Services], Controller], **trial: Unpack[LocalTrial]) -> LocalRun:
    """Train one trial in this process, to the end; see :func:`local_run`.

    Parameters
    ----------
    build : callable
        Makes the controller out of its services.
    trial
        See :class:`LocalTrial`.

    Raises
    ------
    Exception
        Whatever the user's code raises, as it is.
    """
    with local_run(**trial) as run:
        run.outcome = build(run.services).run()
    return run


@contextmanager
def interruptible(part: str = "batch") -> Iterator[threading.Event]:
    """Turn the first Ctrl-C inside the block into a set event; the second one interrupts as usual.

    Outside the main thread nothing changes: Ctrl-C does not arrive there.

    Parameters
    ----------
    part : str
        After what the training ends then.
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
        print(
            f"Interrupted: the training ends after this {part}, with a checkpoint. Interrupt again to end it at once."
        )

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
