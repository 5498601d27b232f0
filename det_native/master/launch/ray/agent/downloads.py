"""What jobs need of the master's files is brought to this machine, each file verified."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from det_native.errors import CheckpointCorruptError, CheckpointError, CheckpointNotFoundError, StorageError
from det_native.master.launch.ray.agent.ask_queue import AskQueue
from det_native.master.launch.ray.agent.folders import AgentFolders, remove_folder
from det_native.master.launch.ray.agent.job_paths import Job, MasterPlaces
from det_native.master.launch.ray.asks.kinds import Piece, Read, Root
from det_native.master.launch.ray.asks.publishing import publish_blob
from det_native.schema.job import TrialJob
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.blobs import BlobStore
from det_native.storage.checkpoints import CheckpointStorage
from det_native.storage.datasets import DataStore
from det_native.storage.folder import LocalFolder, remove_file, write_all
from det_native.storage.manifest_file import MANIFEST, changed, decode, encode, missing, resized

logger = logging.getLogger(__name__)

PIECE = 4 << 20
# Pieces that are under way at the same time.
_AT_ONCE = 24
_MOST_MANIFEST = 32 << 20
_DATA_MODE = 0o444


class Downloads:
    """Brings files of the master to this machine, each once however many jobs want it."""

    def __init__(self, asks: AskQueue, folders: AgentFolders) -> None:
        self._asks = asks
        self._folders = folders
        self._blobs = BlobStore(str(folders.blobs))
        self._data = DataStore(folders.data)
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._running: dict[str, asyncio.Task[None]] = {}

    async def bring(self, job: Job) -> None:
        """Bring all that a job needs, which has the paths of the master's machine.

        A checkpoint that is damaged or missing at the master does not fail here: the worker says what that means.

        Raises
        ------
        DetError
            If something else is not to be had.
        """
        places = MasterPlaces.of(job)
        sources = list(job.earlier.values()) if isinstance(job, TrialJob) else []
        if isinstance(job, TrialJob) and job.warm_start is not None:
            sources.append(job.warm_start)
        others = [source.manifest for source in sources if places.has(source.checkpoints)]
        # What lies in another storage workers read there themselves.
        blobs = job.bundle.hashes() if places.are_own("blobs", job.blobs) else ()
        links = {entry.sha256 for entry in job.bundle.links} if places.are_own("data", job.data) else ()
        await asyncio.gather(
            self._bring_blobs(blobs),
            self._bring_data(links),
            *(self._bring_usable(manifest, self._folders.other_checkpoints) for manifest in others),
            self._bring_resumed(job, places),
        )

    async def _bring_blobs(self, hashes: Iterable[str]) -> None:
        wanted = sorted(hashes)
        lacking = await asyncio.to_thread(lambda: [sha256 for sha256 in wanted if not self._blobs.refresh(sha256)])
        await asyncio.gather(*(self._once(f"blob {sha256}", partial(self._fetch_blob, sha256)) for sha256 in lacking))

    async def _bring_data(self, hashes: Iterable[str]) -> None:
        wanted = sorted(hashes)
        lacking = await asyncio.to_thread(lambda: [sha256 for sha256 in wanted if not self._data.refresh(sha256)])
        await asyncio.gather(*(self._once(f"data {sha256}", partial(self._fetch_data, sha256)) for sha256 in lacking))

    async def _bring_resumed(self, job: Job, places: MasterPlaces) -> None:
        """Bring the checkpoint that a trial continues from; if it is damaged, the furthest earlier one that is not."""
        if not isinstance(job, TrialJob) or job.resume is None or not places.has(job.checkpoints):
            return
        if await self._bring_usable(job.resume, self._folders.checkpoints):
            return
        for manifest in await self._earlier_manifests(job, job.resume):
            if await self._bring_usable(manifest, self._folders.checkpoints):
                return

    async def _earlier_manifests(self, job: TrialJob, resume: CheckpointManifest) -> list[CheckpointManifest]:
        manifests = []
        for uuid, sha256 in job.manifests.items():
            if uuid == resume.uuid:
                continue
            piece = await self._read("checkpoints", f"{uuid}/{MANIFEST}", 0, _MOST_MANIFEST)
            try:
                manifest = decode(uuid, piece.content or b"")
            except CheckpointCorruptError:
                continue
            if manifest.sha256 == sha256 and manifest.batch <= resume.batch:
                manifests.append(manifest)
        return sorted(manifests, key=lambda manifest: (manifest.batch, manifest.created), reverse=True)

    async def _bring_usable(self, manifest: CheckpointManifest, into: Path) -> bool:
        """Bring a checkpoint; return whether that could be done."""
        try:
            await self._once(f"checkpoint {into}/{manifest.uuid}", lambda: self._fetch_checkpoint(manifest, into))
        except CheckpointError as error:
            logger.warning("%s", error)
            return False
        return True

    async def _once(self, name: str, fetch: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait for a download, which is begun if it is not under way."""
        task = self._running.get(name)
        if task is None:
            task = self._running[name] = asyncio.create_task(fetch())
            task.add_done_callback(lambda ended: self._running.pop(name, None))
            # Whoever waits gets the error; that nobody does any more is no news.
            task.add_done_callback(lambda ended: None if ended.cancelled() else ended.exception())
        await asyncio.shield(task)

    async def _read(self, root: Root, path: str, offset: int, length: int = PIECE) -> Piece:
        async with self._slots:
            piece = await self._asks.ask(Read(root, path, offset, length))
        assert isinstance(piece, Piece)
        return piece

    async def _fetch_blob(self, sha256: str) -> None:
        key = f"{sha256[:2]}/{sha256}"
        piece = await self._read("blobs", key, 0)
        if piece.content is None:
            raise StorageError(
                f"The master has no blob {sha256}. It was damaged, or somebody removed it; submit again: it is sent "
                "anew then."
            )
        if len(piece.content) == piece.size:
            await asyncio.to_thread(self._blobs.put_packed, sha256, piece.content)
            return
        descriptor, temporary = await asyncio.to_thread(LocalFolder(self._folders.blobs).create)
        try:
            await self._stream("blobs", key, descriptor, piece)
            await asyncio.to_thread(publish_blob, self._folders.blobs, Path(temporary), sha256)
        finally:
            os.close(descriptor)
            remove_file(temporary)

    async def _fetch_data(self, sha256: str) -> None:
        piece = await self._read("data", f"{sha256[:2]}/{sha256}", 0)
        if piece.content is None:
            raise StorageError(
                f"The file {sha256} is no longer in the cluster's store of data: bring it there again (`det data put`)."
            )
        folder = LocalFolder(self._folders.data / "contents")
        descriptor, temporary = await asyncio.to_thread(folder.create)
        try:
            digest, _ = await self._stream("data", f"{sha256[:2]}/{sha256}", descriptor, piece)
            if digest != sha256:
                raise StorageError(f"The file {sha256} in the cluster's store of data is damaged: bring it again.")
            os.fchmod(descriptor, _DATA_MODE)
            await asyncio.to_thread(folder.adopt, temporary, f"{sha256[:2]}/{sha256}")
        finally:
            os.close(descriptor)
            remove_file(temporary)

    async def _fetch_checkpoint(self, manifest: CheckpointManifest, into: Path) -> None:
        uuid, storage = manifest.uuid, CheckpointStorage(str(into))
        try:
            await asyncio.to_thread(storage.check, manifest)
            os.utime(into / uuid / MANIFEST)  # it counts as new: nobody removes it as unused
            return
        except CheckpointError:  # it is not here, or not whole
            await asyncio.to_thread(storage.delete, uuid)
        folder = await asyncio.to_thread(storage.workspace)
        try:
            for file in manifest.files:
                path = folder / file.path
                path.parent.mkdir(parents=True, exist_ok=True)
                piece = await self._read("checkpoints", f"{uuid}/{file.path}", 0)
                if piece.content is None:
                    if (await self._read("checkpoints", f"{uuid}/{MANIFEST}", 0, 1)).content is None:
                        raise CheckpointNotFoundError(f"The master has no checkpoint {uuid}.")
                    raise CheckpointCorruptError(missing(uuid, file))
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
                try:
                    digest, size = await self._stream("checkpoints", f"{uuid}/{file.path}", descriptor, piece)
                finally:
                    os.close(descriptor)
                if size != file.size:
                    raise CheckpointCorruptError(resized(uuid, file, size))
                if digest != file.sha256:
                    raise CheckpointCorruptError(changed(uuid, file))
            (folder / MANIFEST).write_bytes(encode(manifest))
            folder.rename(into / uuid)
        finally:
            await asyncio.to_thread(remove_folder, folder)

    async def _stream(self, root: Root, path: str, descriptor: int, piece: Piece) -> tuple[str, int]:
        """Write a file, of which the first piece is there, as it comes; return its hash and its size."""
        digest, offset = hashlib.sha256(), 0
        while True:
            content = piece.content or b""
            await asyncio.to_thread(_write_hashed, descriptor, content, digest)
            offset += len(content)
            if not content or offset >= piece.size:
                return digest.hexdigest(), offset
            piece = await self._read(root, path, offset)


def _write_hashed(descriptor: int, content: bytes, digest: Any) -> None:
    digest.update(content)
    write_all(descriptor, (content,))
