"""What the ranks of a trial tell each other besides gradients: parts of metrics, decisions.

The verbs are those of ``torch.distributed``, whatever is behind them; no framework is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from det_native.errors import RankLostError

_NETWORK_ERRORS = ("DistBackendError", "DistNetworkError")  # of torch.distributed


class Communicator(Protocol):
    """Collective calls: every rank makes each of them, in the same order."""

    rank: int
    size: int

    def all_gather_object(self, value: Any) -> list[Any]:
        """Return the (picklable) values of all ranks, by rank, on every rank."""

    def gather_object(self, value: Any) -> list[Any] | None:
        """Return the (picklable) values of all ranks, by rank, on the first rank, and None on the others."""

    def broadcast_object(self, value: Any) -> Any:
        """Return the first rank's value, on every rank."""

    def all_reduce_any(self, *flags: bool) -> Callable[[], list[bool]]:
        """Begin to find out which flags are set on any rank; what is returned waits for the answer."""

    def barrier(self) -> None:
        """Return once every rank has called it."""

    def monitored(self, work: Any, *, on_gpu: bool = False) -> Any:
        """Return the handle of an operation whose ``wait()`` notices a deadlock, where that can be noticed."""

    def new_group(self) -> Communicator:
        """Return another communicator of the same ranks, for calls of another thread meanwhile; a collective call."""


class OneProcess(Communicator):
    """A trial of one rank."""

    def __init__(self) -> None:
        self.rank, self.size = 0, 1

    def all_gather_object(self, value: Any) -> list[Any]:
        """Return the value alone."""
        return [value]

    def gather_object(self, value: Any) -> list[Any]:
        """Return the value alone."""
        return [value]

    def broadcast_object(self, value: Any) -> Any:
        """Return the value."""
        return value

    def all_reduce_any(self, *flags: bool) -> Callable[[], list[bool]]:
        """Answer with the flags themselves."""
        return lambda: list(flags)

    def barrier(self) -> None:
        """Do nothing: there is nobody to wait for."""

    def monitored(self, work: Any, *, on_gpu: bool = False) -> Any:
        """Return the handle as it is."""
        return work

    def new_group(self) -> Communicator:
        """Return itself."""
        return self


def begin(call: Callable[[], Any]) -> Any:
    """Start a collective operation and return its handle.

    Raises
    ------
    RankLostError
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
    RankLostError
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
    RankLostError
    """
    try:
        yield
    except RuntimeError as error:
        if "gloo/transport" not in str(error) and type(error).__name__ not in _NETWORK_ERRORS:
            raise
        raise lost(error) from error


def lost(error: Exception) -> RankLostError:
    """Return the error that says that a rank is gone, for one of the backend's."""
    reason = str(error).partition("\n")[0]
    for advice in (". This is typically", ". This was caused"):  # of torch, of Horovod
        reason = reason.partition(advice)[0]
    return RankLostError(
        "Another process of this trial has ended or does not answer, so this one cannot go on; what went wrong is in "
        f"the output of that process. ({reason})"
    )
