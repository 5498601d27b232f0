"""The one thread that makes decisions: it takes what others post, and wakes by itself while workers run."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from sqlalchemy.exc import OperationalError

from det_native.errors import MasterError
from det_native.master.store.database import is_disk_full

logger = logging.getLogger(__name__)

BUSY_SECONDS = 0.2
POLL_SECONDS = 0.05
IDLE_SECONDS = 30.0
RETRY_SECONDS = 1.0

T = TypeVar("T")
Step = Callable[[], None]


@runtime_checkable
class Waiter(Protocol):
    """A launcher that can wait for its processes, so that nobody need poll them."""

    def wait(self, timeout: float) -> bool:
        """Return when something happened to a process, ``wake`` was called, or time is up."""

    def wake(self) -> None:
        """End a ``wait`` in progress; may be called from any thread."""

    def settled(self, run_id: str) -> None:
        """A worker is through its start."""


@dataclass(eq=False)
class _Posted:
    """A step that is to run; `awaited` says that somebody waits for its result."""

    step: Step
    awaited: bool = False


class DecisionThread:
    """Runs posted steps one after the other, and `tick` after each batch of them.

    A step that fails because the database cannot take it now (the disk is full, say) is tried again later, before all
    others but those that somebody waits for; one that fails in another way is logged and left.

    Parameters
    ----------
    tick : callable
        Looks after workers; called at least every `BUSY_SECONDS` while `busy` says so.
    busy : callable
        Whether workers run.
    waiter : Waiter or None
        What to sleep on.
    make_room : callable
        Called where the disk is full; returns whether there is some room now, so that another attempt is worth it.
    """

    def __init__(
        self,
        tick: Step,
        busy: Callable[[], bool],
        waiter: Waiter | None,
        make_room: Callable[[], bool] = lambda: False,
    ) -> None:
        self._make_room = make_room
        self._tick = tick
        self._busy = busy
        self._waiter = waiter
        self._steps: deque[_Posted] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._retry_at = 0.0
        self._thread = threading.Thread(target=self._run, name="det-master", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def post(self, step: Step) -> None:
        """Have a step run soon."""
        self._put(_Posted(step))

    def _put(self, posted: _Posted) -> None:
        with self._changed:
            self._steps.append(posted)
            self._changed.notify()
        if self._waiter is not None and not self._closing:
            self._waiter.wake()

    def call(self, step: Callable[[], T]) -> Future[T]:
        """Have a step run soon; the future has its result or exception."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                result = self._with_room(step)
            except Exception as error:  # noqa: BLE001 (handed to the caller, who waits for it)
                future.set_exception(error)
            else:
                future.set_result(result)

        if self._closing:
            future.set_exception(MasterError("The master is shutting down."))
        else:
            self._put(_Posted(run, awaited=True))
        return future

    def _with_room(self, step: Callable[[], T]) -> T:
        """Run a step, a second time if the disk is full and room can be made."""
        try:
            return step()
        except OperationalError as error:
            if not is_disk_full(error) or not self._make_room():
                raise
        return step()

    def close(self) -> None:
        """Run what was posted and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._waiter is not None:
            self._waiter.wake()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._sleep()
            self._run_steps()
            if self._closing:
                return
            self._guarded(self._tick)

    def _sleep(self) -> None:
        with self._changed:
            if self._due() is not None or self._closing:
                return
            pause = RETRY_SECONDS if self._steps else BUSY_SECONDS if self._busy() else IDLE_SECONDS
            if self._waiter is None:
                self._changed.wait(min(pause, POLL_SECONDS) if self._busy() else pause)
                return
        self._waiter.wait(pause)

    def _run_steps(self) -> None:
        while True:
            with self._changed:
                posted = self._due()
                if posted is None:
                    return
                self._steps.remove(posted)
            if not self._guarded(posted.step):
                with self._changed:
                    self._steps.appendleft(posted)
                self._retry_at = time.monotonic() + RETRY_SECONDS

    def _due(self) -> _Posted | None:
        """Return what is to run next; while a step waits to be tried again, only what somebody waits for."""
        held = time.monotonic() < self._retry_at
        return next((posted for posted in self._steps if posted.awaited or not held), None)

    def _guarded(self, step: Step) -> bool:
        """Run a step; False if it is to be tried again."""
        try:
            self._with_room(step)
        except OperationalError as error:
            logger.error("The database does not take a change now; it is tried again. %s", error)
            return False
        except Exception:
            logger.exception("A step of the master failed.")
        return True
