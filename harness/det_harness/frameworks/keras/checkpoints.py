"""Checkpoints of a Keras trial: the first rank writes them, each rank restores what is its own.

The weights are the same on every rank. What differs (random numbers, what is not trained, callbacks, running metrics,
positions in data, gradients that are being gathered) is kept for each.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from det_harness.frameworks.keras import model_state, shuffled_data, warm_start
from det_harness.frameworks.keras.feed import Feed, TrainFunction
from det_harness.frameworks.keras.gradients import Gradients
from det_harness.frameworks.keras.hooks import AddedHooks
from det_harness.frameworks.keras.outside import FitChanges
from det_harness.frameworks.keras.validation import ValidationFeed
from det_harness.ranks import checkpoint_files
from det_harness.trial import state_files
from det_harness.trial.publishing import disk_errors
from det_harness.trial.services import Services
from det_harness.trial.user_files import UserFiles
from det_native.keras.callbacks import TensorBoard
from det_native.keras.native import FitCall
from det_native.process.streams import current_streams
from det_native.schema.manifests import CheckpointManifest

_GRADIENTS = "gradients"


class KerasCheckpoints:
    """Saves and restores one trial."""

    def __init__(
        self, services: Services, call: FitCall, feed: Feed, validation_feed: ValidationFeed, gradients: Gradients
    ) -> None:
        self._services = services
        self._communicator = services.communicator
        self._call = call
        self._feed = feed
        self._validation_feed = validation_feed
        self._gradients = gradients
        self._folder: Path | None = None
        self._own: Path | None = None
        self._files: list[UserFiles] = []
        self._changes = FitChanges(call)

    def open(self, folder: Path | None) -> None:
        """Look into the checkpoint to go on from: the schedule hears where that is, callbacks find their files.

        A collective call.

        Raises
        ------
        CheckpointError
            If the ranks found different ones.
        """
        progress = model_state.progress_of(folder) if folder is not None else None
        checkpoint_files.check_same(self._communicator, progress)
        self._files = self._files_to_keep()
        if folder is not None and progress is not None:
            self._open(folder, progress)
        elif self._services.warm_start is not None:
            with self._services.warm_start.folder() as source:
                self._begin_with(source, optimizers=self._services.warm_start.optimizers)
        for files in self._files:
            if folder is not None:
                files.restore(folder)
            files.begin()

    def _open(self, folder: Path, progress: dict[str, Any]) -> None:
        self._services.schedule.restore(progress)
        self._folder = folder
        self._own = checkpoint_files.own_folder(folder, self._communicator)
        if self._own is not None:
            self._feed.restore(self._own)
            self._validation_feed.restore(self._own)

    def restore(self, callbacks: Sequence[Any]) -> None:
        """Bring model, files and callbacks to where they were; ``on_train_begin`` has been called.

        Without a checkpoint nothing happens.
        """
        folder, own = self._folder, self._own
        if folder is None:
            return
        self._restore_model(folder)
        if own is not None and own != folder:
            self._restore_own(own)
        if own is not None and (own / f"{_GRADIENTS}.json").exists():
            self._gradients.restore(state_files.load(own, _GRADIENTS))
        files = self._services.files
        if files is not None:
            files.restore(folder)
        self._changes.restore_from(own or folder, callbacks)

    @property
    def logs(self) -> dict[str, float]:
        """What the last batch before the checkpoint reported."""
        return {} if self._folder is None else model_state.logs_of(self._own or self._folder)

    def attach(self, train: TrainFunction, batches: int) -> TrainFunction:
        """Return what trains on one batch, of data that are where they were."""
        other = self._folder / "of another number of slots" if self._folder is not None else None
        attached = self._feed.attach(train, batches, self._own or other)
        if self._own is not None:
            shuffled_data.restore(self._own, self._call)
        return attached

    def save(
        self,
        callbacks: Sequence[Any],
        logs: dict[str, float],
        hooks: AddedHooks,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Take a checkpoint of the present state; a collective call.

        `logs` is what the last batch reported, `metrics` what the weights have been validated with, where callbacks
        have changed them since the validation of this batch.
        """
        progress, batch = self._services.schedule.snapshot(), self._services.schedule.progress.batches

        def write(folder: Path) -> None:
            self._save_model(folder, progress, logs)
            self._save_rest(folder, callbacks)
            for files in self._files:
                files.save(folder)
            if self._communicator.size > 1:
                checkpoint_files.unpack(folder, self._communicator.all_gather_object(None))

        def write_own(folder: Path) -> None:
            self._save_own(folder, progress, logs)
            self._save_rest(folder, callbacks)

        if self._communicator.rank == 0:
            on_saved = hooks.checkpoint_written if hooks.wants_checkpoints else None
            # Written again, the other ranks would have to send theirs again, too.
            alone = self._communicator.size == 1
            metadata = CheckpointManifest.with_metrics({}, metrics)
            self._services.checkpoints.save(batch, write, repeatable=alone, metadata=metadata, on_saved=on_saved)
            return
        with disk_errors(tempfile.gettempdir(), batch):
            own = checkpoint_files.packed(write_own)
        self._communicator.all_gather_object(own)

    def save_end(
        self, callbacks: Sequence[Any], logs: dict[str, float], metrics: Mapping[str, float] | None = None
    ) -> None:
        """Save what the end of the training has made of model and callbacks; nothing of it is collective.

        `metrics` are the validation metrics of these weights, empty if they cannot be validated; without it, the
        weights are those of the last batch.
        """
        if self._communicator.rank != 0:
            return
        progress = self._services.schedule.snapshot()

        def write(folder: Path) -> None:
            self._save_model(folder, progress, logs)
            self._changes.save_with(folder, callbacks)

        self._services.checkpoints.save_end(write, metrics)

    def digest_of(self, callbacks: Sequence[Any]) -> bytes:
        """Return what tells the present states of callbacks, and of what they have changed, from others."""
        return self._changes.digest_with(callbacks) + self.digest_of_streams()

    def digest_of_streams(self) -> bytes:
        """Return what tells the present states of the process's streams of random numbers from others."""
        return repr(current_streams()).encode()

    # -- what a model of graphs does in another way

    def _save_model(self, folder: Path, progress: dict[str, Any], logs: dict[str, float]) -> None:
        model_state.save(folder, self._call, progress, logs)

    def _save_own(self, folder: Path, progress: dict[str, Any], logs: dict[str, float]) -> None:
        model_state.save_own(folder, self._call, progress, logs)

    def _restore_own(self, folder: Path) -> None:
        model_state.restore_own(folder, self._call)

    def _begin_with(self, folder: Path, *, optimizers: bool) -> None:
        """Give the model the weights of another trial, and with `optimizers` the states of its optimizers."""
        warm_start.begin_with(folder, self._call.model, optimizers=optimizers)

    def _restore_model(self, folder: Path) -> None:
        model_state.restore(folder, self._call, self._feed.first)

    def _save_rest(self, folder: Path, callbacks: Sequence[Any]) -> None:
        self._changes.save_with(folder, callbacks)
        self._feed.save(folder, self._services.schedule.progress.batches)
        self._validation_feed.save(folder)
        shuffled_data.save(folder, self._call)
        gathered = self._gradients.state()
        if any(each is not None for each in gathered):
            state_files.dump(folder, _GRADIENTS, gathered)

    def _files_to_keep(self) -> list[UserFiles]:
        """Return the folders whose files go into the checkpoints: the first rank's, which the others find, too."""
        files, events = self._services.files, self._services.tensorboard
        if files is None:
            return []
        writes_events = any(isinstance(each, TensorBoard) for each in self._call.callbacks())
        if events is None or not writes_events or self._communicator.rank:
            return [files]
        return [files, files.of_trial(events, "tensorboard")]
