"""Checkpoints of a PyTorchTrial, with the hooks around them: the first rank writes, every rank restores its own."""

from __future__ import annotations

import concurrent.futures
import logging
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_harness.frameworks.torch.hooks import CallbackHooks
from det_harness.frameworks.torch.reduction import Reduction
from det_harness.trial import heap_file, rng
from det_harness.trial.services import Services
from det_native.imports import Later
from det_native.pytorch import PyTorchTrialContext
from det_native.pytorch.native import PyTorchNativeContext
from det_native.schema.manifests import CheckpointManifest
from det_native.tensorboard import place

if TYPE_CHECKING:
    from det_harness.frameworks.torch import host_copy, sharded_state, trial_state
    from det_harness.ranks import checkpoint_files
    from det_harness.trial.throttle import Throttle
else:
    host_copy, sharded_state, trial_state = (
        Later(f"det_harness.frameworks.torch.{name}") for name in ("host_copy", "sharded_state", "trial_state")
    )
    checkpoint_files = Later("det_harness.ranks.checkpoint_files")

logger = logging.getLogger("det_harness")

_WITH_FOLDER = ("on_checkpoint_write_end", "on_checkpoint_end")


class TorchCheckpoints:
    """Saves and restores one trial.

    What differs by rank (generators, callbacks, reducers, gradients being aggregated, what callbacks put in) is kept
    for every rank; the rest is the first one's.

    Parameters
    ----------
    reduction : Reduction
        The training reducers.
    """

    def __init__(
        self, services: Services, context: PyTorchTrialContext, hooks: CallbackHooks, reduction: Reduction
    ) -> None:
        self._checkpoints = services.checkpoints
        self._warm_start = services.warm_start
        self._schedule = services.schedule
        self._communicator = services.communicator
        self._context = context
        self._hooks = hooks
        self._reduction = reduction
        # On other ranks than the first, whose checkpoints have a thread of their own.
        self._writing: Future[None] | None = None
        self._position: Callable[[], Any] = lambda: None
        self._digest_at_end: bytes | None = None
        self._changes = heap_file.KeptChanges(lambda: getattr(context, "snapshot", None))
        self._files = services.files

    @cached_property
    def _memory(self) -> host_copy.HostMemory:
        return host_copy.HostMemory()

    @cached_property
    def _shards(self) -> sharded_state.ShardWriter:
        return sharded_state.ShardWriter(self._communicator)

    def restore(self) -> Any:
        """Put the state of the checkpoint back, if there is one; returns the position in the training data, or None.

        Raises
        ------
        CheckpointError
            If it does not fit the trial, or the ranks found different ones.
        """
        with self._checkpoints.restore() as folder:
            position = self._restore(folder)
        self._note_end()
        return position

    def _begin(self) -> str | None:
        """Give the models the weights that the trial begins with, if they are another's; returns whose."""
        if self._warm_start is None:
            return None
        with self._warm_start.folder() as folder:
            trial_state.load_models(folder, self._context, optimizers=self._warm_start.optimizers)
        return self._warm_start.uuid

    def save(self, position: Callable[[], Any], metrics: Mapping[str, float] | None = None) -> None:
        """Save the present state; a collective call.

        Parameters
        ----------
        position : callable
            Returns the place in the training data, where it cannot be told from the number of batches.
        metrics : mapping, optional
            Validation metrics of the present weights, where hooks have changed them since the validation of the batch.
        """
        self._position = position
        place.flush()
        # A trial that was stopped makes checkpoints that another does not: what hooks draw must not change it.
        with rng.preserved():
            if self._communicator.rank == 0:
                self._checkpoints.save(
                    self._schedule.progress.batches,
                    self._write,
                    beside=self._context.device.type == "cpu",
                    repeatable=self._communicator.size == 1,  # else the other ranks would have to write again, too
                    metadata=CheckpointManifest.with_metrics(self._metadata(), metrics),
                    on_saved=self._saved,
                )
            else:
                self._save_own(self._schedule.progress.batches)
        self._note_end()

    def save_end(self, metrics: Mapping[str, float], validated: bytes | None) -> None:
        """Save what callbacks have made of the models since the last checkpoint; nothing of it is collective.

        Parameters
        ----------
        metrics : mapping
            Of the state with the digest `validated`; another one has none.
        """
        before, self._digest_at_end = self._digest_at_end, None
        ended = self._schedule.over and self._communicator.rank == 0
        changes = self._changes.content_at_end() if ended else b""
        now = trial_state.digest(self._context) if before is not None else None
        if now != before or changes:
            own = None if now == before else metrics if now == validated else {}
            self._checkpoints.save_end(lambda folder: trial_state.save_end(folder, self._context, changes), own)

    def _note_end(self) -> None:
        """Note the state after the last batch, where callbacks may change it."""
        first = self._communicator.rank == 0
        if first and self._schedule.over and self._hooks.in_use and sharded_state.mesh_of(self._context.models) is None:
            self._digest_at_end = trial_state.digest(self._context)

    def wait(self) -> None:
        """Block until all that this rank has to write is written, on the first rank until it is published.

        Raises
        ------
        StorageError
            If something cannot be written.
        """
        if self._communicator.rank == 0:
            self._checkpoints.wait()
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def settle(self) -> None:
        """Block until this rank writes nothing more, whether it goes well or not: it needs the others for it."""
        if self._writing is not None:
            concurrent.futures.wait([self._writing])

    def _restore(self, folder: Path | None) -> Any:
        facts = {} if folder is None else trial_state.load_facts(folder)
        checkpoint_files.check_same(self._communicator, facts.get("uuid"))
        if folder is not None:
            self._schedule.restore(facts["schedule"])
        uuid = facts.get("uuid") if folder is not None else self._begin()
        self._hooks.call("on_trial_startup", self._schedule.progress.batches, uuid)
        self._reduction.reset()
        if folder is not None:
            self._restore_state(folder)
        if self._files is not None:
            if folder is not None:
                self._files.restore(folder)
            self._files.begin()
        return facts.get("position")

    def _restore_state(self, folder: Path) -> None:
        from det_harness.frameworks.torch import changed

        rank, size = self._communicator.rank, self._communicator.size
        own = checkpoint_files.folder_of(folder, rank)
        made_by = checkpoint_files.count(folder)
        mesh = sharded_state.mesh_of(self._context.models)
        state = trial_state.read(folder)
        if own is None:
            state["reducers"] = []  # what was gathered counts once, on the rank that has it
        elif rank > 0:
            state |= trial_state.read(own)
        if made_by != size or mesh is not None:
            state["gradients"] = _mean_gradients(folder, made_by)
        if rank == 0 and made_by != size:
            logger.warning(
                "The checkpoint was made on %d slot(s), the trial has %d now: it goes on, but not with the same bits.",
                made_by,
                size,
            )
        sharded_state.put_back(state, folder, mesh)
        self._changes.before = state.pop(trial_state.CHANGES)
        self._hooks.call("on_checkpoint_load_start", state)
        self._changes.restore()  # first: it may add layers, and resize buffers
        changed.regroup(self._context.optimizers, state, self._context.models, self._context.as_wrapped)
        sharded_state.fit(state, self._context)
        trial_state.restore(state, self._context, self._hooks.callbacks)
        if own is not None:
            self._reduction.restore(state.get("reducers") or [])
        if self._reduction:
            for gone in filter(
                None, (checkpoint_files.folder_of(folder, one) for one in range(rank + size, made_by, size))
            ):
                self._reduction.take_over(trial_state.read(gone).get("reducers") or [])
        rng.load(own or folder)

    def _state(self) -> dict[str, Any]:
        state = trial_state.collect(self._context, self._hooks.callbacks, self._reduction.state())
        with rng.preserved():
            self._hooks.call("on_checkpoint_save_start", state)
        state[trial_state.CHANGES] = self._changes.content()
        return state

    def _write(self, folder: Path) -> Callable[[Throttle], None] | None:
        from det_harness.trial.throttle import Throttle

        state, sharded = sharded_state.take_out(self._state())
        write_weights = trial_state.save(folder, state, self._schedule.snapshot(), self._position(), self._memory)
        if self._files is not None:
            self._files.save(folder)
        checkpoint_files.unpack(folder, self._communicator.all_gather_object(None))
        write_shards = self._shards.copied(folder, sharded) if sharded else None  # on every rank, or on none

        def rest(throttle: Throttle) -> None:
            if write_shards is not None:
                write_shards()  # first: the other ranks wait for it
            write_weights(throttle)

        if not self._is_looked_into():
            return rest
        rest(Throttle())
        return None

    def _save_own(self, batch: int) -> None:
        """Send the first rank what a rank other than it has of its own, and begin to write its shards."""
        from det_harness.ranks.brought_files import bring
        from det_harness.trial.publishing import disk_errors

        self.wait()
        state, sharded = sharded_state.take_out(self._state())
        with disk_errors(tempfile.gettempdir(), batch):
            own = checkpoint_files.packed(lambda folder: trial_state.save_own(folder, state))
        self._communicator.all_gather_object(own)
        if sharded:
            write_shards = disk_errors("the first slot's folder", batch)(self._shards.copied(None, sharded))
            self._writing = _in_background(write_shards)
            if self._is_looked_into():
                self.wait()
        _, name = self._communicator.broadcast_object(None)
        folder = Path(name)
        if folder.is_dir():
            self._hooks.call("on_checkpoint_write_end", name)
            bring(self._communicator, None, folder)
            return
        # The first rank is on another machine: what hooks write here goes there.
        with tempfile.TemporaryDirectory(prefix="det-hooks-") as place:
            self._hooks.call("on_checkpoint_write_end", place)
            bring(self._communicator, Path(place), folder)

    def _is_looked_into(self) -> bool:
        """Return whether hooks are given the folder of a checkpoint, which has to be complete then."""
        return any(self._hooks.of(name) for name in _WITH_FOLDER)

    def _metadata(self) -> dict[str, Any]:
        """Return what views say of the checkpoint: which of a trial, a model or several models it loads."""
        if not isinstance(self._context, PyTorchNativeContext):
            return {"loads": "trial"}
        return {"loads": "model" if len(self._context.models) == 1 else "models"}

    def _saved(self, uuid: str, folder: Path) -> None:
        from det_harness.ranks.brought_files import bring

        trial_state.note_uuid(folder, uuid)
        self._communicator.broadcast_object((uuid, str(folder)))
        self._hooks.call("on_checkpoint_write_end", str(folder))
        bring(self._communicator, None, folder)  # all ranks have written what they want to
        self._hooks.call("on_checkpoint_end", str(folder))


def _in_background(write: Callable[[], None]) -> Future[None]:
    """Call a function in a thread of its own, which ends with it."""
    executor = ThreadPoolExecutor(1, thread_name_prefix="det-shards")
    try:
        return executor.submit(write)
    finally:
        executor.shutdown(wait=False)


def _mean_gradients(folder: Path, made_by: int) -> list[dict[str, Any]]:
    """Return the gradients of an aggregation under way, for ranks that are other ones than those that made them.

    Every rank gets the mean: averaged with the batches to come over any number of ranks, it is what it was.
    """
    folders = [checkpoint_files.folder_of(folder, rank) for rank in range(made_by)]
    parts = [trial_state.read(each)["gradients"] for each in folders if each is not None]
    means: list[dict[str, Any]] = []
    for of_model in zip(*parts, strict=True):
        names = sorted({name for part in of_model for name in part})
        found = {name: [part[name] for part in of_model if name in part] for name in names}
        # A sharded gradient is none of a rank's own: it is put into its place, which is empty, later.
        means.append(
            {name: None if any(one is None for one in each) else sum(each) / made_by for name, each in found.items()}
        )
    return means
