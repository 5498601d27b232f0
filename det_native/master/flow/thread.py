"""The one thread that makes decisions: it takes what others post, and wakes by itself while workers run."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar, runtime_checkable

from sqlalchemy.exc import OperationalError

from det_native.errors import MasterError

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


class DecisionThread:
    """Runs posted steps one after the other, and `tick` after each batch of them.

    A step that fails because the database cannot take it now (the disk is full, say) is tried again later, before all
    others; one that fails in another way is logged and left.

    Parameters
    ----------
    tick : callable
        Looks after workers; called at least every `BUSY_SECONDS` while `busy` says so.
    busy : callable
        Whether workers run.
    waiter : Waiter or None
        What to sleep on.
    """

    def __init__(self, tick: Step, busy: Callable[[], bool], waiter: Waiter | None) -> None:
        self._tick = tick
        self._busy = busy
        self._waiter = waiter
        self._steps: deque[Step] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._retry_at = 0.0
        self._thread = threading.Thread(target=self._run, name="det-master", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def post(self, step: Step) -> None:
        """Have a step run soon."""
        with self._changed:
            self._steps.append(step)
            self._changed.notify()
        if self._waiter is not None and not self._closing:
            self._waiter.wake()

    def call(self, step: Callable[[], T]) -> Future[T]:
        """Have a step run soon; the future has its result or exception."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                result = step()
            except Exception as error:  # noqa: BLE001 (handed to the caller, who waits for it)
                future.set_exception(error)
            else:
                future.set_result(result)

        if self._closing:
            future.set_exception(MasterError("The master is shutting down."))
        else:
            self.post(run)
        return future

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
            due = bool(self._steps) and time.monotonic() >= self._retry_at
            if due or self._closing:
                return
            pause = RETRY_SECONDS if self._steps else BUSY_SECONDS if self._busy() else IDLE_SECONDS
            if self._waiter is None:
                self._changed.wait(min(pause, POLL_SECONDS) if self._busy() else pause)
                return
        self._waiter.wait(pause)

    def _run_steps(self) -> None:
        while self._steps and time.monotonic() >= self._retry_at:
            step = self._steps.popleft()
            if not self._guarded(step):
                with self._changed:
                    self._steps.appendleft(step)
                self._retry_at = time.monotonic() + RETRY_SECONDS

    def _guarded(self, step: Step) -> bool:
        """Run a step; False if it is to be tried again."""
        try:
            step()
        except OperationalError as error:
            logger.error("The database does not take a change now; it is tried again. %s", error)
            return False
        except Exception:
            logger.exception("A step of the master failed.")
        return True
