"""Ranks connected by ``torch.distributed``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from det_harness.ranks.communicator import Communicator, begin, finish
from det_harness.ranks.signed import packed, unpacked

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

    from det_harness.ranks.deadlock import DeadlockDetection

# One rank may validate for hours while the others wait for it. A rank that has died is noticed at once.
COLLECTIVE_TIMEOUT = timedelta(days=1)


class TorchCommunicator(Communicator):
    """The ranks of a process group of ``torch.distributed``, over its CPU backend.

    Parameters
    ----------
    deadlocks : DeadlockDetection, optional
        Waits for operations; by itself an operation is waited for as long as it takes.
    group : ProcessGroup, optional
        By default the one that ``torch.distributed`` was started with.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        secret: bytes,
        deadlocks: DeadlockDetection | None = None,
        group: ProcessGroup | None = None,
    ) -> None:
        import torch
        import torch.distributed

        self.rank, self.size = rank, size
        self._group = group
        self._secret = secret
        self._deadlocks = deadlocks
        self._torch = torch
        self._distributed = torch.distributed

    def all_gather_object(self, value: Any) -> list[Any]:
        """Return the values of all ranks, by rank, on every rank."""
        torch, own = self._torch, self._packed(value)
        lengths = self._lengths(own)
        most = max(lengths)
        padded = torch.zeros(most, dtype=torch.uint8)
        padded[: len(own)] = own
        found = [torch.empty(most, dtype=torch.uint8) for _ in range(self.size)]
        self._wait(lambda: self._distributed.all_gather(found, padded, self._group, async_op=True))
        return [self._unpacked(one[:length]) for one, length in zip(found, lengths, strict=True)]

    def gather_object(self, value: Any) -> list[Any] | None:
        """Return the values of all ranks, by rank, on the first rank, and None on the others."""
        torch, own = self._torch, self._packed(value)
        lengths = self._lengths(own)
        # Without a watch for deadlocks: gloo gives up a connection on which a wait of this kind has a limit.
        if self.rank != 0:
            finish(begin(lambda: self._distributed.isend(own, 0, self._group)))
            return None
        sent = [torch.empty(length, dtype=torch.uint8) for length in lengths[1:]]
        for rank, part in enumerate(sent, 1):
            finish(begin(lambda part=part, rank=rank: self._distributed.irecv(part, rank, self._group)))  # type: ignore[misc]
        return [value, *map(self._unpacked, sent)]

    def broadcast_object(self, value: Any) -> Any:
        """Return the first rank's value, on every rank; what the others give is not sent."""
        torch = self._torch
        own = self._packed(value) if self.rank == 0 else torch.empty(0, dtype=torch.uint8)
        length = torch.tensor([len(own)])
        self._wait(lambda: self._distributed.broadcast(length, 0, self._group, async_op=True))
        sent = own if self.rank == 0 else torch.empty(int(length), dtype=torch.uint8)
        self._wait(lambda: self._distributed.broadcast(sent, 0, self._group, async_op=True))
        return value if self.rank == 0 else self._unpacked(sent)

    def all_reduce_any(self, *flags: bool) -> Callable[[], list[bool]]:
        """Begin to find out which flags are set on any rank; what is returned waits for the answer."""
        asked = self._torch.tensor(flags, dtype=self._torch.uint8)
        most = self._distributed.ReduceOp.MAX
        work = begin(lambda: self._distributed.all_reduce(asked, most, self._group, async_op=True))

        def answer() -> list[bool]:
            finish(self.monitored(work))
            return [bool(flag) for flag in asked.tolist()]

        return answer

    def barrier(self) -> None:
        """Return once every rank has called it."""
        self._wait(lambda: self._distributed.all_reduce(self._torch.zeros(1), group=self._group, async_op=True))

    def monitored(self, work: Any, *, on_gpu: bool = False) -> Any:
        """Return the handle of an operation whose ``wait()`` notices that it would never end."""
        return work if self._deadlocks is None else self._deadlocks.monitored(work, on_gpu=on_gpu)

    def new_group(self) -> TorchCommunicator:
        """Return another communicator of the same ranks, for calls of another thread meanwhile; a collective call."""
        group = begin(lambda: self._distributed.new_group(backend="gloo", timeout=COLLECTIVE_TIMEOUT))
        return TorchCommunicator(self.rank, self.size, self._secret, group=group)

    def _lengths(self, own: Any) -> list[int]:
        """Return how long the messages of all ranks are."""
        torch = self._torch
        lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        self._wait(lambda: self._distributed.all_gather(lengths, torch.tensor([len(own)]), self._group, async_op=True))
        return [int(length) for length in lengths]

    def _wait(self, call: Callable[[], Any]) -> None:
        finish(self.monitored(begin(call)))

    def _packed(self, value: Any) -> Any:
        return self._torch.frombuffer(packed(value, self._secret), dtype=self._torch.uint8)

    def _unpacked(self, sent: Any) -> Any:
        return unpacked(sent.numpy().tobytes(), self._secret)
