"""A bad network: a proxy between two sides that cuts, holds, loses, slows and resets what goes over it."""

from __future__ import annotations

import asyncio
import enum
import os
import random
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

_PIECE = 1 << 16
_TICKS = 20  # a second of a slow line
_RESET = struct.pack("ii", 1, 0)


class Network(enum.Enum):
    """What the network does now."""

    GOOD = enum.auto()
    REFUSING = enum.auto()  # connections that stood were reset, and so are new ones
    HELD = enum.auto()  # nothing arrives anywhere; all does, as soon as the network is good again
    SILENT = enum.auto()  # what is sent is lost, and nobody is told: those connections are dead ever after
    DEAF = enum.auto()  # the same of answers only: what is asked for is done


class _Line:
    """One connection and what is between its two sides."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter, left: float) -> None:
        self.ends = (near, far)
        self.left = left
        self.dead = False
        self.orderly = False

    def reset(self) -> None:
        """End it as a router does that has forgotten it, or as a machine in between that shuts down in good order."""
        for end in self.ends:
            kept = end.get_extra_info("socket")
            if kept is not None and kept.family != socket.AF_UNIX and not self.orderly:
                with suppress(OSError):
                    kept.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            end.transport.abort()


class FaultProxy:
    """Passes connections on to a target; what is between them can be changed at any time, from any thread.

    Parameters
    ----------
    target : Path or int
        A socket, or a port of loopback.
    place : Path, optional
        Where it listens. Default: a port of loopback.

    Attributes
    ----------
    target : Path or int
        What it leads to.
    place : Path or None
        Where it listens.
    passed : int
        Bytes that have arrived so far, either way.
    resets : int
        Connections that were ended at their drawn offset.
    accepted : int
        Connections so far.
    """

    def __init__(self, target: Path | int, place: Path | None = None) -> None:
        self.target = target
        self.place = place
        self._network = Network.GOOD
        self._rate: float | None = None
        self._draw: Callable[[], float] = lambda: float("inf")
        self._lines: set[_Line] = set()
        self._good = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault proxy")
        self.passed = self.resets = self.accepted = self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def become(self, network: Network) -> None:
        """Change the network."""
        self._do(self._become(network))

    @contextmanager
    def being(self, network: Network) -> Iterator[None]:
        """Change the network for the block."""
        self.become(network)
        try:
            yield
        finally:
            self.become(Network.GOOD)

    @contextmanager
    def slow(self, rate: float) -> Iterator[None]:
        """Let so many bytes a second pass on each connection, each way."""
        self._rate = rate
        try:
            yield
        finally:
            self._rate = None

    @contextmanager
    def lossy(self, chance: random.Random, least: int, most: int) -> Iterator[None]:
        """Reset or close each connection, also one that stands, after a drawn number of bytes; few are more likely."""
        self._draw = lambda: least * (most / least) ** chance.random()
        self._do(self._draw_again())
        try:
            yield
        finally:
            self._draw = lambda: float("inf")
            self._do(self._draw_again())

    def _do(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=60)  # type: ignore[arg-type]

    async def _open(self) -> None:
        self._good.set()
        if self.place is not None:
            self._server = await asyncio.start_unix_server(self._serve, str(self.place))
            os.chmod(self.place, 0o600)
        else:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            self.port = self._server.sockets[0].getsockname()[1]

    async def _end(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        self._reset_all()
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _become(self, network: Network) -> None:
        self._network = network
        if network is Network.REFUSING:
            self._reset_all()
        (self._good.clear if network is Network.HELD else self._good.set)()

    async def _draw_again(self) -> None:
        for line in self._lines:
            line.left = self._draw()

    def _reset_all(self) -> None:
        for line in list(self._lines):
            line.reset()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        line = _Line(writer, writer, self._draw())
        try:
            if self._network is Network.REFUSING:
                return
            there, back = await self._reach()
            line.ends = (writer, back)
            self._lines.add(line)
            await asyncio.gather(self._pump(reader, back, line, answers=False), self._pump(there, writer, line, True))
        except (OSError, asyncio.CancelledError):
            pass  # nobody listens there, a side is gone, or this proxy ends
        finally:
            self._lines.discard(line)
            line.reset()

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self.target, Path):
            return await asyncio.open_unix_connection(str(self.target))
        return await asyncio.open_connection("127.0.0.1", self.target)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: _Line, answers: bool
    ) -> None:
        async for data in self._pieces(reader):
            await self._good.wait()
            lost = self._network is Network.SILENT or (answers and self._network is Network.DEAF)
            if line.dead and not lost and self._network is Network.GOOD:
                raise ConnectionResetError
            line.dead |= lost
            if lost:
                continue
            kept = data[: int(min(line.left, len(data)))]
            line.left -= len(data)
            self.passed += len(kept)
            writer.write(kept)
            await writer.drain()
            if line.left <= 0:
                self.resets += 1
                line.orderly = self.resets % 2 == 0
                raise ConnectionResetError
        await self._good.wait()
        if self._network is not Network.SILENT:  # which does not tell of an end, either
            with suppress(OSError):
                writer.write_eof()

    async def _pieces(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        while data := await reader.read(_PIECE if self._rate is None else max(int(self._rate / _TICKS), 1)):
            if self._rate is not None:
                await asyncio.sleep(len(data) / self._rate)
            yield data
