"""One answer for all who ask the same while it is worked out: many views of an experiment cost little more than one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response


class SharedAnswers:
    """Answers that are being worked out, by what was asked.

    Nobody gets an answer that was begun before they asked: what they have just written is in it. So whoever asks while
    the same is worked out already waits for the next one, together with all others who come until that begins.

    Use it from the event loop only.
    """

    def __init__(self) -> None:
        self._begun: dict[Hashable, asyncio.Task[bytes]] = {}
        self._next: dict[Hashable, asyncio.Task[bytes]] = {}

    async def answer(self, asked: Hashable, work_out: Callable[[], bytes]) -> Response:
        """Return what `work_out`, called in a thread, returns for what is asked: JSON text."""
        task = self._next.get(asked)
        if task is None:
            task = self._next[asked] = asyncio.create_task(self._after(asked, self._begun.get(asked), work_out))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # all may have gone away
        # One who goes away does not take the answer from the others.
        return Response(await asyncio.shield(task), media_type="application/json")

    async def _after(self, asked: Hashable, before: asyncio.Task[bytes] | None, work_out: Callable[[], bytes]) -> bytes:
        if before is not None:
            await asyncio.wait([before])
        task = self._begun[asked] = self._next.pop(asked)
        try:
            return await run_in_threadpool(work_out)
        finally:
            if self._begun.get(asked) is task:
                del self._begun[asked]
