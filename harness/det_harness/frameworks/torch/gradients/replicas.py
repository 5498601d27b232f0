"""Models that are equal on all ranks: weights when training begins, buffers before every batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as distributed

from det_harness.frameworks.torch import sharded_state
from det_harness.ranks.communicator import Communicator, begin, finish
from det_native.errors import TrialDefinitionError


def check_alike(
    maker: str,
    models: Sequence[torch.nn.Module],
    optimizers: Sequence[torch.optim.Optimizer],
    communicator: Communicator,
) -> None:
    """Refuse a trial whose models or optimizers differ between ranks: their exchanges would not fit each other.

    Parameters
    ----------
    maker : str
        What made them, for the message.

    Raises
    ------
    TrialDefinitionError
        The same on every rank.
    """
    own = [
        [(name, tuple(value.shape), str(value.dtype)) for name, value in model.state_dict(keep_vars=True).items()
         if isinstance(value, torch.Tensor)]
        for model in models
    ]  # fmt: skip
    steps = [[tuple(one.shape) for group in made.param_groups for one in group["params"]] for made in optimizers]
    found = communicator.all_gather_object((own, steps))
    for rank, other in enumerate(found):
        if other != found[0]:
            what = "models" if other[0] != found[0][0] else "optimizers"
            raise TrialDefinitionError(
                f"{maker} made other {what} on slot {rank} than on slot 0: make and wrap the same ones, in "
                "the same order, on every slot."
            )


def broadcast_models(models: Iterable[torch.nn.Module], communicator: Communicator) -> None:
    """Make the parameters and buffers of every rank those of the first one."""
    with torch.no_grad():
        # What is sharded was sent before it was.
        tensors = [
            one
            for model in models
            for one in (*model.parameters(), *model.buffers())
            if not sharded_state.is_sharded(one)
        ]
        sent = [_bytes(one) for one in tensors]
        for work in [_broadcast(part, communicator) for part in sent]:
            finish(work)
        if communicator.rank != 0:
            for tensor, part in zip(tensors, sent, strict=True):
                tensor.copy_(_typed(part, tensor))


class Buffers:
    """The buffers of the models (running means and the like), which are those of the first rank at every batch.

    As with torch's ``DistributedDataParallel``, what the first rank has gathered is what counts.
    """

    def __init__(self, models: Iterable[torch.nn.Module], communicator: Communicator) -> None:
        self._communicator = communicator
        buffers = {id(one): one for model in models for one in model.buffers() if one.numel()}
        by_device: dict[torch.device, list[torch.Tensor]] = {}
        # Parts of a row of bytes can be seen as another type only at multiples of its size: the widest come first.
        for buffer in sorted(buffers.values(), key=lambda one: -one.element_size()):
            by_device.setdefault(buffer.device, []).append(buffer)
        self._by_device = list(by_device.values())
        self._lengths = [[one.numel() * one.element_size() for one in buffers] for buffers in self._by_device]
        self._rank_zero = communicator.rank == 0

    def send(self) -> None:
        """Make the buffers of every rank those of the first one; a collective call."""
        with torch.no_grad():
            for buffers, lengths in zip(self._by_device, self._lengths, strict=True):
                self._send(buffers, lengths)

    def _send(self, buffers: list[torch.Tensor], lengths: list[int]) -> None:
        if self._rank_zero:
            flat = torch.cat([_bytes(one) for one in buffers])
        else:
            flat = torch.empty(sum(lengths), dtype=torch.uint8, device=buffers[0].device)
        finish(_broadcast(flat, self._communicator))
        if not self._rank_zero:
            for buffer, part in zip(buffers, torch.split(flat, lengths), strict=True):
                # As data: a graph that was made with the old ones can still be gone through backward.
                buffer.data.copy_(_typed(part, buffer))


def _broadcast(tensor: torch.Tensor, communicator: Communicator) -> Any:
    work = begin(lambda: distributed.broadcast(tensor, 0, async_op=True))
    # The processor does not wait for what a GPU does in its order; whatever holds that up is seen with the gradients.
    return work if tensor.is_cuda else communicator.monitored(work)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def _typed(part: Any, like: torch.Tensor) -> torch.Tensor:
    typed: torch.Tensor = part.view(like.dtype).view(like.shape)
    return typed
