"""Open views: each the stream of events, and what the front end asks for beside it. Not a test.

Standard input: a line of JSON with `socket`, `token`, `views` (a list of `experiment_id` and `trial_id`) and `panels`.
A line says when all streams are open. They look until standard input ends; then comes a line of JSON: how long each
kind of request took, and what they heard.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import defaultdict
from typing import Any

# As the front end does it: `feed.ts`, `listFeed.ts`.
REFRESH_SECONDS = 1.0
PANEL_SECONDS = 1.5
REST_FOR_WORK = 2
LIMIT = 500


class Client:
    """One connection that is kept alive."""

    def __init__(self, socket: str, token: str) -> None:
        self._socket = socket
        self._token = token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self, path: str) -> tuple[asyncio.StreamReader, dict[str, str]]:
        """Ask for something; return what answers and the headers."""
        if self._streams is None:
            self._streams = await asyncio.open_unix_connection(self._socket, limit=1 << 24)
        reader, writer = self._streams
        head = f"GET /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._token}\r\n\r\n"
        writer.write(head.encode())
        status = (await reader.readuntil(b"\r\n")).decode()
        assert " 200 " in status, f"{path}: {status}"
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        return reader, {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}

    async def get(self, path: str) -> bytes:
        """Return the body of an answer."""
        reader, headers = await self.open(path)
        return await reader.readexactly(int(headers["content-length"]))

    def close(self) -> None:
        """End the connection."""
        if self._streams is not None:
            self._streams[1].close()


class Views:
    """All of them, and what they measure."""

    def __init__(self, socket: str, token: str) -> None:
        self._socket = socket
        self._token = token
        self.times: dict[str, list[float]] = defaultdict(list)
        self.events = 0
        self.bytes = 0
        self.errors: list[str] = []
        self.opened = asyncio.Semaphore(0)

    async def timed(self, client: Client, name: str, path: str) -> bytes:
        """Ask for something and note how long it takes."""
        begun = time.perf_counter()
        body = await client.get(path)
        self.times[name].append(time.perf_counter() - begun)
        return body

    async def stream(self, changed: set[int]) -> None:
        """Hear all events of the master; their ids must grow."""
        client = Client(self._socket, self._token)
        reader, _ = await client.open("/events?tail=true")
        self.opened.release()
        last = 0
        try:
            while size := int(await reader.readuntil(b"\r\n"), 16):
                body = await reader.readexactly(size + 2)
                self.bytes += size
                for line in body.split(b"\n"):
                    if line.startswith(b"id: "):
                        number = int(line[4:])
                        assert number > last, f"event {number} came after {last}"
                        last = number
                        self.events += 1
                    elif line.startswith(b"data: ") and b'"kind":"training"' not in line:
                        at = line.index(b'"experiment_id":') + 16
                        changed.add(int(line[at : line.index(b",", at)]))
        finally:
            client.close()

    async def view(self, experiment_id: int, trial_id: int) -> None:
        """Show an experiment."""
        clients = [Client(self._socket, self._token) for _ in range(4)]
        parts = (
            ("describe", f"/experiments/{experiment_id}"),
            ("curves", f"/experiments/{experiment_id}/curves?buckets=500&trials=50"),
            ("log", f"/trials/{trial_id}/logs?last=200"),
            ("system", f"/trials/{trial_id}/system?points=300"),
        )
        await asyncio.sleep(random.uniform(0, REFRESH_SECONDS))
        last = 0.0
        while True:
            begun = time.monotonic()
            await asyncio.gather(
                *(self.timed(client, *part) for client, part in zip(clients, parts, strict=True)),
            )
            if begun - last > 30:
                last = begun
                await self.timed(clients[0], "series", f"/trials/{trial_id}/series?name=loss")
            work = time.monotonic() - begun
            await asyncio.sleep(max(REFRESH_SECONDS, REST_FOR_WORK * work))

    async def panel(self, changed: set[int]) -> None:
        """Show the list."""
        clients = [Client(self._socket, self._token) for _ in range(6)]
        await self.timed(clients[0], "list", f"/experiments?limit={LIMIT}")
        last = time.monotonic()
        while True:
            await asyncio.sleep(PANEL_SECONDS)
            ids = sorted(changed)
            changed.clear()
            shares = (ids[start :: len(clients)] for start in range(len(clients)))
            await asyncio.gather(*(self._ask(client, share) for client, share in zip(clients, shares, strict=True)))
            if time.monotonic() - last > 5:
                last = time.monotonic()
                await self.timed(clients[0], "list", f"/experiments?limit={LIMIT}")
                await self.timed(clients[0], "list by state", "/experiments?limit=100&state=Error")
                await self.timed(clients[0], "list queued", "/experiments?limit=100&state=Queued")
                await self.timed(clients[0], "master", "/master")

    async def _ask(self, client: Client, ids: list[int]) -> None:
        for number in ids:
            await self.timed(client, "describe", f"/experiments/{number}")

    async def guard(self, part: Any) -> None:
        """Keep what goes wrong."""
        try:
            await part
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 (told to the test)
            self.errors.append(repr(error))


async def main() -> None:
    """Look until standard input ends."""
    given = json.loads(sys.stdin.readline())
    views = Views(given["socket"], given["token"])
    tasks = []
    for index, shown in enumerate(given["views"]):
        changed: set[int] = set()
        tasks.append(asyncio.create_task(views.guard(views.stream(changed))))
        tasks.append(asyncio.create_task(views.guard(views.view(shown["experiment_id"], shown["trial_id"]))))
        if index < given["panels"]:
            tasks.append(asyncio.create_task(views.guard(views.panel(changed))))
    for _ in given["views"]:
        await views.opened.acquire()
    print(json.dumps({"ready": True}), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    said = {"times": views.times, "events": views.events, "bytes": views.bytes, "errors": views.errors}
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
