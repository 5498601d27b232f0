"""The handle of a checkpoint."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from det_native.client import checkpoint_folder, kept_program, loading
from det_native.client.arguments import checked_keys, checked_metadata
from det_native.client.checkpoint_facts import CheckpointFacts
from det_native.client.sdk.absent_names import AbsentNames
from det_native.client.sdk.metrics import TrialMetrics, of_checkpoint
from det_native.client.short_forms import UUID_LENGTH, checkpoint_short
from det_native.client.source import Source
from det_native.errors import (
    ArgumentError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    MasterError,
    StorageError,
)
from det_native.schema import rest
from det_native.schema.registry import CheckpointChange
from det_native.schema.states import CheckpointState


class Checkpoint(CheckpointFacts, AbsentNames):
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
    _sdk_class = "Checkpoint"

    def __init__(self, source: Source, checkpoint: rest.Checkpoint, metric: str = "") -> None:
        super().__init__(source, checkpoint)
        self._metric = metric

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
        from det_harness.frameworks.base import harness_of

        try:
            files = checkpoint_folder.cached(self._known.manifest, self._fetch)
            made = files.with_name("made")
            made.mkdir(exist_ok=True)
            load = partial(self._source.load, self._known, files)
            return harness_of(self._known.manifest.framework).loadable_path(files, load, made)
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

    def download(self, path: str | os.PathLike[str] | None = None, mode: Any = None) -> Path:
        """Copy the checkpoint's files into a folder and verify them.

        Parameters
        ----------
        path : str or path, optional
            A folder that is empty, does not exist, or was filled by this before: files that are there are verified,
            and not copied again. ``checkpoints/<uuid>`` by default. Beside the files there is ``metadata.json``, what
            is known of the checkpoint, and mostly ``program.zip``, what `load_from_path` makes the model with.
        mode : DownloadMode, optional
            Has no effect: the master reads the storage. It is there for code that was written for Determined.

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
            kept_program.write(self._source, self._known, folder, self.to_json())
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

    def load(
        self,
        path: str | os.PathLike[str] | None = None,
        tags: Sequence[str] | None = None,
        map_location: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Return the trained model: the Keras model, or for a PyTorchTrial the trial with its weights.

        The user's own code makes the model again, then the weights are loaded into it.

        Parameters
        ----------
        path : str or path, optional
            Where the files go, and stay; see `download`. A temporary folder by default.
        tags : sequence of str, optional
            Of the SavedModel of an Estimator, as ``tf.saved_model.load()`` takes them.
        map_location : str, torch.device, dict or callable, optional
            Of PyTorch: on which device the weights are, as ``torch.load()`` takes it.
        **kwargs
            There are no others: whatever is given here is refused.

        Raises
        ------
        CheckpointError
            If the checkpoint is damaged, or does not fit the model that the code makes.
        ArgumentError
            If an argument is not for this framework.
        """
        loading.check_options(tags, map_location, kwargs)
        with contextlib.ExitStack() as stack:
            if path is None:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="det-checkpoint-")))
                self._fetch(folder)
            else:
                folder = self.download(path).absolute()  # the program runs in another folder
            load = partial(self._source.load, self._known, folder)
            return loading.loaded_as(self._known, folder, load, tags, map_location)

    @staticmethod
    def load_from_path(
        path: str | os.PathLike[str],
        tags: Sequence[str] | None = None,
        map_location: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Return the trained model of a folder that `download` has filled; a master is needed for a large program only.

        Parameters
        ----------
        path : str or path
        tags, map_location, **kwargs
            See `load`.

        Raises
        ------
        ArgumentError
            If the folder was not filled so, or an argument is not for this framework.
        CheckpointError
            If a file is missing or was changed.
        """
        if not isinstance(path, str | os.PathLike):
            raise ArgumentError(f"load_from_path() takes the path of a folder, not {path!r}.")
        folder = Path(path).absolute()
        known, facts = kept_program.load(folder)
        loading.check_options(tags, map_location, kwargs)
        load = partial(kept_program.model_of, folder, known, facts)
        return loading.loaded_as(known, folder, load, tags, map_location)

    def verify(self) -> Checkpoint:
        """Have all files read where they are stored; return the checkpoint, if they are as they were saved.

        Raises
        ------
        CheckpointCorruptError
            If one is missing or was changed; the message names it.
        CheckpointNotFoundError
            If the checkpoint was deleted.
        """
        self._known = self._source.refreshed(self._known)
        if self._known.state is not CheckpointState.COMPLETED:
            raise CheckpointNotFoundError(f"Checkpoint {self.uuid} was deleted.")
        found = self._source.verify_checkpoint(self._known)
        if not found.ok:
            raise CheckpointCorruptError(f"{found.problem} {self._instead()}")
        return self

    def add_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Note something of the checkpoint, by name; what has such a name already is replaced.

        Parameters
        ----------
        metadata : mapping
            Plain values that JSON has.
        """
        self._change(add_metadata=checked_metadata(metadata))

    def remove_metadata(self, keys: Sequence[str]) -> None:
        """Remove what was noted by these names; one that is not there is passed over."""
        self._change(remove_metadata=checked_keys(keys))

    def write_metadata_file(self, path: str | os.PathLike[str]) -> None:
        """Write what is known of the checkpoint into a file, as JSON."""
        Path(path).write_text(json.dumps(self.to_json(), indent=2), encoding="utf-8")

    def get_metrics(self, group: str | None = None) -> Iterator[TrialMetrics]:
        """Return what its trial has reported at its batch: in a group, or of the training and of validations."""
        return of_checkpoint(self._source, self._known, group)

    def reload(self) -> None:
        """Ask anew for all that is known of it."""
        self._known = self._source.refreshed(self._known)

    def pin(self) -> Checkpoint:
        """Have the checkpoint stay, however many the configuration keeps; return it."""
        self._change(pinned=True)
        return self

    def unpin(self) -> Checkpoint:
        """Have the configuration decide again whether the checkpoint stays, which may delete it; return it."""
        self._change(pinned=False)
        return self

    def delete(self) -> None:
        """Delete the checkpoint's files for good.

        Raises
        ------
        RequestError
            If something needs them: a model's version, a pin, an experiment that begins with it, or its own trial.
        """
        self._known = self._source.delete_checkpoint(self.uuid)

    def export(self, path: str | os.PathLike[str], format: str, *, example_inputs: Any = None) -> Path:
        """Write the trained model in a format that other programs read.

        Parameters
        ----------
        path : str or path
            File or folder to make; what is there is never replaced.
        format : {"savedmodel", "keras", "torchscript", "torch.export", "safetensors", "onnx"}
            Of PyTorch the last four, of Keras the first two and the last two, of an Estimator the first.
        example_inputs : tensor, array or tuple of them, optional
            One batch, as the model is called with it: for ``"torch.export"`` and ``"onnx"`` of PyTorch. With it
            ``"torchscript"`` traces the model; without it the model's code is scripted.

        Returns
        -------
        Path

        Raises
        ------
        ArgumentError
            If the framework has no such format, or an example is needed.
        MissingDependencyError
            If the package for the format is not installed.
        """
        from det_native.client.exporting import export

        return export(self._known.manifest.framework, self.load, path, format, example_inputs)

    def _change(self, **changes: Any) -> None:
        try:
            change = CheckpointChange(**changes)
        except ValidationError as error:
            raise ArgumentError(f"{error.errors()[0]['msg']}.") from None
        self._known = self._source.change_checkpoint(self.uuid, change)

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
