"""Wakes readers of events after a commit, and keeps the newest events so that most readers need not ask the store.

A reader has no queue of its own: it holds the id of the last event that it passed on, and takes what follows from the
newest events here, or from the store if it has fallen too far behind. So a slow reader costs no more than
its connection.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence

from det_native.schema.rest import Event

KEPT = 2048


class Broker:
    """Passes events from the writer's thread to readers in event loops.

    Parameters
    ----------
    last_id : int
        Id of the newest event that is stored.
    kept : int
        How many of the newest events are held here.
    """

    def __init__(self, last_id: int = 0, *, kept: int = KEPT) -> None:
        self._lock = threading.Lock()
        self._newest: deque[tuple[str, Event]] = deque(maxlen=kept)
        self._complete_after = last_id
        self._last_id = last_id
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._closed = False
        self._told: list[tuple[str, Event]] = []
        self._tellings = 0

    @property
    def closed(self) -> bool:
        """Whether readers shall end."""
        return self._closed

    def publish(self, events: Sequence[tuple[str, Event]]) -> None:
        """Take events with their owners, in the order of their ids, after they are committed."""
        with self._lock:
            for owner, event in events:
                if len(self._newest) == self._newest.maxlen:
                    self._complete_after = self._newest[0][1].id
                self._newest.append((owner, event))
                self._last_id = event.id
            self._wake()

    def tell(self, events: Sequence[tuple[str, Event]]) -> None:
        """Have all who read now hear events that are stored nowhere, with their owners; the last call counts."""
        with self._lock:
            self._told = list(events)
            self._tellings += 1
            self._wake()

    @property
    def tellings(self) -> int:
        """How often something was told that is stored nowhere."""
        return self._tellings

    def told(self, owner: str) -> list[Event]:
        """Return what was told last to `owner`."""
        with self._lock:
            return [event for whose, event in self._told if whose == owner]

    def newest(self, owner: str, after: int) -> tuple[list[Event], int] | None:
        """Return the events of `owner` with an id above `after`, and the id up to which this is all there is.

        None if some of them are only in the store.
        """
        with self._lock:
            if after < self._complete_after:
                return None
            mine = [event for whose, event in self._newest if event.id > after and whose == owner]
            return mine, max(after, self._last_id)

    async def wait(self, after: int, timeout: float, tellings: int | None = None) -> None:
        """Return once there is an event with an id above `after`, or the broker is closed, or time is up.

        With `tellings`, also once something was told since there were so many.
        """
        entry = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            if self._last_id > after or self._closed or tellings not in (None, self._tellings):
                return
            self._waiting.add(entry)
        try:
            async with asyncio.timeout(timeout):
                await entry[1].wait()
        except TimeoutError:
            pass
        finally:
            with self._lock:
                self._waiting.discard(entry)

    def close(self) -> None:
        """Let all readers end."""
        with self._lock:
            self._closed = True
            self._wake()

    def _wake(self) -> None:
        for loop, event in self._waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)
