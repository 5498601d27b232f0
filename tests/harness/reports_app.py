"""A small real master's end for reports: a uvicorn server that keeps what arrives and can be told to misbehave."""

from __future__ import annotations

import asyncio
import secrets
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from det_native.schema.rest import BestMetric, ErrorBody, Report, ReportBatch, ReportsAccepted


@dataclass
class ReportsMaster:
    """Stores reports as the real one does: in order, without gaps, repeats changing nothing."""

    reports: list[Report] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)
    requests: int = 0
    best: float | None = None
    stop: bool = False
    interval: float = 0.0
    refuse: int = 0
    lose_replies: int = 0
    socket: str = field(default_factory=lambda: f"{tempfile.gettempdir()}/reports-{secrets.token_hex(4)}")
    changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def url(self) -> str:
        return f"unix:{self.socket}"

    def wait_for(self, condition: Callable[[], bool], timeout: float = 10.0) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, timeout), f"not within {timeout} s; reports: {self.reports}"

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.post("/api/v1/runs/{run_id}/reports")
        async def reports(run_id: str, request: Request) -> Response:
            body = await request.body()
            with self.changed:
                self.requests += 1
                answer = self._store(body)
                self.changed.notify_all()
            return answer

        @app.get("/api/v1/runs/{run_id}/best")
        async def best(run_id: str) -> BestMetric:
            return BestMetric(value=self.best)

        return app

    def _store(self, body: bytes) -> Response:
        if self.refuse:
            return JSONResponse(ErrorBody(error=f"refused with {self.refuse}").model_dump(), self.refuse)
        for report in ReportBatch.model_validate_json(body).reports:
            if report.seq == len(self.reports) + 1:
                self.reports.append(report)
                self.arrivals.append(time.monotonic())
            elif report.seq > len(self.reports) + 1:
                return JSONResponse(ErrorBody(error="gap").model_dump(), 400)
        if self.lose_replies:
            self.lose_replies -= 1
            return JSONResponse(ErrorBody(error="busy").model_dump(), 503)
        return JSONResponse(
            ReportsAccepted(through=len(self.reports), stop=self.stop, interval=self.interval).model_dump()
        )


class _Announcing(uvicorn.Server):
    """Says when it listens: until then the bound port refuses."""

    def __init__(self, config: uvicorn.Config, answering: threading.Event) -> None:
        super().__init__(config)
        self._answering = answering

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._answering.set()


@contextmanager
def serving(master: ReportsMaster) -> Iterator[None]:
    """Serve at the master's socket until the end of the block."""
    config = uvicorn.Config(master.app(), uds=master.socket, log_level="warning", ws="none")
    answering = threading.Event()
    server = _Announcing(config, answering)
    listening = config.bind_socket()
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    try:
        assert answering.wait(30), "the stand-in of the master did not start"
        yield
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
        Path(master.socket).unlink()
