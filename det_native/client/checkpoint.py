"""The handle of a checkpoint."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from det_native.client import checkpoint_folder
from det_native.client.history import as_numbers
from det_native.client.short_forms import UUID_LENGTH, checkpoint_short
from det_native.client.source import Source
from det_native.errors import ArgumentError, CheckpointCorruptError, MasterError, StorageError
from det_native.schema import rest


class Checkpoint:
    """A checkpoint of a trial.

    Parameters
    ----------
    source : Source
    checkpoint : rest.Checkpoint
        What is known of it.
    metric : str
        The metric that it was chosen by, or the searcher's; empty where that is not known.
    """

    #: What changes is the experiment, not the notebook: capture tells this object by its identity.
    _det_known_by_identity = True

    def __init__(self, source: Source, checkpoint: rest.Checkpoint, metric: str = "") -> None:
        self._source = source
        self._known = checkpoint
        self._metric = metric

    @property
    def facts(self) -> rest.Checkpoint:
        """What is known of it."""
        return self._known

    @property
    def uuid(self) -> str:
        """Identity of the checkpoint."""
        return self._known.uuid

    @property
    def batch(self) -> int:
        """Batches done when it was taken."""
        return self._known.batch

    @property
    def trial_id(self) -> int:
        """Number of its trial."""
        return self._known.trial_id

    @property
    def metrics(self) -> dict[str, Any]:
        """Validation metrics at its batch; empty if the trial was not validated there."""
        return as_numbers(self._known.metrics)

    @property
    def hparams(self) -> dict[str, Any]:
        """Hyperparameters of its trial."""
        return dict(self._known.manifest.hparams)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return self._known.size

    @property
    def path(self) -> Path:
        """A path from which the framework's own functions load what was trained; the files come to a cache first.

        Of Keras it is what ``keras.models.load_model()`` takes, mostly a file; of an Estimator with one SavedModel that
        model's folder. Else it is a folder with the files: ``torch.load(checkpoint.path / "state_dict.pth")``.
        Files in it are verified each time, and are not to be changed; `download` gives some of your own.

        Raises
        ------
        StorageError
            If the files cannot be written to the cache.
        CheckpointError
            If the checkpoint is damaged, or its framework cannot save the model.
        """
        from det_harness.program.load import loadable_path

        try:
            files = checkpoint_folder.cached(self._known.manifest, self._fetch)
            made = files.with_name("made")
            made.mkdir(exist_ok=True)
            load = partial(self._source.load, self._known, files)
            return loadable_path(self._known.manifest.framework, files, load, made)
        except OSError as error:
            raise _not_cached(error) from error

    def files(self) -> Path:
        """Return the folder of the cache that has the files, which are verified; they are not to be changed.

        Raises
        ------
        StorageError
            If they cannot be written there.
        CheckpointError
            If the checkpoint is damaged.
        """
        try:
            return checkpoint_folder.cached(self._known.manifest, self._fetch)
        except OSError as error:
            raise _not_cached(error) from error

    def download(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Copy the checkpoint's files into a folder and verify them.

        Parameters
        ----------
        path : str or path, optional
            A folder that is empty, does not exist, or was filled by this before: files that are there are verified,
            and not copied again. ``checkpoints/<uuid>`` by default.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        ArgumentError
            If `path` is a file, or lies in one.
        CheckpointError
            If the folder has other content, or a file of the checkpoint in it was changed.
        StorageError
            If the files cannot be written there.
        CheckpointCorruptError
            If a file is missing or not what was saved; the message says which, and which other checkpoint can be had.
        """
        if path is not None and not isinstance(path, str | os.PathLike):
            raise ArgumentError(f"download() takes the path of a folder, not {path!r}.")
        folder = Path(path) if path is not None else Path("checkpoints") / self.uuid
        try:
            folder.mkdir(parents=True, exist_ok=True)
            checkpoint_folder.fill(folder, self._known.manifest, self._fetch)
        except (FileExistsError, NotADirectoryError) as error:
            raise ArgumentError(
                f"{error.filename or folder} is a file; give download() a folder that is empty or does not exist."
            ) from error
        except OSError as error:
            raise StorageError(
                f"The checkpoint could not be written to {folder}: {error.strerror or error}. "
                "Give download() a folder on a disk with room, in which you may write."
            ) from error
        return folder

    def load(self) -> Any:
        """Return the trained model: the Keras model, or for a PyTorchTrial the trial with its weights.

        The user's own code makes the model again, then the weights are loaded into it.

        Raises
        ------
        CheckpointError
            If the checkpoint is damaged, or does not fit the model that the code makes.
        """
        with tempfile.TemporaryDirectory(prefix="det-checkpoint-") as folder:
            self._fetch(Path(folder))
            return self._source.load(self._known, Path(folder))

    def _fetch(self, folder: Path) -> None:
        try:
            self._source.download(self._known, folder)
        except CheckpointCorruptError as error:
            raise CheckpointCorruptError(f"{error} {self._instead()}") from None

    def _instead(self) -> str:
        """Say which checkpoint of the trial can be had instead."""
        try:
            one = self._source.instead(self._known)
        except MasterError:  # it takes too long, say: the damage is what has to be told
            return "`experiment.checkpoints` has the others of its trial."
        if one is None:
            return "No other checkpoint of its trial is whole."
        return f"That of batch {one.batch} is whole: experiment.checkpoint({one.uuid[:UUID_LENGTH]!r}).load()."

    def __repr__(self) -> str:
        return checkpoint_short(self._known, self._metric)


def _not_cached(error: OSError) -> StorageError:
    return StorageError(
        f"The checkpoint could not be written to {error.filename or 'the cache'}: {error.strerror or error}. "
        "checkpoint.download() takes a folder on a disk with room, in which you may write."
    )
