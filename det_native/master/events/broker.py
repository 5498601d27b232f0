"""Wakes readers of events after a commit, and keeps the newest events so that most readers need not ask the store.

A reader has no queue of its own: it holds the id of the last event that it passed on, and takes what follows from the
newest events here, or from the store if it has fallen too far behind. So a slow reader costs no more than
its connection.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from sse_starlette import ServerSentEvent

from det_native.schema.rest import Event

KEPT = 2048


class Told:
    """An event, and the text in which it travels: the same for all who read it, and so made once.

    Parameters
    ----------
    owner : str
        Whose it is.
    """

    __slots__ = ("_frame", "event", "owner")

    def __init__(self, event: Event, owner: str = "") -> None:
        self.event = event
        self.owner = owner
        self._frame: bytes | None = None

    @property
    def frame(self) -> bytes:
        """The event as a stream has it; without an id, if it is stored nowhere."""
        if self._frame is None:
            number = str(self.event.id) if self.event.id else None
            text = ServerSentEvent(self.event.model_dump_json(), id=number, event=self.event.type, sep="\n")
            self._frame = text.encode()
        return self._frame


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
        self._newest: deque[Told] = deque(maxlen=kept)
        self._complete_after = last_id
        self._last_id = last_id
        self._waiting: defaultdict[asyncio.AbstractEventLoop, set[asyncio.Event]] = defaultdict(set)
        self._closed = False
        self._told: list[Told] = []
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
                    self._complete_after = self._newest[0].event.id
                self._newest.append(Told(event, owner))
                self._last_id = event.id
            self._wake()

    def tell(self, events: Sequence[tuple[str, Event]]) -> None:
        """Have all who read now hear events that are stored nowhere, with their owners; the last call counts."""
        with self._lock:
            self._told = [Told(event, owner) for owner, event in events]
            self._tellings += 1
            self._wake()

    @property
    def tellings(self) -> int:
        """How often something was told that is stored nowhere."""
        return self._tellings

    def told(self, owner: str) -> list[Told]:
        """Return what was told last to `owner`."""
        with self._lock:
            return [told for told in self._told if told.owner == owner]

    def newest(self, owner: str, after: int) -> tuple[list[Told], int] | None:
        """Return the events of `owner` with an id above `after`, and the id up to which this is all there is.

        None if some of them are only in the store.
        """
        with self._lock:
            if after < self._complete_after:
                return None
            mine = []
            for told in reversed(self._newest):  # ids grow: what a reader has passed on is not looked at again
                if told.event.id <= after:
                    break
                if told.owner == owner:
                    mine.append(told)
            return mine[::-1], max(after, self._last_id)

    async def wait(self, after: int, timeout: float, tellings: int | None = None) -> None:
        """Return once there is an event with an id above `after`, or the broker is closed, or time is up.

        With `tellings`, also once something was told since there were so many.
        """
        loop, happened = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            if self._last_id > after or self._closed or tellings not in (None, self._tellings):
                return
            self._waiting[loop].add(happened)
        try:
            async with asyncio.timeout(timeout):
                await happened.wait()
        except TimeoutError:
            pass
        finally:
            with self._lock:
                if loop in self._waiting:
                    self._waiting[loop].discard(happened)

    def close(self) -> None:
        """Let all readers end."""
        with self._lock:
            self._closed = True
            self._wake()

    def _wake(self) -> None:
        """Wake all who wait, by one call to each loop; they wait no longer."""
        for loop, waiting in self._waiting.items():
            if waiting and not loop.is_closed():
                loop.call_soon_threadsafe(_set_all, waiting)
        self._waiting = defaultdict(set)


def _set_all(waiting: Iterable[asyncio.Event]) -> None:
    for happened in waiting:
        happened.set()
