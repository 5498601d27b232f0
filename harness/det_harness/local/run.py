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

from det_harness.local.report import KernelReporter, reporting
from det_harness.logged.recorder import Recorder
from det_harness.system.sampler import sampled
from det_harness.trial import rng
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.divergence import LossWatch
from det_harness.trial.ending import told_length
from det_harness.trial.forks import is_forked_child
from det_harness.trial.lengths import one_of_each, periods_of
from det_harness.trial.publications import Publications
from det_harness.trial.schedule import Schedule, Train
from det_harness.trial.services import Outcome, Services
from det_native.logged.place import taken_by
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.nvml import own_gpus
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
    owner : CheckpointOwner
        Whose checkpoints they are.
    blobs : str
        Address of the store for what it logs.
    tensorboard : Path
        Where its event files go.
    reporter : Reporter
        Its ``stop_requested`` says whether the training is to end.
    test : bool
        One minimal loop only: one batch of training, one batch of validation, one checkpoint.
    observe : callable, optional
        Is told how far it is, see ``report.Observe``.
    journal : Publications, optional
        Where checkpoints are noted until they are reported.
    seeded : bool, optional
        Whether it begins with random numbers of its seed, or where the program has come to. The former by default.
    part : str, optional
        After what the training ends on Ctrl-C; a batch by default.
    resume : CheckpointManifest, optional
        The checkpoint to continue from.
    own_script : bool, optional
        It is a script's own loop: Ctrl-C and the streams of random numbers are as in any script.
    """

    config: dict[str, Any]
    hparams: dict[str, Any]
    trial_seed: int
    owner: CheckpointOwner
    checkpoints: CheckpointStorage
    blobs: str
    tensorboard: Path
    reporter: Any
    test: NotRequired[bool]
    observe: NotRequired[Callable[[int, Any], None] | None]
    journal: NotRequired[Publications | None]
    seeded: NotRequired[bool]
    part: NotRequired[str]
    resume: NotRequired[CheckpointManifest | None]
    own_script: NotRequired[bool]


@dataclass
class LocalRun:
    """A trial of this process that is being run.

    Attributes
    ----------
    services : Services
        For its controller.
    reporter : KernelReporter
        Knows what was reported.
    interrupted : threading.Event
        Set by Ctrl-C.
    told_length : int or None
        Batches that it has, as was reported when it began.
    outcome : Outcome or None
        How it ended; whoever runs the controller says it. ``outcome.result`` is what the user's call returns, where
        that is not a handle (Keras's ``History``).
    """

    services: Services
    reporter: KernelReporter = field(repr=False)
    interrupted: threading.Event = field(repr=False)
    told_length: int | None = None
    outcome: Outcome | None = None

    @property
    def batches(self) -> int:
        """How many are done."""
        return max(self.services.schedule.progress.batches, self.reporter.batches, 0)

    @property
    def failing_batch(self) -> int:
        """The batch, counted from 1, in which an exception was raised; 0 before the first one was done."""
        done = self.batches
        return done + 1 if done and isinstance(self.services.schedule.next(), Train) else done


@contextmanager
def local_run(**trial: Unpack[LocalTrial]) -> Iterator[LocalRun]:
    """Be ready in the block to train one trial in this process.

    Ctrl-C ends the training after the batch under way, with a checkpoint; a second Ctrl-C ends it at once. Random
    number generators, signal handlers and the working directory are afterwards what they were before.
    """
    config, hparams, seed, test = trial["config"], trial["hparams"], trial["trial_seed"], trial.get("test", False)
    environment = TrialEnvironment(config=config, hparams=hparams, trial_seed=seed)
    kept = trial["reporter"]
    with ExitStack() as stack:
        known = KernelReporter(kept, trial.get("observe"))
        reporter: Any = stack.enter_context(reporting(known, test=test))
        interrupted = threading.Event()
        if not trial.get("own_script", False):
            stack.enter_context(rng.preserved())
            stack.enter_context(_same_directory())
            interrupted = stack.enter_context(interruptible(trial.get("part", "batch")))
        schedule = Schedule(one_of_each() if test else periods_of(environment))

        def must_stop() -> bool:
            return interrupted.is_set() or kept.stop_requested or is_forked_child()

        def started(batch: int, notice: str) -> None:
            run.told_length = told_length(schedule)
            kept.started(batch, run.told_length, notice)

        checkpoints = TrialCheckpoints(
            trial["checkpoints"],
            trial["owner"],
            reporter,
            resume=trial.get("resume"),
            on_start=started,
            journal=trial.get("journal"),
            stop=must_stop,
        )
        services = Services(
            environment=environment,
            schedule=schedule,
            reporter=LossWatch(reporter, environment),
            checkpoints=checkpoints,
            stop_requested=must_stop,
            validation_batches=1 if test else None,
            tensorboard=trial["tensorboard"],
            users_process=True,
        )
        services.recorder = recorder = Recorder(
            reporter, lambda: BlobStore(trial["blobs"]), services.count, services.tensorboard
        )
        stack.callback(recorder.close)
        stack.enter_context(taken_by(recorder))
        # Entered last: its last sample comes before all else of the trial is taken back.
        stack.enter_context(sampled(config, own_gpus, kept.system))
        if trial.get("seeded", True) and not trial.get("own_script", False):
            rng.seed_all(seed)
        run = LocalRun(services, known, interrupted)
        try:
            yield run
        finally:
            checkpoints.wait()


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
