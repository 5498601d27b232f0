"""The master behind ``ssh://``, as Jupyter reaches it: connecting takes seconds, and nobody is held up by it."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from det_jupyter import statuses
from det_jupyter.statuses import UnavailableError
from det_native.client.addresses import Verb
from det_native.client.connect import Address, address_of
from det_native.errors import AuthenticationError, DetError, NoMasterError, ProtocolMismatchError

# For so long, a failure is told again instead of being tried again.
_FAILURE_SECONDS = 5.0


class Reacher:
    """Connects in a thread; whoever asks meanwhile waits for the same connection.

    Parameters
    ----------
    seconds : float
        How long a question waits for the connection before it is told that it is being made.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._doubted = False
        self._task: asyncio.Task[Address | None] | None = None
        self._failure: DetError | None = None
        self._failed = 0.0

    async def address(self, named: str) -> Address:
        """Return where the master is reached on this machine.

        Raises
        ------
        UnavailableError
            If it cannot be reached now, or not yet.
        """
        if self._task is None and not self._doubted:
            standing = address_of(named)
            if standing is not None:
                self._failure = None
                return standing
        if self._task is None:
            if self._failure is not None and time.monotonic() - self._failed < _FAILURE_SECONDS:
                raise _unavailable(self._failure, named)
            self._begin(named, "find")
        assert self._task is not None
        return await self._outcome(self._task, named)

    def start(self, named: str) -> None:
        """Begin to have a master started there; without effect while a connection is being made."""
        if self._task is None:
            self._begin(named, "start")

    def doubt(self) -> None:
        """Have the connection looked at before it is used again."""
        self._doubted = True

    async def close(self) -> None:
        """Wait for a connection that is being made; it stays for others."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def _begin(self, named: str, verb: Verb) -> None:
        self._task = asyncio.create_task(asyncio.to_thread(partial(address_of, named, verb, self._doubted)))
        self._task.add_done_callback(self._settle)

    def _settle(self, task: asyncio.Task[Address | None]) -> None:
        self._task = None
        error = task.exception() if not task.cancelled() else None
        if isinstance(error, DetError):
            self._failure, self._failed = error, time.monotonic()
        else:
            self._failure, self._doubted = None, False

    async def _outcome(self, task: asyncio.Task[Address | None], named: str) -> Address:
        done, _ = await asyncio.wait({task}, timeout=self._seconds)
        if not done:
            raise UnavailableError(statuses.connecting(named))
        try:
            found = task.result()
        except DetError as error:
            raise _unavailable(error, named) from error
        if found is None:
            raise UnavailableError(statuses.connecting(named))
        return found


def _unavailable(error: DetError, named: str) -> UnavailableError:
    if isinstance(error, NoMasterError):
        return UnavailableError(statuses.none_there(str(error)))
    if isinstance(error, ProtocolMismatchError):
        return UnavailableError(statuses.out_of_reach(str(error), "mismatch"))
    if isinstance(error, AuthenticationError):
        return UnavailableError(statuses.out_of_reach(str(error), "unauthorised"))
    return UnavailableError(statuses.out_of_reach(str(error), "unreachable"))
