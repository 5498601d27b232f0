"""What flat tensors travel by: process groups of ``torch.distributed``, or Horovod."""

from __future__ import annotations

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


class Line(Protocol):
    """One optimizer's way to the other ranks: what it sends meets nothing of another's, in whatever order they send."""

    def add_up(self, flat: torch.Tensor, number: int) -> Sum:
        """Begin to replace a tensor by its sum over the ranks.

        Parameters
        ----------
        flat : torch.Tensor
            Contiguous, as long and of the same type on every rank.
        number : int
            Which of the line's tensors this is, the same on every rank; one that is on its way is not sent again.

        Raises
        ------
        RankLostError
            If another rank is gone.
        """


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
        return _GroupLine(distributed.new_group(), self._communicator)

    def type_of(self, kind: torch.dtype) -> torch.dtype:
        """Return the type itself."""
        return kind


class _GroupLine(Line):
    def __init__(self, group: Any, communicator: Communicator) -> None:
        self._group = group
        self._communicator = communicator

    def add_up(self, flat: torch.Tensor, number: int) -> Sum:
        work: Sum = begin(lambda: distributed.all_reduce(flat, group=self._group, async_op=True))
        # On a GPU too: whoever waits for gradients reads some of what came with them, for which all must be there.
        watched: Sum = self._communicator.monitored(work, on_gpu=flat.is_cuda)
        return watched


class HorovodWire(Wire):
    """Horovod, as ``det_harness.ranks.horovod_group`` has started it: a line is a beginning of its names of tensors."""

    def __init__(self) -> None:
        self._lines = 0

    def open(self) -> Line:
        """Return a new line."""
        self._lines += 1
        return _HorovodLine(f"det_native.{self._lines}")

    def type_of(self, kind: torch.dtype) -> torch.dtype:
        """Return the type itself if Horovod adds such numbers up, else float32."""
        return kind if kind in _OF_HOROVOD else torch.float32


class _HorovodLine(Line):
    def __init__(self, name: str) -> None:
        import horovod.torch

        self._horovod: Any = horovod.torch
        self._name = name

    def add_up(self, flat: torch.Tensor, number: int) -> Sum:
        horovod, name = self._horovod, f"{self._name}.{number}"
        handle = begin(lambda: horovod.allreduce_async_(flat, op=horovod.Sum, name=name))
        return _HorovodSum(horovod, handle)


class _HorovodSum(Sum):
    def __init__(self, horovod: Any, handle: int) -> None:
        self._horovod = horovod
        self._handle = handle

    def wait(self) -> None:
        self._horovod.synchronize(self._handle)
