"""Events of the master as they happen: server-sent events, taken up again after a cut where they broke off."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from det_native.client.source import PATIENCE, Source
from det_native.errors import MasterUnreachableError, NoMasterError
from det_native.schema import rest
from det_native.schema.states import ExperimentState

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0


@dataclass
class Frame:
    """One server-sent event, as the text says it."""

    id: str = ""
    data: list[str] = field(default_factory=list)


def parse_frames(lines: Iterable[str]) -> Iterator[Frame]:
    """Turn the lines of an event stream into frames; frames without data are passed over.

    A comment, which is how a master says that it is still there, gives an empty frame.

    Parameters
    ----------
    lines : iterable of str
        Without their line ends.
    """
    frame = Frame()
    for line in lines:
        if not line:
            if frame.data:
                yield frame
            frame = Frame()
            continue
        if line.startswith(":"):
            yield Frame()
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            frame.data.append(value)
        elif name == "id":
            frame.id = value


class Connection(Protocol):
    """One open event stream."""

    def lines(self) -> Iterator[str]:
        """Yield its lines as they arrive; raises MasterUnreachableError when it breaks."""

    def close(self) -> None:
        """Break it, from any thread."""


#: Opens a stream of the events of an experiment after an id; raises MasterUnreachableError if no master answers.
Connector = Callable[[int], Connection]


class EventStream(Iterator[rest.Event]):
    """Events of one experiment, each once and in order, over as many connections as it takes.

    Parameters
    ----------
    has_ended : callable
        Whether the experiment has ended; asked when the master closes a stream. Raises as `connect` does.
    after : int
        Id of the last event that is known already.
    patience : float
        Seconds without any connection after which the error is raised.
    pause : float
        Seconds before the first try to connect again; it doubles up to 5 s.
    goes_on : callable
        Whether an experiment that has ended goes on since then, by its name outside.

    Raises
    ------
    MasterUnreachableError
        From ``next``, if the master stays away for longer than `patience`.
    MasterError
        From ``next``, if it refuses.
    """

    def __init__(
        self,
        connect: Connector,
        has_ended: Callable[[], bool],
        after: int = 0,
        *,
        patience: float = PATIENCE,
        pause: float = FIRST_PAUSE,
        goes_on: Callable[[], bool] = lambda: False,
    ) -> None:
        self._goes_on = goes_on
        self._connect = connect
        self._has_ended = has_ended
        self._last = after
        self._patience = patience
        self._closed = threading.Event()
        self._connection: Connection | None = None
        self._frames: Iterator[Frame] | None = None
        self._finished = self._silent = False
        self._failing_since: float | None = None
        #: Why no event can come now, and since when (of ``time.monotonic``); None while a connection stands.
        self.out_of_touch: tuple[float, MasterUnreachableError] | None = None
        self._first_pause = self._pause = pause

    def __next__(self) -> rest.Event:
        while not self._finished and not self._closed.is_set():
            try:
                event = self._next_of_connection()
            except MasterUnreachableError as error:
                self._drop()
                self._wait_before_retry(error)
                continue
            if event is not None:
                return event
        self._drop()
        raise StopIteration

    def close(self) -> None:
        """End the iteration, from any thread; a ``next`` that waits returns."""
        self._closed.set()
        connection = self._connection
        if connection is not None:
            connection.close()

    def _next_of_connection(self) -> rest.Event | None:
        if self._frames is None:
            self._connection = self._connect(self._last)
            self._frames = parse_frames(self._connection.lines())
            self.out_of_touch = None
        frame = next(self._frames, None)
        if frame is None:
            self._drop()
            self._finished = self._has_ended()
            if not self._finished:
                self._closed.wait(self._first_pause)
            return None
        if not frame.data:
            # Silence from one sign of life to the next: all that there was has been told.
            self._finished = self._silent and self._has_ended()
            self._silent = True
            return None
        self._silent = False
        self._failing_since, self._pause = None, self._first_pause
        event = rest.Event.model_validate_json("\n".join(frame.data))
        if event.id == 0:  # it is stored nowhere, so that no stream continues from it
            return event
        if event.id <= self._last:
            return None
        self._last = event.id
        ended = event.type == "experiment" and ExperimentState(event.data["state"]).terminal
        self._finished = ended and not self._goes_on()
        return event

    def _wait_before_retry(self, error: MasterUnreachableError) -> None:
        if self._closed.is_set():
            return
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        self.out_of_touch = (now if self.out_of_touch is None else self.out_of_touch[0], error)
        # One whose machine answers, without it, is not waited for as one that cannot be reached.
        patience = min(self._patience, PATIENCE) if isinstance(error, NoMasterError) else self._patience
        if now - self._failing_since >= patience:
            raise error
        self._closed.wait(self._pause)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def _drop(self) -> None:
        connection, self._connection, self._frames = self._connection, None, None
        if connection is not None:
            connection.close()


class EventFeed:
    """Events read in a thread, so that the one who waits can give up after a time, or by Ctrl-C.

    Parameters
    ----------
    after : int
        Id of the last event that is known already.
    """

    def __init__(self, source: Source, experiment_id: int, after: int = 0) -> None:
        self._events = source.events(experiment_id, after)
        self._queue: queue.SimpleQueue[rest.Event | Exception | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._read, name=f"det-events-{experiment_id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        close = getattr(self._events, "close", None)
        if close is not None:
            # A generator refuses while it runs, and then ends by itself; streams that wait can be closed at any time.
            with suppress(ValueError):
                close()
        self._thread.join()

    @property
    def out_of_touch(self) -> tuple[float, MasterUnreachableError] | None:
        """Why no event can come now, and since when (of ``time.monotonic``); None while a connection stands."""
        return getattr(self._events, "out_of_touch", None)

    def next(self, timeout: float | None = None) -> rest.Event | None:
        """Return the next event, None after the last one.

        Parameters
        ----------
        timeout : float, optional
            Seconds.

        Raises
        ------
        TimeoutError
            If none came in time.
        MasterError
            If the master stays away or refuses.
        """
        try:
            found = self._queue.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(found, Exception):
            raise found
        return found

    def _read(self) -> None:
        try:
            for event in self._events:
                self._queue.put(event)
        except Exception as error:  # noqa: BLE001 (whatever it is, the thread that waits raises it)
            self._queue.put(error)
        else:
            self._queue.put(None)
