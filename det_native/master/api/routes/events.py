"""Events as they happen, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Annotated

from fastapi import Header, Query
from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from det_native.master.api.answers import LARGEST, TheOwner, TheService
from det_native.master.api.serving import serve
from det_native.master.events.broker import Told
from det_native.master.service import Service
from det_native.master.store import events, experiments
from det_native.schema import routes

PING_SECONDS = 15
SEND_SECONDS = 30.0
PAGE = 500
WAIT_SECONDS = 3600.0
# What happens within so short a time is sent at once. What happens after a rest is sent when it happens.
GATHER_SECONDS = 0.1
# Within the time limit for sending it, a slow line takes at least so much.
CHUNK = 64 << 10


@serve(
    routes.STREAM_EVENTS,
    content={"text/event-stream": {"schema": {"type": "string"}}},
    description="A stream of `Event`.",
)
def stream_events(
    service: TheService,
    owner: TheOwner,
    experiment_id: Annotated[int | None, Query(ge=1, le=LARGEST, description="Only events of this one.")] = None,
    after: Annotated[int, Query(ge=0, le=LARGEST, description="Only events with a larger id.")] = 0,
    tail: Annotated[bool, Query(description="Only what happens from now on; wins over `after`.")] = False,
    last_event_id: Annotated[int | None, Header(ge=0, le=LARGEST, description="Wins over both.")] = None,
) -> Response:
    if experiment_id is not None:
        with service.database.read() as connection:
            experiments.get(connection, experiment_id, owner)
    position = last_event_id
    if position is None:
        position = _last_id(service) if tail else after
    return EventSourceResponse(
        _follow(service, owner, position, experiment_id), ping=PING_SECONDS, send_timeout=SEND_SECONDS, sep="\n"
    )


async def _follow(service: Service, owner: str, position: int, experiment_id: int | None) -> AsyncIterator[bytes]:
    """Yield events in order until the master ends. The reader's pace is ours: nothing is queued for it."""
    broker = service.broker
    heard = broker.tellings
    loop = asyncio.get_running_loop()
    while not broker.closed:
        found = broker.newest(owner, position)
        rests_until = 0.0 if found is None else loop.time() + GATHER_SECONDS
        if found is None:
            found = await run_in_threadpool(_stored, service, owner, position, experiment_id)
        newest, through = found
        for chunk in _chunks(newest, experiment_id):
            yield chunk
        position = max(position, through)
        await broker.wait(position, WAIT_SECONDS, heard)
        if broker.tellings != heard:
            heard = broker.tellings
            for chunk in _chunks(broker.told(owner), experiment_id):
                yield chunk
        elif not broker.closed:
            await asyncio.sleep(max(rests_until - loop.time(), 0.0))


def _chunks(told: Iterable[Told], experiment_id: int | None) -> Iterator[bytes]:
    """Return the events of an experiment, or of all, as few pieces of the stream."""
    frames: list[bytes] = []
    size = 0
    for each in told:
        if experiment_id in (None, each.event.experiment_id):
            frames.append(each.frame)
            size += len(each.frame)
            if size >= CHUNK:
                yield b"".join(frames)
                frames, size = [], 0
    if frames:
        yield b"".join(frames)


def _last_id(service: Service) -> int:
    """Return the id of the newest event of all: what comes after it is what happens from now on."""
    with service.database.read() as connection:
        return events.last_id(connection)


def _stored(service: Service, owner: str, position: int, experiment_id: int | None) -> tuple[list[Told], int]:
    """Return a page of events, and the id up to which this is all there is."""
    with service.database.read() as connection:
        through = events.last_id(connection)
        page = events.after(connection, owner, position, experiment_id=experiment_id, limit=PAGE)
    last = page[-1].id if page else position
    return [Told(event) for event in page], last if len(page) == PAGE else max(last, through)
