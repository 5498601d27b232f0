"""What flat tensors travel by: process groups of ``torch.distributed``, or Horovod."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
import torch.distributed as distributed

from det_harness.ranks.communicator import Communicator, begin

# Horovod's sums for PyTorch; bfloat16 is not among them.
_OF_HOROVOD = (torch.float16, torch.float32, torch.float64)


class Sum(Protocol):
    """A sum on its way."""

    def wait(self) -> Any:
        """Return when the tensor holds the sum.

        Raises
        ------
        RuntimeError
            If another rank is gone.
        """


#: One optimizer's way to the other ranks: what it sends meets nothing of another's, in whatever order they send. Called
#: with a contiguous tensor, as long and of the same type on every rank, and which of the line's tensors it is, the same
#: on every rank, it begins to replace the tensor by its sum over the ranks; one that is on its way is not sent again.
#: Raises RankLostError if another rank is gone.
Line = Callable[[torch.Tensor, int], Sum]


class Wire(Protocol):
    """Connects the ranks of a trial."""

    def open(self) -> Line:
        """Return a new line; a collective call, made in the same order on every rank."""

    def type_of(self, kind: torch.dtype) -> torch.dtype:
        """Return the type in which numbers of a type travel: itself, or a wider one."""


class GroupWire(Wire):
    """``torch.distributed``: a line is a process group of its own."""

    def __init__(self, communicator: Communicator) -> None:
        self._communicator = communicator

    def open(self) -> Line:
        """Return a new line; a collective call."""
        group = distributed.new_group()

        def add_up(flat: torch.Tensor, number: int) -> Sum:
            work: Sum = begin(lambda: distributed.all_reduce(flat, group=group, async_op=True))
            # On a GPU too: whoever waits for gradients reads some of what came with them, for which all must be there.
            watched: Sum = self._communicator.monitored(work, on_gpu=flat.is_cuda)
            return watched

        return add_up

    def type_of(self, kind: torch.dtype) -> torch.dtype:
        """Return the type itself."""
        return kind


class HorovodWire(Wire):
    """Horovod, as ``det_harness.ranks.horovod_group`` has started it: a line is a beginning of its names of tensors."""

    def __init__(self) -> None:
        self._lines = 0

    def open(self) -> Line:
        """Return a new line."""
        import horovod.torch

        self._lines += 1
        line = f"det_native.{self._lines}"

        def add_up(flat: torch.Tensor, number: int) -> Sum:
            name = f"{line}.{number}"
            handle = begin(lambda: horovod.torch.allreduce_async_(flat, op=horovod.torch.Sum, name=name))
            return _HorovodSum(horovod.torch, handle)

        return add_up

    def type_of(self, kind: torch.dtype) -> torch.dtype:
        """Return the type itself if Horovod adds such numbers up, else float32."""
        return kind if kind in _OF_HOROVOD else torch.float32


class _HorovodSum(Sum):
    def __init__(self, horovod: Any, handle: int) -> None:
        self._horovod = horovod
        self._handle = handle

    def wait(self) -> None:
        self._horovod.synchronize(self._handle)
