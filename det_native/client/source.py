"""Where a handle's facts come from: the master over HTTP, or what a program was told before its training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from det_native.errors import StorageError
from det_native.schema import rest
from det_native.schema.clocks import TrialClock
from det_native.schema.life import Deletion, ExperimentContinuation, ExperimentFork, Retained, Retention
from det_native.schema.outputs import MediaKind
from det_native.schema.registry import CheckpointChange, CheckpointVerified, ModelVersion
from det_native.schema.summaries import TrialSummary

PATIENCE = 60.0


class Source(Protocol):
    """Everything that ``Experiment``, ``Trial`` and ``Checkpoint`` handles ask for."""

    @property
    def patience(self) -> float:
        """Seconds that one who waits for an experiment goes on without an answer of the master."""
        return PATIENCE

    def revive(self) -> bool:
        """Start the master again if it is one of this machine and was killed; return whether it runs."""
        return False

    @property
    def trained_here(self) -> bool:
        """Whether its experiment trains, or has trained, in this process."""
        return False

    @property
    def url(self) -> str:
        """Address of the master."""
        return ""

    def experiment(self, experiment_id: int) -> rest.ExperimentDetail:
        """Return the experiment as it is now."""

    def trials(self, experiment_id: int) -> list[rest.Trial]:
        """Return the experiment's trials, oldest first."""

    def summaries(self, experiment_ids: Sequence[int], *, best: bool = False) -> list[TrialSummary]:
        """Return hyperparameters and metrics of the trials of experiments; with `best` of the best one of each only."""

    def trial(self, trial_id: int) -> rest.Trial:
        """Return the trial as it is now."""

    def metrics(self, trial_id: int, kind: str, after_batch: int = 0) -> list[rest.MetricRow]:
        """Return all rows of a kind after a batch, in order of batches."""

    def epochs(self, trial_id: int) -> list[rest.EpochRow]:
        """Return what the framework's own history has of a trial, by epoch; of many frameworks nothing."""

    def system(self, trial_id: int, points: int | None = None) -> list[rest.SystemSample]:
        """Return what the processes of a trial used, by time; of each about so many samples, if that is given."""

    def clock(self, trial_id: int) -> TrialClock:
        """Return when a trial had done how many batches."""
        return TrialClock(trial_id=trial_id)

    def curves(self, experiment_id: int, trial_id: int | None = None) -> list[rest.MetricCurve]:
        """Return the curves of an experiment or of one trial, reduced."""

    def checkpoints(self, *, experiment_id: int | None = None, trial_id: int | None = None) -> list[rest.Checkpoint]:
        """Return the checkpoints that exist, oldest first."""

    def artifacts(self, trial_id: int) -> list[rest.Artifact]:
        """Return the files that the code of a trial has written, by path."""
        return []

    def artifact_content(self, artifact: rest.Artifact, target: Path) -> None:
        """Write the content of such a file into `target`, verified and all at once; what is there is replaced."""
        raise StorageError(f"The content of {artifact.path!r} was not kept.")

    def logs(self, trial_id: int, after: int = 0) -> list[rest.LogLine]:
        """Return log lines with an id above `after`."""

    def events(self, experiment_id: int, after: int = 0) -> Iterator[rest.Event]:
        """Yield events with an id above `after` as they happen, until the experiment has ended.

        If the iterator waits for something to happen, it has a ``close()`` that ends the waiting from any thread.
        """

    def kill(self, experiment_id: int) -> None:
        """End the experiment now, without a checkpoint."""

    def stop(self, experiment_id: int) -> None:
        """End the experiment; its workers checkpoint first."""

    def pause(self, experiment_id: int) -> None:
        """Have the experiment's workers checkpoint and end; nothing starts until it is resumed."""

    def resume(self, experiment_id: int) -> None:
        """Go on with a paused experiment."""

    def change_resources(self, experiment_id: int, change: rest.ResourcesChange) -> None:
        """Change the priority, weight or limit of an experiment that goes on."""

    def change(self, experiment_id: int, change: rest.ExperimentChange) -> None:
        """Change what people write of the experiment."""

    def deletion(self, experiment_id: int) -> Deletion:
        """Return what the deletion of the experiment would free, and what stands in its way."""

    def delete(self, experiment_id: int) -> Deletion:
        """Delete the experiment; return what that has freed."""

    def fork(self, experiment_id: int, wanted: ExperimentFork) -> rest.Experiment:
        """Submit the program of the experiment with another configuration."""

    def continuation(self, experiment_id: int, wanted: ExperimentContinuation) -> rest.Experiment:
        """Submit an experiment that goes on from a checkpoint of this one."""

    def retain(self, experiment_id: int, wanted: Retention) -> Retained:
        """Change how many checkpoints of the experiment stay."""

    def refreshed(self, checkpoint: rest.Checkpoint) -> rest.Checkpoint:
        """Return a checkpoint as it is now."""
        found = self.checkpoints(trial_id=checkpoint.trial_id)
        return next((one for one in found if one.uuid == checkpoint.uuid), checkpoint)

    def change_checkpoint(self, uuid: str, change: CheckpointChange) -> rest.Checkpoint:
        """Change what is noted of a checkpoint, and whether it is pinned; return it."""

    def verify_checkpoint(self, checkpoint: rest.Checkpoint) -> CheckpointVerified:
        """Return whether all files of a checkpoint lie where they were saved, as they were."""

    def delete_checkpoint(self, uuid: str) -> rest.Checkpoint:
        """Delete a checkpoint that nothing needs; return what stays known of it."""

    def versions_of(self, uuid: str) -> list[ModelVersion]:
        """Return the versions of models that a checkpoint is, oldest first."""
        return []

    def media(self, trial_id: int, kind: MediaKind | None = None, after: int = 0) -> list[rest.Medium]:
        """Return the pictures, tables, texts and histograms that a trial has logged, in that order.

        Or only those of a kind, and with a larger id than `after`.
        """

    def medium_content(self, medium: rest.Medium) -> bytes:
        """Return what was logged, as it is to be read by ``medium.format``."""

    def download(self, checkpoint: rest.Checkpoint, directory: Path) -> None:
        """Copy the checkpoint's files, verified, into an existing empty directory."""

    def instead(self, checkpoint: rest.Checkpoint) -> rest.Checkpoint | None:
        """Return the checkpoint that can be had instead of a damaged one, verified; None if there is none."""

    def load(self, checkpoint: rest.Checkpoint, directory: Path) -> Any:
        """Rebuild the user's model or trial from its code and load the downloaded checkpoint into it."""

    def bundle(self, experiment_id: int) -> Any:
        """Return the BundleManifest of the experiment (for ``experiment.notebook()``)."""

    def blob(self, sha256: str) -> bytes:
        """Return the raw content of one blob of the bundle."""
