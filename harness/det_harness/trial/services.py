"""What a controller is given. The same four things serve a worker on the cluster and a run in the notebook's kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from det_harness.logged.recorder import Recorder
from det_harness.ranks.communicator import Communicator, OneProcess
from det_harness.trial.batch_count import BatchCount
from det_harness.trial.schedule import Schedule
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.reports import EpochRow, SystemSample

if TYPE_CHECKING:
    from det_harness.logged.deaf import DeafRecorder
    from det_harness.trial.throttle import Throttle
    from det_harness.trial.user_files import UserFiles
    from det_harness.trial.warm_start import WarmStart
    from det_native.schema.job import TrialJob


class OwnProcessNeededError(BaseException):
    """What the code of a trial does to its process could not be undone, and the process is the user's.

    It passes through the ``except Exception`` of user code. Its text says what the code does, without a full stop.
    """


class Reporter(Protocol):
    """Where metrics go. Never blocks on the network, never raises for an unreachable master."""

    def training(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        """Report rows of training metrics by column; ``batches[i]`` counts the batches done, from 1."""
        return

    def validation(self, batch: int, metrics: Mapping[str, Any]) -> None:
        """Report the metrics of one validation."""
        return

    def logged(self, batch: int, metrics: Mapping[str, float]) -> None:
        """Report numbers of the user's own, after so many batches; of a name the last one counts."""
        return

    def epoch(self, row: EpochRow) -> None:
        """Report what the framework's own history has of an epoch that has ended."""
        return

    def checkpoint(self, location: str, manifest: CheckpointManifest) -> None:
        """Report a complete checkpoint."""
        return

    def checkpoint_deleted(self, uuid: str) -> None:
        """Report that the user's code has deleted a checkpoint of the trial."""
        return

    def waiting(self, text: str) -> None:
        """Say what the trial waits for, or by an empty text that it waits no longer."""
        return

    def warning(self, text: str) -> None:
        """Report what has happened in the training and is no failure; the last one counts."""
        return

    def compare_by(self, metric: str, *, smaller_is_better: bool) -> None:
        """Report by which metric trials are compared, where nobody has said it and the training has shown it."""
        return

    def no_validation(self) -> None:
        """Report, before the first row, that nothing validates: what is reported as validations is of the training."""
        return

    def system(self, samples: list[SystemSample]) -> None:
        """Report what processes of the trial use; a sample that was reported before changes nothing."""
        return

    def best_metric(self) -> float | None:
        """Return the experiment's best value of the searcher's metric, the validation just reported left out.

        None if there is none or the master does not answer in time.
        """
        return None


if TYPE_CHECKING:
    _ReporterBase = Reporter
else:  # whose own methods would hide those of the reporter that everything is passed to
    _ReporterBase = object


class PassingReporter(_ReporterBase):
    """Takes the place of a reporter, and passes everything on that a subclass does not look at."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._reporter, name)


class Checkpoints(Protocol):
    """Writes and reads the checkpoints of one trial."""

    def save(
        self,
        batch: int,
        write: Callable[[Path], Callable[[Throttle], None] | None],
        *,
        beside: bool = False,
        repeatable: bool = True,
        metadata: Mapping[str, Any] | None = None,
        on_saved: Callable[[str, Path], None] | None = None,
        uuid: str | None = None,
    ) -> str:
        """Publish what `write` puts into a fresh folder; return the uuid.

        `write` must finish copying the state to host memory or to the folder before it returns; a function that it
        returns writes what is left, in the background. The manifest, hashing, rename and the report follow there,
        all of it slowly if the training goes on `beside` it on the same processors. While there is no room for it, all
        that is `repeatable` is tried again, and the next checkpoint waits for this one.
        `on_saved` is called in the training thread with the uuid and the folder, before publication (users'
        ``on_checkpoint_end``); where it needs the whole folder, `write` must leave nothing.
        """

    def save_end(self, write: Callable[[Path], None], metrics: Mapping[str, float] | None = None) -> None:
        """Publish the last checkpoint anew, with what the end of the training has made of its weights.

        `write` writes them into an empty folder; see ``after_training``. `metrics` are the validation metrics of these
        weights, empty if nobody has validated them; None where the weights are still those of the last batch.
        """

    def restore(self) -> AbstractContextManager[Path | None]:
        """Give a verified local folder with the checkpoint to continue from, or None to start from scratch."""

    @property
    def resume(self) -> CheckpointManifest | None:
        """The checkpoint to continue from, where the code restores its state by itself; None without one."""

    def begin(self, batch: int) -> None:
        """Report that training begins after so many batches, in place of ``restore()``."""

    def choose(self) -> tuple[CheckpointManifest | None, str]:
        """Return the checkpoint to continue from, whole, and why it is an earlier one; nothing of it is copied."""

    def workspace(self) -> Path:
        """Return a fresh folder from where the files of a checkpoint are moved without a copy."""

    def manifest(self, uuid: str) -> CheckpointManifest:
        """Return the manifest of a checkpoint."""

    def fetch(self, uuid: str, into: Path, wanted: Callable[[str], bool] | None = None) -> CheckpointManifest:
        """Copy the files of a checkpoint, all or those whose paths are wanted, into a new folder."""

    def delete(self, uuid: str) -> None:
        """Delete a checkpoint, and report that."""

    def wait(self) -> None:
        """Block until all checkpoints are published; raise what went wrong with one."""

    def published(self) -> list[str]:
        """Return the uuids of the checkpoints that were completed since the last call."""


@dataclass
class Services:
    """Everything a controller needs besides the user's own objects.

    Attributes
    ----------
    schedule : Schedule
        The pure state machine; the controller tells it what happened and does what it says.
    stop_requested : callable
        True once the master, a signal or Ctrl-C asks for an early end: the controller passes it to
        ``schedule.request_stop()`` at the next batch.
    validation_batches : int or None
        Batches of one validation; None for all of the validation data. A minimal loop (``test=True``) takes 1.
    tensorboard : Path or None
        Where event files of TensorBoard go, the same for every run of the trial.
    files : UserFiles or None
        What the user's code writes in its working directory; None where that is the user's own folder.
    add_folder : callable
        Has the files in a folder elsewhere count as written by the user's code, at a path in the working directory.
    users_process : bool
        Whether the process goes on after the trial, as the user's own.
    communicator : Communicator
        Connects the ranks of the trial. On other ranks than the first, nothing is reported and nothing published: of
        the checkpoints only ``restore`` is used there.
    warm_start : WarmStart or None
        The weights that the trial begins with, where ``checkpoints.restore()`` gives nothing.
    count : BatchCount
        How many batches are done; a controller whose schedule does not know it at every moment tells whom to ask.
    recorder : Recorder or None
        Takes what the user's code logs.
    job : TrialJob or None
        That of the worker; None in a process of the user's.
    """

    environment: TrialEnvironment
    schedule: Schedule
    reporter: Reporter
    checkpoints: Checkpoints
    stop_requested: Callable[[], bool]
    validation_batches: int | None = None
    tensorboard: Path | None = None
    files: UserFiles | None = None
    add_folder: Callable[[str, Path], None] = lambda path, folder: None
    users_process: bool = False
    communicator: Communicator = field(default_factory=OneProcess)
    warm_start: WarmStart | None = None
    count: BatchCount = None  # type: ignore[assignment]  # made of the schedule
    recorder: Recorder | DeafRecorder | None = None
    job: TrialJob | None = None

    def __post_init__(self) -> None:
        if self.count is None:
            self.count = BatchCount(self.schedule)

    def settle(self) -> None:
        """Wait until what was logged is reported: a run that continues from the checkpoint to come does not log it."""
        if self.recorder is not None:
            self.recorder.settle()

    def compare_by(self, metric: str, *, smaller_is_better: bool) -> None:
        """Have trials compared by a metric, as if the configuration had named it and which of its values are better."""
        environment = self.environment
        said = {"metric": metric, "smaller_is_better": smaller_is_better}
        searcher = {**(environment.config.get("searcher") or {}), **said}
        self.environment = replace(environment, config={**environment.config, "searcher": searcher})
        self.reporter.compare_by(metric, smaller_is_better=smaller_is_better)


@dataclass(frozen=True)
class Outcome:
    """How a controller's run ended.

    `stopped` is True for an early end (stop requested by user code, master or Ctrl-C). `result` is what the user's
    call returns in a local run: Keras's ``History`` for ``fit``, None otherwise. `goes_on` says that a program on a
    worker is given it too, and runs to its own end.
    """

    batches: int
    stopped: bool = False
    result: Any = None
    goes_on: bool = False


class Controller(Protocol):
    """Runs one trial to its end: builds the user's objects, restores, then does what the schedule says."""

    def run(self) -> Outcome:
        """Train to the end."""
