"""Facts of a local experiment, for the same handles that show those of a master."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from filelock import Timeout

from det_native.client import local_kept as kept
from det_native.client.loading import load_from
from det_native.client.local_life import LocalLife
from det_native.client.source import Source
from det_native.errors import CheckpointError, NotFoundError, UnsupportedFeatureError
from det_native.local.artifacts import copy_written, written_here
from det_native.local.interrupting import interrupt, not_on_a_master
from det_native.local.log import read_log
from det_native.local.store import LocalStore
from det_native.local.summaries import summary_of
from det_native.schema import rest
from det_native.schema.manifests import BundleManifest
from det_native.schema.outputs import MediaKind
from det_native.schema.ranking import trials_best_first
from det_native.schema.registry import CheckpointChange, CheckpointVerified
from det_native.schema.summaries import TrialSummary
from det_native.schema.system_samples import MOST_SAMPLES, thin_by_rank

Loader = Callable[[rest.Checkpoint, Path], Any]

_TRY_SECONDS = 0.2


class LocalSource(LocalLife, Source):
    """Facts of one local experiment, for the handles.

    Parameters
    ----------
    store : LocalStore
    loader : callable, optional
        Rebuilds the user's model for a checkpoint out of what the process that ran the experiment has; elsewhere the
        program is run again for it.
    """

    without_logs = "(no log lines: it has printed nothing)"

    def __init__(self, store: LocalStore, loader: Loader | None = None) -> None:
        self._store = store
        self._loader = loader

    @property
    def store(self) -> LocalStore:
        """Where the run lies."""
        return self._store

    def shown_id(self, experiment_id: int) -> str:
        """Return ``"local-<n>"``."""
        return self._store.id

    def experiment(self, experiment_id: int | str) -> rest.ExperimentDetail:
        """Return the experiment as it is now.

        Raises
        ------
        NotFoundError
            If it was deleted.
        """
        try:
            return self._store.experiment()
        except FileNotFoundError:
            if self._store.folder.exists():
                raise  # it may come back: who deletes a run takes the folder
            raise NotFoundError(f"the run {self._store.id} was deleted from this machine") from None

    def trials(self, experiment_id: int | str) -> list[rest.Trial]:
        return self._store.trials()

    def summaries(self, experiment_ids: Sequence[int | str], *, best: bool = False) -> list[TrialSummary]:
        """Return hyperparameters and metrics of the trials of this run; with `best` of the best one only."""
        found = self._store.trials()
        if best:
            smaller_is_better = self.experiment(self._store.id).smaller_is_better
            found = trials_best_first(found, smaller_is_better=smaller_is_better)[:1]
        return [summary_of(self._store, trial) for trial in found]

    def trial(self, trial_id: int) -> rest.Trial:
        for trial in self._store.trials():
            if trial.id == trial_id:
                return trial
        raise NotFoundError(f"Experiment {self._store.id} has no trial {trial_id}.")

    def metrics(self, trial_id: int, kind: str, after_batch: int = 0) -> list[rest.MetricRow]:
        """Return all rows of a kind after a batch."""
        return [row for row in self._store.rows(trial_id, kind) if row.batch > after_batch or not after_batch]

    def epochs(self, trial_id: int) -> list[rest.EpochRow]:
        """Return what the framework's own history has of a trial."""
        return self._store.epochs(trial_id)

    def system(self, trial_id: int, points: int | None = None) -> list[rest.SystemSample]:
        return thin_by_rank(self._store.samples(trial_id), points or MOST_SAMPLES)

    def media(self, trial_id: int, kind: MediaKind | None = None, after: int = 0) -> list[rest.Medium]:
        found = self._store.media(trial_id)
        return [medium for medium in found if kind in (None, medium.kind) and medium.id > after]

    def medium_content(self, medium: rest.Medium) -> bytes:
        return self._store.medium_content(medium)

    def checkpoints(
        self, *, experiment_id: int | str | None = None, trial_id: int | None = None
    ) -> list[rest.Checkpoint]:
        """Return the checkpoints, oldest first; deleted ones included."""
        trials = [trial.id for trial in self._store.trials()] if trial_id is None else [trial_id]
        return [checkpoint for trial in trials for checkpoint in self._store.checkpoints(trial)]

    def change_checkpoint(self, uuid: str, change: CheckpointChange) -> rest.Checkpoint:
        """Change what is noted of a checkpoint, and whether it is pinned; return it.

        Raises
        ------
        NotFoundError
            If the run has no such checkpoint.
        """
        return kept.change(self._store, uuid, change)

    def verify_checkpoint(self, checkpoint: rest.Checkpoint) -> CheckpointVerified:
        """Read all files of a checkpoint where they lie."""
        return kept.verify(checkpoint)

    def delete_checkpoint(self, uuid: str) -> rest.Checkpoint:
        """Delete a checkpoint that is not pinned, of a run that has ended; return what stays known of it.

        Raises
        ------
        RequestError
            If it is pinned, or the run goes on.
        """
        return kept.delete(self._store, uuid)

    def artifacts(self, trial_id: int) -> list[rest.Artifact]:
        """Return the files that a trial has written in the working directory, as they were when it had ended."""
        return [file.artifact for file in written_here(self._store.trial_folder(trial_id))]

    def artifact_content(self, artifact: rest.Artifact, target: Path) -> None:
        """Copy such a file from where it lies; what is at `target` is replaced.

        Raises
        ------
        StorageError
            If it is not there any more, or was changed since.
        """
        copy_written(self._store.trial_folder(artifact.trial_id), artifact, target)

    def logs(self, trial_id: int, after: int = 0) -> list[rest.LogLine]:
        """Return what the trial printed, with an id above `after`; of a very long log the last lines are there."""
        return list(read_log(self._store.folder / "trials" / str(trial_id), after))

    def events(self, experiment_id: int | str, after: int = 0) -> Iterator[rest.Event]:
        """Yield one event, at the end of the run; blocks while another process runs it."""
        return _EndOfRun(self._store, after)

    def kill(self, experiment_id: int | str) -> None:
        """Interrupt the run: it ends after the batch under way, with a checkpoint.

        Raises
        ------
        UnsupportedFeatureError
            If it cannot be interrupted from here.
        """
        interrupt(self._store)

    def stop(self, experiment_id: int | str) -> None:
        """As :meth:`kill`: a local run that is interrupted writes a checkpoint."""
        self.kill(experiment_id)

    def pause(self, experiment_id: int | str) -> None:
        """Pause nothing: a local run cannot go on later.

        Raises
        ------
        UnsupportedFeatureError
            Always.
        """
        raise UnsupportedFeatureError(not_on_a_master(self._store.id, "paused"))

    def resume(self, experiment_id: int | str) -> None:
        """Go on with nothing: a local run cannot be paused.

        Raises
        ------
        UnsupportedFeatureError
            Always.
        """
        raise UnsupportedFeatureError(not_on_a_master(self._store.id, "resumed"))

    def change_resources(self, experiment_id: int | str, change: rest.ResourcesChange) -> None:
        """Change nothing: a local run shares its slots with nobody.

        Raises
        ------
        UnsupportedFeatureError
            Always.
        """
        raise UnsupportedFeatureError(not_on_a_master(self._store.id, "given another priority, weight or max_slots"))

    def download(self, checkpoint: rest.Checkpoint, directory: Path) -> None:
        from det_harness.program.load import copy_checkpoint

        copy_checkpoint(checkpoint, directory)
        (directory / "manifest.json").write_text(checkpoint.manifest.model_dump_json(indent=1))

    def instead(self, checkpoint: rest.Checkpoint) -> rest.Checkpoint | None:
        from det_harness.program.load import find_instead

        return find_instead(checkpoint, self.checkpoints(trial_id=checkpoint.trial_id))

    def load(self, checkpoint: rest.Checkpoint, directory: Path) -> Any:
        """Rebuild the user's model and load the downloaded checkpoint into it.

        Raises
        ------
        CheckpointError
            In another process than the one that ran the experiment, if its code could not be captured.
        """
        if self._loader is not None:
            return self._loader(checkpoint, directory)
        bundle = self._bundle()
        if bundle is None:
            raise CheckpointError(
                f"Experiment {self._store.id} ran in another process, and its code could not be kept "
                f"({self._why_no_program()}): checkpoint.download() has the weights."
            )
        return load_from(self, checkpoint, directory, bundle=bundle, read_blob=self.blob, files=_no_files)

    def bundle(self, experiment_id: int | str) -> BundleManifest:
        """Return the program of the experiment.

        Raises
        ------
        UnsupportedFeatureError
            If it could not be captured.
        """
        bundle = self._bundle()
        if bundle is None:
            raise UnsupportedFeatureError(
                f"The code of experiment {self._store.id} could not be kept ({self._why_no_program()})."
            )
        return bundle

    def blob(self, sha256: str) -> bytes:
        """Return the raw content of one blob of the program."""
        from det_harness.local.bundle import read_blob

        return read_blob(self._store.folder, sha256)

    def _bundle(self) -> BundleManifest | None:
        from det_harness.local.bundle import kept_bundle

        return kept_bundle(self._store.folder)

    def _why_no_program(self) -> str:
        lines = [line.strip(" -") for line in self._store.why_no_program().splitlines() if line.strip()]
        return " ".join(lines[:2]).rstrip(".") if lines else "an earlier version ran it"


class _EndOfRun(Iterator[rest.Event]):
    """One event, once the process that runs the experiment has let go of its lock; ``close`` ends the waiting."""

    def __init__(self, store: LocalStore, after: int) -> None:
        self._store = store
        self._after = after
        self._closed = threading.Event()

    def __next__(self) -> rest.Event:
        while not self._closed.is_set():
            try:
                with self._store.lock.acquire(timeout=_TRY_SECONDS):
                    self._closed.set()
            except Timeout:
                continue
            return self._event()
        raise StopIteration

    def close(self) -> None:
        """End the waiting, from any thread."""
        self._closed.set()

    def _event(self) -> rest.Event:
        experiment = rest.Experiment.model_validate(self._store.experiment().model_dump(exclude={"report"}))
        return rest.Event(
            id=self._after + 1,
            type="experiment",
            experiment_id=self._store.number,
            trial_id=None,
            data=experiment.model_dump(mode="json"),
        )


def _no_files(uuid: str) -> AbstractContextManager[Path]:
    raise CheckpointError(f"checkpoint {uuid} lies on a cluster")
