"""Checkpoints of an estimator's trial: the first rank writes them, each rank restores what is its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from det_harness.frameworks.estimator import saved_models
from det_harness.frameworks.estimator.definition import Definition
from det_harness.frameworks.estimator.exports import Exports
from det_harness.frameworks.estimator.model_files import Events, ModelFiles
from det_harness.frameworks.estimator.ranks import Ranks, write_own
from det_harness.ranks import checkpoint_files
from det_harness.trial import heap_file, rng, state_files
from det_harness.trial.publishing import disk_errors
from det_harness.trial.services import Services
from det_native.errors import CheckpointCorruptError
from det_native.estimator.hooks import RunHook

_FORMAT = 1
_GRADIENTS = "gradients"


class EstimatorCheckpoints:
    """Saves and restores one trial.

    Parameters
    ----------
    events : Events or None
        None where the trial has no folder for them.

    Attributes
    ----------
    own : Path or None
        The folder of the checkpoint to continue from that has what is this rank's own.
    """

    def __init__(
        self,
        definition: Definition,
        services: Services,
        ranks: Ranks,
        model: ModelFiles,
        exports: Exports,
        events: Events | None,
    ) -> None:
        self._definition = definition
        self._services = services
        self._ranks = ranks
        self._model = model
        self._exports = exports
        self._events = events
        self.own: Path | None = None
        self._hooks = definition.run_hooks
        self._changes = heap_file.KeptChanges(lambda: definition.snapshot)
        files = services.files
        self._files = [] if files is None else [files]
        if files is not None and services.tensorboard is not None and ranks.first:
            self._files.append(files.of_trial(services.tensorboard, "tensorboard"))

    def open(self, folder: Path | None) -> None:
        """Look into the checkpoint to go on from: the schedule hears where that is. A collective call.

        Raises
        ------
        CheckpointError
            If the ranks found different ones.
        """
        progress = None if folder is None else _progress_of(folder)
        checkpoint_files.check_same(self._ranks.communicator, progress)
        if folder is not None and progress is not None:
            self._services.schedule.restore(progress)
            self.own = checkpoint_files.own_folder(folder, self._ranks.communicator)
            self._changes.open(self.own)

    def restore(self, folder: Path | None, restore_gradients: Callable[[Any], None]) -> None:
        """Bring files, exports and random numbers to where they were, and tell the hooks; begin without a folder."""
        if folder is not None:
            self._model.restore(folder, self._services.schedule.progress.batches)
        for files in self._files:
            if folder is not None:
                files.restore(folder)
            files.begin()
        if folder is None:
            return
        self._exports.restore(folder)
        if self.own is not None and (self.own / f"{_GRADIENTS}.json").exists():
            restore_gradients(state_files.load(self.own, _GRADIENTS))
        for hook in self._hooks:
            hook.on_checkpoint_load(str(folder))
        if self.own is not None:
            rng.load(self.own)

    def restore_changes(self) -> None:
        """Bring what the training had changed in the program to where it was; hooks have begun."""
        self._changes.restore()

    def save_end(self) -> None:
        """Keep what hooks have changed when the training ended."""
        if self._ranks.first:
            self._changes.save_end(self._services.checkpoints)

    def save(
        self,
        estimator: Any,
        prefix: str,
        *,
        write_data: Callable[[Path], None],
        gradients: list[Any],
        own: Callable[[], dict[str, Any]],
    ) -> None:
        """Take a checkpoint; a collective call.

        Parameters
        ----------
        write_data : callable
            Writes where the training data are into a folder.
        gradients : list
            What is gathered of them.
        own : callable
            Returns what this rank has other values of than the first; a collective call.
        """
        progress, batch = self._services.schedule.snapshot(), self._services.schedule.progress.batches
        communicator, several = self._ranks.communicator, self._ranks.several
        variables = own() if several else {}

        def write_part(folder: Path) -> None:
            write_data(folder)
            rng.save(folder)
            write_own(folder, variables)
            self._changes.save(folder)
            if gradients:
                state_files.dump(folder, _GRADIENTS, gradients)

        def write(folder: Path) -> None:
            self._model.save(folder)
            state_files.dump(folder, "training", {"format": _FORMAT, "progress": progress})
            write_part(folder)
            if self._events is not None:
                self._events.flush()
            for files in self._files:
                files.save(folder)
            saved_models.export(estimator, self._definition.serving, prefix, folder)
            self._exports.save(folder)
            if several:
                checkpoint_files.unpack(folder, communicator.all_gather_object(None))

        told = [hook for hook in self._hooks if type(hook).on_checkpoint_end is not RunHook.on_checkpoint_end]

        def tell(uuid: str, folder: Path) -> None:
            for hook in told:
                hook.on_checkpoint_end(str(folder))

        if self._ranks.first:
            # Written again, the other ranks would have to send theirs again, too.
            on_saved = tell if told else None
            self._services.checkpoints.save(batch, write, repeatable=not several, on_saved=on_saved)
            return
        with disk_errors(tempfile.gettempdir(), batch):
            part = checkpoint_files.packed(write_part)
        communicator.all_gather_object(part)


def _progress_of(folder: Path) -> dict[str, Any]:
    try:
        training = state_files.load(folder, "training")
    except FileNotFoundError:
        raise CheckpointCorruptError(f"{folder.name} is not a checkpoint of an estimator.") from None
    if training["format"] != _FORMAT:
        raise CheckpointCorruptError(f"{folder.name} has format {training['format']}; this version reads {_FORMAT}.")
    progress: dict[str, Any] = training["progress"]
    return progress
