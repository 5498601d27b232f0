"""Tensors that the slots of a trial have sharded among them, in a checkpoint: each slot writes what it has.

They lie in ``sharded/`` as ``torch.distributed.checkpoint`` writes them, under the paths of their places in the state
(see ``nested``). What that package sends between processes is pickled; here it travels by the trial's communicator,
which signs it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from det_harness.frameworks.torch import nested
from det_harness.frameworks.torch.host_copy import HostMemory
from det_harness.ranks.brought_files import bring
from det_harness.ranks.communicator import Communicator
from det_native.errors import DiskFullError, StorageError
from det_native.pytorch import PyTorchTrialContext
from det_native.storage.room import lacks_room

_FOLDER = "sharded"


def is_sharded(value: Any) -> bool:
    """Return whether a value is a tensor that several processes have a part of each (a ``DTensor``)."""
    return isinstance(value, torch.Tensor) and hasattr(value, "full_tensor")


def mesh_of(models: Iterable[torch.nn.Module]) -> Any:
    """Return the mesh over which the models are sharded; None if they are not."""
    parameters = (parameter for model in models for parameter in model.parameters())
    return next((getattr(one, "device_mesh", None) for one in parameters if is_sharded(one)), None)


def take_out(state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return a state without its sharded tensors, and these by their paths."""
    found: dict[str, torch.Tensor] = {}
    rest = nested.split(state, lambda leaf: nested.TAKEN if is_sharded(leaf) else leaf, found)
    return rest, found


class ShardWriter:
    """Writes what this slot has of sharded tensors into checkpoints, from a copy: training goes on meanwhile."""

    def __init__(self, communicator: Communicator) -> None:
        self._communicator = communicator
        self._beside: Communicator | None = None
        self._memory = HostMemory()

    def copied(self, folder: Path | None, tensors: dict[str, torch.Tensor]) -> Callable[[], None]:
        """Copy sharded tensors to host memory, and return what writes the copy.

        Both are collective calls. What is returned may be called by another thread; it raises what went wrong on this
        slot, and a StorageError for what went wrong on another.

        Parameters
        ----------
        folder : Path or None
            The first slot's; the others give None. Slots on other machines bring what they write there.
        tensors : dict
            From :func:`take_out`, on every slot.
        """
        from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
        from torch.distributed.checkpoint.filesystem import FileSystemWriter

        communicator = self._communicator
        beside = self._beside = self._beside or communicator.new_group()
        rank_zero = communicator.rank == 0
        place = Path(communicator.broadcast_object(str(folder))) / _FOLDER
        elsewhere = not place.parent.is_dir()  # this slot is on another machine
        several = communicator.all_reduce_any(elsewhere)()[0]
        planner = DefaultSavePlanner()
        own_place = Path(tempfile.mkdtemp(prefix="det-shards-")) if elsewhere else place
        writer = FileSystemWriter(own_place, sync_files=False)  # publishing brings them to the disk
        planner.set_up_planner(tensors, writer.storage_meta(), rank_zero)
        writer.set_up_storage_writer(rank_zero)
        plans = communicator.all_gather_object(writer.prepare_local_plan(planner.create_local_plan()))
        plans, metadata = planner.create_global_plan(plans)
        own = planner.finish_plan(writer.prepare_global_plan(plans)[communicator.rank])
        copies, lent = self._memory.copy([planner.resolve_data(item).detach() for item in own.items])
        in_copy: Any = _Copies({item.index: copy for item, copy in zip(own.items, copies, strict=True)})
        del copies, planner, tensors

        def write() -> None:
            try:
                with _told_to(beside) as results:
                    written = writer.write_data(own, in_copy)
                    written.wait()
                    results.append(written.value())
                if several:
                    with _told_to(beside) as brought:
                        bring(beside, own_place if elsewhere else None, place)
                        brought.append(None)
            finally:
                if elsewhere:
                    shutil.rmtree(own_place, ignore_errors=True)
            self._memory.give_back(lent)
            if rank_zero:
                writer.finish(metadata, results)

        return write


class _Copies:
    """Stands for the planner of a checkpoint when it is written: gives the copies of the tensors."""

    def __init__(self, copies: dict[Any, torch.Tensor]) -> None:
        self._copies = copies

    def resolve_data(self, item: Any) -> torch.Tensor:
        """Return what is to be written for an item of the plan."""
        return self._copies[item.index]


@contextmanager
def _told_to(communicator: Communicator) -> Iterator[list[Any]]:
    """Let the block add this slot's result to a list, which has the results of all slots after it.

    A slot whose block fails tells the others, lest they wait for it.

    Raises
    ------
    StorageError
        If the block of another slot failed.
    """
    results: list[Any] = []
    try:
        yield results
    except Exception as error:
        communicator.all_gather_object((None, str(error), lacks_room(error)))
        raise
    gathered = communicator.all_gather_object((results.pop(), "", False))
    results += [result for result, _, _ in gathered]
    failed = [f"slot {rank}: {problem}" for rank, (_, problem, _) in enumerate(gathered) if problem]
    if failed:
        kind = DiskFullError if any(full for _, _, full in gathered) else StorageError
        raise kind(f"The part of the checkpoint that another slot has cannot be written: {'; '.join(failed)}")


def put_back(state: dict[str, Any], folder: Path, mesh: Any = None, *, only: str = "") -> None:
    """Read the sharded tensors of a checkpoint, if it has any, into their places in a state.

    Parameters
    ----------
    mesh : DeviceMesh, optional
        Over which they are sharded now, however many slots have written them; without one they are read whole.
    only : str
        A key of `state`: what is elsewhere is left out.
    """
    if not (folder / _FOLDER).is_dir():
        return
    for path, tensor in _read(folder / _FOLDER, mesh, f"\0s{only}\0" if only else "\0").items():
        # A slot that is new has no place for what another put into the checkpoint of its own.
        with suppress(KeyError, IndexError, TypeError):
            nested.put(state, path, tensor)


def _read(folder: Path, mesh: Any, prefix: str) -> dict[str, torch.Tensor]:
    from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
    from torch.distributed.checkpoint.filesystem import FileSystemReader

    reader, planner = FileSystemReader(folder), DefaultLoadPlanner()
    metadata = reader.read_metadata()
    tensors = {
        path: _empty(entry, mesh) for path, entry in metadata.state_dict_metadata.items() if path.startswith(prefix)
    }
    planner.set_up_planner(tensors, metadata, True)
    reader.set_up_storage_reader(metadata, True)
    plan = reader.prepare_local_plan(planner.create_local_plan())
    plan = reader.prepare_global_plan(planner.create_global_plan([plan]))[0]
    reader.read_data(planner.finish_plan(plan), planner).wait()
    return tensors


def _empty(entry: Any, mesh: Any) -> torch.Tensor:
    if mesh is None:
        return torch.zeros(entry.size, dtype=entry.properties.dtype)
    from torch.distributed import tensor

    return tensor.zeros(entry.size, dtype=entry.properties.dtype, device_mesh=mesh, placements=[tensor.Shard(0)])


def fit(state: dict[str, Any], context: PyTorchTrialContext) -> None:
    """Shard what a checkpoint of whole models has as the trial's models are; a collective call if they are sharded.

    Parameters
    ----------
    state : dict
        The same on all slots.
    """
    if mesh_of(context.models) is None:
        return
    for model, saved in zip(context.models, state["models_state_dict"], strict=False):
        for name, value in model.state_dict().items():
            if name in saved:
                saved[name] = _like(saved[name], value)
    for optimizer, saved in zip(context.optimizers, state["optimizers_state_dict"], strict=False):
        _fit_optimizer(optimizer, saved)
    for model, gradients in zip(context.models, state["gradients"], strict=False):
        for name, parameter in model.named_parameters():
            if name in gradients:
                gradients[name] = _like(gradients[name], parameter)


def _fit_optimizer(optimizer: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    for group, saved_group in zip(optimizer.param_groups, saved["param_groups"], strict=False):
        for parameter, key in zip(group["params"], saved_group["params"], strict=False):
            values = saved["state"].get(key, {})
            for name, value in values.items():
                if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                    values[name] = _like(value, parameter)


def _like(value: Any, sharded: torch.Tensor) -> Any:
    """Return a whole tensor in the shards of another of its shape; what does not fit is left for the loading to say."""
    if not is_sharded(sharded) or is_sharded(value) or value.shape != sharded.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    like: Any = sharded
    return distribute_tensor(value.to(like.dtype), like.device_mesh, like.placements)
