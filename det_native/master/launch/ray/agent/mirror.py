"""Files of runs that follow to the master as they are written: output, event files, and what processes share."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from det_native.errors import DetError
from det_native.master.launch.local_run import OUTPUT_NAME
from det_native.master.launch.output import punch_hole
from det_native.master.launch.ray.agent.ask_queue import AskQueue
from det_native.master.launch.ray.agent.folders import AgentFolders
from det_native.master.launch.ray.agent.runs_here import RankHere, RunHere
from det_native.master.launch.ray.agent.uploads import Uploads
from det_native.master.launch.ray.asks.kinds import Root, Share, Write
from det_native.schema.ranks import SHARED_FILES

logger = logging.getLogger(__name__)

_PIECE = 1 << 20
_PAUSE_SECONDS = 0.1
_TROUBLE_SECONDS = 2.0
_EVENTS = "tfevents"
# Of output that the master has, so much disk space is given back at once.
_PUNCHED_AT_ONCE = 16 << 20
_MOST_SHARED = 4 << 20


class Mirror:
    """Brings to the master what grows in the folders of runs, and to the other machines what their processes share."""

    def __init__(self, asks: AskQueue, uploads: Uploads, folders: AgentFolders) -> None:
        self._asks = asks
        self._uploads = uploads
        self._folders = folders

    async def follow(self, run: RunHere) -> None:
        """Bring what is new of a run, again and again."""
        troubled = False
        while True:
            try:
                async with run.mirroring:
                    await self._look(run)
                troubled = False
            except (DetError, OSError) as error:
                if not troubled:
                    logger.warning("Files of run %s do not follow to the master now: %s", run.run_id, error)
                troubled = True
            await asyncio.sleep(_TROUBLE_SECONDS if troubled else _PAUSE_SECONDS)

    async def rest_of_output(self, run: RunHere, rank: RankHere) -> None:
        """Bring all that a process has written, which writes nothing more.

        Raises
        ------
        DetError
            If the master does not take it now.
        """
        async with run.mirroring:
            await self._output(run, rank)

    async def rest_of_events(self, run: RunHere) -> None:
        """Bring all of the folder of event files: other files in it as they are now.

        Raises
        ------
        DetError
            If the master does not take it now.
        """
        async with run.mirroring:
            await self._events(run)
            for name, path in await asyncio.to_thread(self._files_of_trial, run):
                if _EVENTS not in path.name:
                    await self._uploads.whole_file("tensorboard", name, path)

    async def rest_of_shares(self, run: RunHere) -> None:
        """Have the other machines get what the processes have shared last."""
        async with run.mirroring:
            await self._shares(run)

    def put(self, run: RunHere | None, run_id: str, name: str, content: bytes) -> bytes:
        """Put a file of another machine into the folder of a run, whole or not at all; return its hash."""
        path = self._folders.run(run_id).joinpath(*name.split("/"))
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
        temporary.write_bytes(content)
        digest = _digest(content)
        if run is not None:  # before it can be seen: it is not sent back
            run.shared[name] = digest
        temporary.replace(path)
        return digest

    async def _look(self, run: RunHere) -> None:
        for rank in list(run.ranks.values()):
            await self._output(run, rank)
        await self._events(run)
        await self._shares(run)

    async def _output(self, run: RunHere, rank: RankHere) -> None:
        folder = self._folders.rank(run.run_id, rank.rank)
        name = (folder / OUTPUT_NAME).relative_to(self._folders.runs).as_posix()
        rank.output = await self._grow("runs", name, folder / OUTPUT_NAME, rank.output)
        if rank.output - rank.punched > _PUNCHED_AT_ONCE:
            await asyncio.to_thread(punch_hole, folder / OUTPUT_NAME, rank.punched, rank.output)
            rank.punched = rank.output

    async def _events(self, run: RunHere) -> None:
        for name, path in await asyncio.to_thread(self._files_of_trial, run):
            if _EVENTS in path.name:
                run.events[name] = await self._grow("tensorboard", name, path, run.events.get(name, 0))

    def _files_of_trial(self, run: RunHere) -> list[tuple[str, Path]]:
        if run.trial is None:
            return []
        root = self._folders.tensorboard
        folder = root.joinpath(*map(str, run.trial))
        return [(path.relative_to(root).as_posix(), path) for path in _files(folder)]

    async def _grow(self, root: Root, name: str, path: Path, offset: int) -> int:
        """Bring what a file has after `offset`; return how much of it the master has then."""
        while True:
            try:
                with path.open("rb") as stream:
                    if os.fstat(stream.fileno()).st_size <= offset:
                        return offset
                    stream.seek(offset)
                    content = stream.read(_PIECE)
            except (FileNotFoundError, NotADirectoryError):
                return offset
            length = await self._asks.ask(Write(root, name, offset, content))
            assert isinstance(length, int)
            offset = min(length, offset + len(content))

    async def _shares(self, run: RunHere) -> None:
        if not run.shares:
            return
        folder = self._folders.run(run.run_id)
        for name, content in await asyncio.to_thread(lambda: list(_shared_files(folder))):
            digest = _digest(content)
            if run.shared.get(name) != digest:
                await self._asks.ask(Share(run.run_id, name, content))
                run.shared[name] = digest


def _shared_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for pattern in SHARED_FILES:
        for path in folder.glob(pattern):
            try:
                if not path.name.startswith(".") and path.is_file() and path.stat().st_size <= _MOST_SHARED:
                    yield path.relative_to(folder).as_posix(), path.read_bytes()
            except FileNotFoundError:  # replaced this moment; it is there at the next look
                continue


def _files(folder: Path) -> Iterator[Path]:
    for root, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(root, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
