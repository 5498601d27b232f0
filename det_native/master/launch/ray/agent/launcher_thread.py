"""The launcher of one machine, driven by a thread of its own: only that thread may use it."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from det_native.master.launch.base import Exit
from det_native.master.launch.local import LocalLauncher

logger = logging.getLogger(__name__)

T = TypeVar("T")

_WAIT_SECONDS = 5.0
_JOIN_SECONDS = 60.0


class LauncherThread:
    """Drives a launcher, and tells of ends.

    Parameters
    ----------
    launcher : LocalLauncher
        Not used by anybody else from now on.
    on_exit : callable
        Called in the thread for each run that has ended.
    look : callable
        Called in the thread every few seconds.
    """

    def __init__(self, launcher: LocalLauncher, on_exit: Callable[[Exit], None], look: Callable[[], None]) -> None:
        self._launcher = launcher
        self._on_exit = on_exit
        self._look = look
        self._orders: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._closing = False
        self._thread = threading.Thread(target=self._drive, name="det-agent-launcher", daemon=True)
        self._thread.start()

    async def call(self, order: Callable[[LocalLauncher], T]) -> T:
        """Have the thread do something with the launcher, and return what comes of it."""
        result: Future[T] = Future()

        def perform() -> None:
            try:
                result.set_result(order(self._launcher))
            except BaseException as error:  # noqa: BLE001 (whoever waits gets it)
                result.set_exception(error)

        self._orders.put(perform)
        self._launcher.wake()
        return await asyncio.shield(asyncio.wrap_future(result))

    def close(self) -> None:
        """End the workers and the thread."""
        self._closing = True
        self._launcher.wake()
        self._thread.join(_JOIN_SECONDS)

    def _drive(self) -> None:
        while not self._closing:
            try:
                self._launcher.wait(_WAIT_SECONDS)
                while not self._orders.empty():
                    self._orders.get()()
                for ended in self._launcher.poll():
                    self._on_exit(ended)
                self._look()
            except Exception:  # the workers go on, and somebody has to look after them
                logger.exception("The launcher of the agent has failed; it goes on.")
        self._launcher.close(kill_workers=True)
