"""What the ranks of a trial tell each other besides gradients: parts of metrics, decisions."""

from __future__ import annotations

import hmac
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from det_native.errors import PeerLostError

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

    from det_harness.ranks.deadlock import DeadlockDetection

# One rank may validate for hours while the others wait for it. A rank that has died is noticed at once.
COLLECTIVE_TIMEOUT = timedelta(days=1)

_DIGEST = "sha256"
_DIGEST_BYTES = 32
_NETWORK_ERRORS = ("DistBackendError", "DistNetworkError")  # of torch.distributed


class Communicator(Protocol):
    """Collective calls: every rank makes each of them, in the same order.

    Attributes
    ----------
    rank, size : int
    """

    rank: int
    size: int

    def all_gather_object(self, value: Any) -> list[Any]:
        """Return the (picklable) values of all ranks, by rank, on every rank."""

    def broadcast_object(self, value: Any) -> Any:
        """Return the first rank's value, on every rank."""

    def all_reduce_any(self, *flags: bool) -> Callable[[], list[bool]]:
        """Begin to find out which flags are set on any rank; what is returned waits for the answer."""

    def monitored(self, work: Any, *, on_gpu: bool = False) -> Any:
        """Return the handle of an operation whose ``wait()`` notices that it would never end."""

    def new_group(self) -> Communicator:
        """Return another communicator of the same ranks, for calls of another thread meanwhile; a collective call."""


class OneProcess(Communicator):
    """A trial of one rank."""

    def __init__(self) -> None:
        self.rank, self.size = 0, 1

    def all_gather_object(self, value: Any) -> list[Any]:
        """Return the value alone."""
        return [value]

    def broadcast_object(self, value: Any) -> Any:
        """Return the value."""
        return value

    def all_reduce_any(self, *flags: bool) -> Callable[[], list[bool]]:
        """Answer with the flags themselves."""
        return lambda: list(flags)

    def monitored(self, work: Any, *, on_gpu: bool = False) -> Any:
        """Return the handle as it is."""
        return work

    def new_group(self) -> Communicator:
        """Return itself."""
        return self


class TorchCommunicator(Communicator):
    """The ranks of a process group of ``torch.distributed``, over its CPU backend.

    What is unpickled was signed with a secret that only the ranks have: the group's ports are open to every process of
    the machine.

    Parameters
    ----------
    rank, size : int
    secret : bytes
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
        """Return the values of all ranks, by rank, on every rank.

        Raises
        ------
        PeerLostError
            If another rank is gone.
        """
        torch, own = self._torch, self._packed(value)
        lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        self._wait(lambda: self._distributed.all_gather(lengths, torch.tensor([len(own)]), self._group, async_op=True))
        most = max(int(length) for length in lengths)
        padded = torch.zeros(most, dtype=torch.uint8)
        padded[: len(own)] = own
        found = [torch.empty(most, dtype=torch.uint8) for _ in range(self.size)]
        self._wait(lambda: self._distributed.all_gather(found, padded, self._group, async_op=True))
        return [self._unpacked(one[: int(length)]) for one, length in zip(found, lengths, strict=True)]

    def broadcast_object(self, value: Any) -> Any:
        """Return the first rank's value, on every rank; what the others give is not sent.

        Raises
        ------
        PeerLostError
            If another rank is gone.
        """
        torch = self._torch
        own = self._packed(value) if self.rank == 0 else torch.empty(0, dtype=torch.uint8)
        length = torch.tensor([len(own)])
        self._wait(lambda: self._distributed.broadcast(length, 0, self._group, async_op=True))
        sent = own if self.rank == 0 else torch.empty(int(length), dtype=torch.uint8)
        self._wait(lambda: self._distributed.broadcast(sent, 0, self._group, async_op=True))
        return value if self.rank == 0 else self._unpacked(sent)

    def all_reduce_any(self, *flags: bool) -> Callable[[], list[bool]]:
        """Begin to find out which flags are set on any rank; what is returned waits for the answer.

        Raises
        ------
        PeerLostError
            If another rank is gone.
        """
        asked = self._torch.tensor(flags, dtype=self._torch.uint8)
        most = self._distributed.ReduceOp.MAX
        work = begin(lambda: self._distributed.all_reduce(asked, most, self._group, async_op=True))

        def answer() -> list[bool]:
            finish(self.monitored(work))
            return [bool(flag) for flag in asked.tolist()]

        return answer

    def monitored(self, work: Any, *, on_gpu: bool = False) -> Any:
        """Return the handle of an operation whose ``wait()`` notices that it would never end."""
        return work if self._deadlocks is None else self._deadlocks.monitored(work, on_gpu=on_gpu)

    def new_group(self) -> TorchCommunicator:
        """Return another communicator of the same ranks, for calls of another thread meanwhile; a collective call.

        Raises
        ------
        PeerLostError
            If another rank is gone.
        """
        group = begin(lambda: self._distributed.new_group(backend="gloo", timeout=COLLECTIVE_TIMEOUT))
        return TorchCommunicator(self.rank, self.size, self._secret, group=group)

    def _wait(self, call: Callable[[], Any]) -> None:
        finish(self.monitored(begin(call)))

    def _packed(self, value: Any) -> Any:
        try:
            content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError):
            import cloudpickle  # for classes and functions that no other process can import

            content = cloudpickle.dumps(value)
        signed = bytearray(hmac.digest(self._secret, content, _DIGEST) + content)
        return self._torch.frombuffer(signed, dtype=self._torch.uint8)

    def _unpacked(self, sent: Any) -> Any:
        signed = sent.numpy().tobytes()
        digest, content = signed[:_DIGEST_BYTES], signed[_DIGEST_BYTES:]
        if not hmac.compare_digest(digest, hmac.digest(self._secret, content, _DIGEST)):
            raise PeerLostError("Something that is no process of this trial has joined its exchange: it was refused.")
        return pickle.loads(content)


def begin(call: Callable[[], Any]) -> Any:
    """Start a collective operation and return its handle.

    Raises
    ------
    PeerLostError
        If another rank is gone.
    """
    try:
        return call()
    except RuntimeError as error:
        raise lost(error) from error


def finish(work: Any) -> None:
    """Wait for a collective operation.

    Raises
    ------
    PeerLostError
        If another rank is gone.
    """
    try:
        work.wait()
    except RuntimeError as error:
        raise lost(error) from error


@contextmanager
def losses_named() -> Iterator[None]:
    """Let the block, in which torch exchanges what models or users' code ask for, fail in words if a rank is gone.

    Raises
    ------
    PeerLostError
    """
    try:
        yield
    except RuntimeError as error:
        if "gloo/transport" not in str(error) and type(error).__name__ not in _NETWORK_ERRORS:
            raise
        raise lost(error) from error


def lost(error: Exception) -> PeerLostError:
    """Return the error that says that a rank is gone, for one of the backend's."""
    reason = str(error).partition("\n")[0]
    for advice in (". This is typically", ". This was caused"):  # of torch, of Horovod
        reason = reason.partition(advice)[0]
    return PeerLostError(
        "Another process of this trial has ended or does not answer, so this one cannot go on; what went wrong is in "
        f"the output of that process. ({reason})"
    )
