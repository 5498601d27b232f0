"""What an agent has asked of the master and has no answer to yet."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass

from det_native.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    DetError,
    DiskFailedError,
    DiskFullError,
    StorageError,
)
from det_native.master.launch.ray.asks.kinds import (
    Ask,
    Missing,
    Problem,
    Publish,
    RankEnded,
    Read,
    Reply,
    Request,
    Share,
    Write,
)

What = Request | Missing | Read | Write | Publish | Share | RankEnded

# Asks are given in one answer up to so many bytes of content, and one at least.
_MOST_BYTES = 16 << 20
# A bridge that has not asked for so long is away.
_AWAY_SECONDS = 5.0
_KNOWN_ERRORS = (CheckpointCorruptError, CheckpointNotFoundError, DiskFailedError, DiskFullError)


@dataclass
class _Pending:
    ask: Ask
    reply: asyncio.Future[Reply]
    delivered: bool = False


class AskQueue:
    """Numbers asks, gives them to the bridge, and brings the answers to whoever has asked. Used in one event loop.

    An ask that has no answer is given again to the next bridge, so that it may be performed twice.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._pending: dict[int, _Pending] = {}
        self._bridge = ""
        self._changed = asyncio.Event()
        self._takers = 0
        self._last_seen = float("-inf")

    @property
    def bridge(self) -> str:
        """Name of the bridge that has asked last."""
        return self._bridge

    @property
    def attended(self) -> bool:
        """Whether a bridge takes asks at the moment."""
        return self._takers > 0 or time.monotonic() < self._last_seen + _AWAY_SECONDS

    async def ask(self, what: What) -> Reply:
        """Ask the master, and wait for the answer, however long no bridge comes.

        Raises
        ------
        DetError
            If the master cannot do it.
        """
        number = next(self._numbers)
        pending = _Pending(Ask(number, what), asyncio.get_running_loop().create_future())
        self._pending[number] = pending
        self._wake()
        try:
            reply = await pending.reply
        finally:
            self._pending.pop(number, None)
        if isinstance(reply, Problem):
            raise error_of(reply)
        return reply

    async def take(self, bridge: str, most: int, seconds: float) -> list[Ask]:
        """Return asks for a bridge once there are some, none after so many seconds."""
        if bridge != self._bridge:
            self._bridge = bridge
            for pending in self._pending.values():
                pending.delivered = False
            self._wake()
        self._takers += 1
        deadline = time.monotonic() + seconds
        try:
            while bridge == self._bridge:
                asks = self._undelivered(most)
                if asks:
                    return asks
                changed = self._changed
                try:
                    await asyncio.wait_for(changed.wait(), deadline - time.monotonic())
                except TimeoutError:
                    return []
            return []  # another one has come
        finally:
            self._takers -= 1
            self._last_seen = time.monotonic()

    def answer(self, replies: Sequence[tuple[int, Reply]]) -> None:
        """Take answers; what nobody waits for any more is passed over."""
        self._last_seen = time.monotonic()
        for number, reply in replies:
            pending = self._pending.pop(number, None)
            if pending is not None and not pending.reply.done():
                pending.reply.set_result(reply)

    def _undelivered(self, most: int) -> list[Ask]:
        asks: list[Ask] = []
        size = 0
        for pending in self._pending.values():
            if pending.delivered:
                continue
            size += _size(pending.ask.what)
            if asks and (size > _MOST_BYTES or len(asks) >= most):
                break
            pending.delivered = True
            asks.append(pending.ask)
        return asks

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def error_of(problem: Problem) -> DetError:
    """Return the error that a problem on the master's side is here."""
    kinds = {kind.__name__: kind for kind in _KNOWN_ERRORS}
    return kinds.get(problem.name, StorageError)(problem.text)


def _size(what: What) -> int:
    if isinstance(what, Write | Share):
        return len(what.content)
    return len(what.body) if isinstance(what, Request) else 0
