"""A store of data that all machines reach: in S3, say. What the home has from before stays there and is read there.

A file goes there in parts as it comes, and counts once its hash is right. Small ones are sent as they are, several at
once.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from det_native.errors import RequestError
from det_native.schema.datasets import DataSetCreate, FoundFile
from det_native.schema.manifests import Sha256
from det_native.storage.datasets import CHANGED, DataStore
from det_native.storage.folder import buffered
from det_native.storage.incoming_parts import IncomingParts
from det_native.storage.multipart import abort_left
from det_native.storage.paths import check_sha256
from det_native.storage.remote_folder import RemoteFolder

_CONFLICT = 409
_SMALL = 1 << 20
_AT_ONCE = 16


class SharedData(DataStore):
    """Files by content below an address, and those that a home has from before. Threads may share it.

    Parameters
    ----------
    uri : str
        One of an object store, or of another machine.
    options : mapping
        What fsspec's file system takes beside the address, secrets among it.
    folder : Path
        Of the home.
    """

    def __init__(self, uri: str, options: Mapping[str, Any], folder: Path) -> None:
        super().__init__(folder)
        self._remote = RemoteFolder(uri, options, prompt=True)
        self._incoming = folder / "uploads"
        self._there: dict[Sha256, tuple[int, float]] | None = None
        self._listing = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._sent: deque[Future[None]] = deque()

    def has(self, sha256: Sha256) -> bool:
        """Return whether a file is here, all of it, verified."""
        if super().has(sha256):
            return True
        return sha256 in self._contents() and not IncomingParts.is_known(self._incoming, sha256)

    def find(self, sizes: Iterable[int]) -> list[FoundFile]:
        """Return the files that have one of these sizes."""
        wanted = set(sizes)
        coming = self._coming()
        there = {
            sha256: FoundFile(sha256=sha256, size=size)
            for sha256, (size, _) in list(self._contents().items())
            if size in wanted and sha256 not in coming
        }
        return list({**there, **{file.sha256: file for file in super().find(wanted)}}.values())

    def together(self, wanted: Iterable[Sha256]) -> None:
        """Have these files lie in one place: where the home has only some of them, those go to the others."""
        hashes = set(wanted)
        own = {sha256 for sha256 in hashes if super(SharedData, self).has(sha256)}
        if own == hashes:
            return
        for sha256 in own - self._contents().keys():
            self._send_own(sha256)

    @contextmanager
    def writing(self, sha256: Sha256, size: int, offset: int) -> Iterator[Callable[[memoryview], None]]:
        """Yield what takes the bytes of a file from `offset` on; at its end the file is verified."""
        if not self._remote.in_s3:
            with super().writing(sha256, size, offset) as write:
                yield write
            return
        if self.has(sha256):
            yield lambda block: None
            return
        with self._alone(sha256):
            incoming = IncomingParts(self._remote, _key(sha256), self._incoming, sha256, size)
            if incoming.arrived != offset:
                raise RequestError(_CONFLICT, f"Of this file {incoming.arrived} bytes are here, not {offset}.")
            if not offset and size <= _SMALL:
                with self._small(incoming, sha256, size) as write:
                    yield write
                return
            known, digest = self._digests.pop(sha256, (0, hashlib.sha256()))

            def take(block: memoryview) -> None:
                incoming.write(block)
                digest.update(block)

            try:
                yield take
            finally:
                if known == offset:
                    self._digests[sha256] = incoming.arrived, digest
            if incoming.arrived == size:
                self._digests.pop(sha256, None)
                self._complete(incoming, sha256, size, digest.hexdigest() if known == offset else None)

    @contextmanager
    def _small(self, incoming: IncomingParts, sha256: Sha256, size: int) -> Iterator[Callable[[memoryview], None]]:
        """Take a small file at once; what comes of one that is cut off is kept as of a large one."""
        content = bytearray()
        try:
            yield content.extend
        finally:
            if 0 < len(content) < size:
                incoming.write(memoryview(content))
        if len(content) < size:
            return
        if hashlib.sha256(content).hexdigest() != sha256:
            raise RequestError(_CONFLICT, CHANGED)
        with self._lock:
            self._pool = self._pool or ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="det-data")
            self._sent.append(self._pool.submit(self._send, sha256, bytes(content)))
            oldest = self._sent.popleft() if len(self._sent) > _AT_ONCE else None
        if oldest is not None:
            oldest.result()

    def _send(self, sha256: Sha256, content: bytes) -> None:
        self._remote.publish(_key(sha256), [content])
        self._note(sha256, len(content))

    def settled(self) -> None:
        """Wait until what has come is stored."""
        while True:
            with self._lock:
                oldest = self._sent.popleft() if self._sent else None
                if oldest is None:
                    pool, self._pool = self._pool, None
                    break
            oldest.result()
        if pool is not None:
            pool.shutdown()

    def _complete(self, incoming: IncomingParts, sha256: Sha256, size: int, found: str | None) -> None:
        """Let a file count that has come whole; one whose beginning an earlier process took is read again for that."""
        if found in (None, sha256):
            incoming.finish()
            found = found or incoming.read_back()
        if found != sha256:
            incoming.give_up()
            raise RequestError(_CONFLICT, CHANGED)
        self._note(sha256, size)
        incoming.forget()

    def _accept(self, sha256: Sha256, found: str) -> None:
        """Of a storage without parts: send what has come here."""
        super()._accept(sha256, found)
        self._send_own(sha256)
        self.path_of(sha256).unlink()

    def _send_own(self, sha256: Sha256) -> None:
        path = self.path_of(sha256)
        self._remote.publish_file(_key(sha256), path)
        self._note(sha256, path.stat().st_size)

    def drop_left(self, used: Set[Sha256], before: float) -> None:
        """Remove what has been here since before a time and belongs to no set: of uploads that were given up."""
        super().drop_left(used, before)
        kept = self._named() | used
        for sha256, (_, written) in list(self._contents().items()):
            if sha256 not in kept and written < before:
                self._remove_content(sha256)
        if not self._remote.in_s3:
            return
        going_on = set()
        for sha256 in self._coming():
            incoming = IncomingParts(self._remote, _key(sha256), self._incoming, sha256)
            if incoming.touched < before:
                incoming.give_up()
            else:
                going_on.add(_key(sha256))
        abort_left(self._remote, before, "contents", lambda key: key not in going_on)

    def _check_room(self, needed: int) -> None:
        """Of an object store nobody knows how much it takes; in the home lies less than a part of each file."""
        if not self._remote.in_s3:
            super()._check_room(needed)

    def _arrived(self, sha256: Sha256) -> int:
        if not self._remote.in_s3:
            return super()._arrived(sha256)
        if not IncomingParts.is_known(self._incoming, sha256):
            return 0
        return IncomingParts(self._remote, _key(sha256), self._incoming, sha256).arrived

    def _coming(self) -> set[Sha256]:
        return IncomingParts.known(self._incoming)

    def _contents(self) -> dict[Sha256, tuple[int, float]]:
        """Return the files at the address by hash, each with its size and when it came; listed once."""
        with self._listing:
            if self._there is None:
                found = self._remote.files("contents")
                self._there = {file.key.rpartition("/")[2]: (file.size, file.modified) for file in found}
            return self._there

    def _note(self, sha256: Sha256, size: int) -> None:
        self._contents()[sha256] = size, time.time()

    def _read_sets(self) -> Iterator[tuple[float, DataSetCreate]]:
        sets = {body.name: (created, body) for created, body in super()._read_sets()}
        for file in self._remote.files("sets"):
            with suppress(FileNotFoundError, ValidationError), buffered(self._remote.open(file.key)) as stream:
                body = DataSetCreate.model_validate_json(stream.read())
                sets[body.name] = file.modified, body
        yield from (sets[name] for name in sorted(sets))

    def _write_set(self, body: DataSetCreate) -> float:
        self._remote.publish(f"sets/{body.name}.json", [body.model_dump_json().encode()])
        super()._remove_set(body.name)
        return time.time()

    def _remove_set(self, name: str) -> None:
        self._remote.delete(f"sets/{name}.json")
        super()._remove_set(name)

    def _remove_content(self, sha256: Sha256) -> None:
        super()._remove_content(sha256)
        if sha256 in self._contents():
            self._remote.delete(_key(sha256))
            self._contents().pop(sha256, None)


def _key(sha256: Sha256) -> str:
    check_sha256(sha256)
    return f"contents/{sha256[:2]}/{sha256}"
