"""What workers here have stored is brought to the master, and published there."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from det_native.errors import (
    BundleCorruptError,
    CheckpointCorruptError,
    CheckpointError,
    DiskFailedError,
    DiskFullError,
    StorageError,
)
from det_native.master.launch.ray.agent.ask_queue import AskQueue
from det_native.master.launch.ray.agent.folders import AgentFolders
from det_native.master.launch.ray.asks.kinds import Missing, Publish, Root, Write
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.blobs import BlobStore
from det_native.storage.checkpoints import CheckpointStorage
from det_native.storage.manifest_file import MANIFEST, encode

logger = logging.getLogger(__name__)

PIECE = 4 << 20
_AT_ONCE = 6
_ATTEMPTS = 3

T = TypeVar("T")


class Uploads:
    """Brings blobs, checkpoints and other files to the master, each once however many want it."""

    def __init__(self, asks: AskQueue, folders: AgentFolders) -> None:
        self._asks = asks
        self._folders = folders
        self._blobs = BlobStore(str(folders.blobs))
        self._checkpoints = CheckpointStorage(str(folders.checkpoints))
        # Pieces of two agents do not go into one file: they may have packed the same content in another way.
        self._sender = secrets.token_hex(8)
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._running: dict[str, asyncio.Task[Any]] = {}

    async def blobs(self, hashes: Collection[str]) -> set[str]:
        """Bring blobs to the master; return the hashes of those that are damaged or gone here.

        Raises
        ------
        DetError
            If the master cannot take them now.
        """
        keys = {f"{sha256[:2]}/{sha256}": sha256 for sha256 in sorted(hashes)}
        if not keys:
            return set()
        lacking = await self._asks.ask(Missing("blobs", list(keys)))
        assert isinstance(lacking, list)
        wanted = [keys[key] for key in lacking]
        brought = await asyncio.gather(
            *(self._once(f"blob {sha256}", partial(self._blob, sha256)) for sha256 in wanted)
        )
        return {sha256 for sha256, done in zip(wanted, brought, strict=True) if not done}

    async def checkpoint(self, manifest: CheckpointManifest) -> str:
        """Bring a checkpoint of this machine to the master; return why it is lost, empty if it is not.

        Raises
        ------
        DetError
            If the master cannot take it now.
        """
        return await self._once(f"checkpoint {manifest.uuid}", lambda: self._checkpoint(manifest))

    async def whole_file(self, root: Root, path: str, local: Path) -> None:
        """Bring a file that nobody writes any more, as it is; one that is gone is passed over."""
        await self._send(root, path, local, cut=True)

    async def content(self, root: Root, path: str, content: bytes) -> None:
        """Have a small file be there with this content."""
        await self._asks.ask(Write(root, path, 0, content, last=True))

    async def _once(self, name: str, bring: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Wait for an upload, which is begun if it is not under way."""
        task: asyncio.Task[T] | None = self._running.get(name)
        if task is None:
            task = self._running[name] = asyncio.create_task(bring())
            task.add_done_callback(lambda ended: self._running.pop(name, None))
            task.add_done_callback(lambda ended: None if ended.cancelled() else ended.exception())
        return await asyncio.shield(task)

    async def _blob(self, sha256: str) -> bool:
        key = f"{sha256[:2]}/{sha256}"
        arriving = f"{key}.{self._sender}"
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                if not await self._send("blobs", arriving, self._folders.blobs / key):
                    return False
                await self._asks.ask(Publish("blobs", arriving))
                return True
            except (DiskFullError, DiskFailedError):
                raise
            except StorageError:  # what has arrived is not what was sent, or what lies here is damaged
                if not await asyncio.to_thread(self._is_blob_whole, sha256):
                    return False
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _is_blob_whole(self, sha256: str) -> bool:
        try:
            for _ in self._blobs.blocks(sha256):
                pass
        except (BundleCorruptError, StorageError) as error:
            logger.warning("A file that a worker has stored is lost: %s", error)
            return False
        return True

    async def _checkpoint(self, manifest: CheckpointManifest) -> str:
        uuid = manifest.uuid
        lacking = await self._asks.ask(Missing("checkpoints", [uuid]))
        if not lacking:
            return ""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await asyncio.to_thread(self._checkpoints.check, manifest)
            except CheckpointError as error:
                return str(error)
            folder = self._folders.checkpoints / uuid
            names = [file.path for file in manifest.files]
            try:
                await asyncio.gather(
                    *(self._send("checkpoints", f"{uuid}/{name}", folder / name, cut=True) for name in names)
                )
                await self.content("checkpoints", f"{uuid}/{MANIFEST}", encode(manifest))
                await self._asks.ask(Publish("checkpoints", uuid))
                return ""
            except CheckpointCorruptError:
                try:
                    await asyncio.to_thread(self._checkpoints.verify, manifest)
                except CheckpointError as error:
                    return str(error)
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _send(self, root: Root, path: str, local: Path, *, cut: bool = False) -> bool:
        """Send a file piece by piece, going on where the master has the end of it; return whether it is here."""
        try:
            descriptor = os.open(local, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return False
        try:
            offset = 0
            while True:
                async with self._slots:
                    size = os.fstat(descriptor).st_size
                    content = await asyncio.to_thread(os.pread, descriptor, PIECE, offset)
                    end = offset + len(content)
                    last = cut and end >= size
                    length = await self._asks.ask(Write(root, path, offset, content, last=last))
                assert isinstance(length, int)
                if end >= size and length >= end:
                    return True
                # The master may have more of what arrives there, of an earlier attempt; or less, if it was removed.
                resumable = root in ("blobs", "checkpoints")
                offset = min(length, size) if resumable or length < end else end
        finally:
            os.close(descriptor)
