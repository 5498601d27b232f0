"""What the tests of the server extension share."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from det_native import PROTOCOL
from det_native.client.session import Session
from det_native.schema import routes
from det_native.schema.home import Home, RuntimeFile, read_runtime
from det_native.schema.manifests import BundleManifest, Interpreter, Program
from det_native.schema.processes import wait_until_gone
from det_native.schema.rest import ExperimentCreate

# Long, for what it waits for always comes: others use the machine too.
PATIENCE = 150.0
START = """
import sys
from det_native.client.starting import ensure_master
from det_native.schema.home import Home
ensure_master(Home.default(), sys.argv[1:])
"""
# Has a master send no line into a stream that is idle: such a line would push out an event that is held on the way.
WITHOUT_PINGS = """
import pathlib, sys
if "det_native.master" in sys.orig_argv:
    from det_native.master.api.routes import events
    events.PING_SECONDS = 3600
    pathlib.Path(__file__).with_name("silent").touch()
"""
T = TypeVar("T")
CONFIG = {
    "hyperparameters": {"global_batch_size": 32},
    "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 100}},
}


@dataclass
class Jupyter:
    """A Jupyter server and a client of it; paths are below ``det-native/api/``."""

    client: httpx.AsyncClient
    base: str
    token: str
    root: Path

    async def get(self, path: str, **arguments: Any) -> httpx.Response:
        """Ask as the user."""
        return await self.client.get(path, **arguments)

    async def post(self, path: str, **arguments: Any) -> httpx.Response:
        """Send as the user."""
        return await self.client.post(path, **arguments)

    async def status(self) -> dict[str, Any]:
        """Return the status, which is always there."""
        answer = await self.get("status")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Ask for the status until it fits."""
        return await until(self.status, holds)

    @asynccontextmanager
    async def events(self, last: int | None = None, **parameters: Any) -> AsyncIterator[Events]:
        """Open the stream of events, as a browser does: compressed if the server likes."""
        headers = {"Accept": "text/event-stream", "Accept-Encoding": "gzip"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        async with self.client.stream("GET", "master/events", params=parameters, headers=headers) as answer:
            yield Events(answer)


class Events:
    """Reads server-sent events."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.aiter_lines()

    async def take(self, count: int) -> list[dict[str, Any]]:
        """Return the next so many events."""
        found: list[dict[str, Any]] = []
        async with asyncio.timeout(PATIENCE):
            while len(found) < count:
                line = await anext(self._lines)
                if line.startswith("data:"):
                    found.append(json.loads(line.removeprefix("data:")))
        return found

    async def read_to_the_end(self) -> None:
        """Read until the stream is closed; a trial that had begun may have told more before that."""
        with pytest.raises((httpx.TransportError, StopAsyncIteration)):
            await self.take(sys.maxsize)

    async def take_until_canceled(self, number: int) -> None:
        """Read until an experiment has been ended; the trial of one before may tell of its own end meanwhile."""
        wanted = (number, "experiment", "CANCELED")
        [event] = await self.take(1)
        while (event["experiment_id"], event["type"], event["data"].get("state")) != wanted:
            [event] = await self.take(1)


@dataclass
class MasterProcess:
    """A master process in a home of its own, which streams events and nothing else."""

    home: Home
    runtime: RuntimeFile

    @classmethod
    def start(cls, home: Home, *arguments: str) -> MasterProcess:
        """Start it by a process that ends: it is no child of the tests, nor are its workers."""
        temporary, python = home.path / "temporary", home.path / "python"
        for folder in (temporary, python):
            folder.mkdir(parents=True, exist_ok=True)
        (python / "sitecustomize.py").write_text(WITHOUT_PINGS)
        idle = home.path / "idle"
        idle.write_text("#!/bin/sh\nexec sleep 3600\n")
        idle.chmod(0o755)
        settings = {"DET_HOME": str(home.path), "DET_SLOTS": "cpu:1", "TMPDIR": str(temporary)}
        settings["PYTHONPATH"] = os.pathsep.join([str(python), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | settings
        subprocess.run([sys.executable, "-c", START, *arguments], env=environment, check=True, timeout=PATIENCE)
        runtime = read_runtime(home)
        assert runtime is not None
        return cls(home, runtime)

    @property
    def token(self) -> str:
        """What must not get out."""
        return self.home.token.read_text().strip()

    @property
    def session(self) -> Session:
        """A way around Jupyter."""
        return Session(self.runtime.url, self.token)

    def experiment(self) -> int:
        """Create an experiment and end it at once: four events, or more if its trial has begun.

        Its interpreter does nothing: Python would import PyTorch for it.
        """
        session = self.session
        try:
            manifest = BundleManifest(
                protocol=PROTOCOL,
                interpreter=Interpreter(python="3.11.7", executable=str(self.home.path / "idle")),
                program=Program(kind="cells", framework="torch"),
            )
            bundle = session.call(routes.CREATE_BUNDLE, manifest).id
            body = ExperimentCreate(protocol=PROTOCOL, bundle_id=bundle, config=CONFIG)
            number = session.call(routes.CREATE_EXPERIMENT, body).id
            session.call(routes.KILL_EXPERIMENT, experiment_id=number)
            return number
        finally:
            session.close()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.runtime.pid, number)

    def kill(self) -> None:
        """End it without warning."""
        self.signal(signal.SIGKILL)
        assert wait_until_gone(self.runtime.pid, self.runtime.start, PATIENCE)

    def restart(self) -> None:
        """Start it again, at the same address."""
        self.runtime = MasterProcess.start(self.home).runtime

    def stop(self) -> None:
        """End it with its workers and standbys, whichever process it is by now."""
        runtime = read_runtime(self.home)
        if runtime is None:
            return
        self.runtime = runtime
        session = self.session
        session.call(routes.SHUT_DOWN, kill=True)
        session.close()
        assert wait_until_gone(runtime.pid, runtime.start, PATIENCE)


async def until(ask: Callable[[], Awaitable[T]], holds: Callable[[T], bool]) -> T:
    """Ask again until the answer fits."""
    end = time.monotonic() + PATIENCE
    while not holds(answer := await ask()):
        assert time.monotonic() < end, f"it stays {answer}"
        await asyncio.sleep(0.02)
    return answer
