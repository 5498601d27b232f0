"""An event loop in a thread of its own: what an agent does goes on there, whoever calls it from where."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

_THREADS = 8
_JOIN_SECONDS = 20.0


class LoopThread:
    """Runs coroutines in an event loop of its own thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="det-agent-io")
        self.loop.set_default_executor(self._executor)
        self._thread = threading.Thread(target=self.loop.run_forever, name="det-agent", daemon=True)
        self._thread.start()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.loop.is_closed()

    async def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there, and wait for its result here."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self.loop))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there, and block this thread until it has ended."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def close(self) -> None:
        """Cancel what still runs there, and end the thread."""
        if self.closed:
            return
        self.run(_cancel_others())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_JOIN_SECONDS)
        self._executor.shutdown(wait=True)
        self.loop.close()


async def _cancel_others() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
