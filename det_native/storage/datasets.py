"""The cluster's store of data: files by the SHA-256 of their content, each as it is, and named sets of them.

A file arrives in pieces, in order, and is there once all of it is, verified: what was interrupted goes on where it was.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import struct
import threading
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Set
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from det_native.errors import NotFoundError, RequestError
from det_native.schema.datasets import DataSetCreate, DataSetInfo, FoundFile, MissingFile, WantedFile
from det_native.schema.manifests import FileEntry, Sha256
from det_native.storage.paths import check_relative, check_sha256

#: What stands before each piece: hash of the whole file, its size, where the piece begins, and its length.
PIECE = struct.Struct("<32sQQQ")
CONTENT_TYPE = "application/vnd.det-native.data"

#: What is said of a file whose content is not what its hash says.
CHANGED = "The file changed while it was sent; send it again."

_BUFFER = 1 << 20
_FEED = 1 << 20
_CONFLICT = 409
_TOO_LARGE = 413
MODE = 0o444  # what many trials read, none of them changes


class DataStore:
    """Files by content in a folder; threads may share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._writing: set[Sha256] = set()
        self._digests: dict[Sha256, tuple[int, Any]] = {}

    def has(self, sha256: Sha256) -> bool:
        """Return whether a file is here, all of it, verified."""
        return self.path_of(sha256).exists()

    def refresh(self, sha256: Sha256) -> bool:
        """Return whether a file is here, which then counts as new: nobody removes it as unused."""
        try:
            os.utime(self.path_of(sha256))
        except FileNotFoundError:
            return False
        return True

    def path_of(self, sha256: Sha256) -> Path:
        """Return where a file lies on this machine, if it does."""
        check_sha256(sha256)
        return self._folder / "contents" / sha256[:2] / sha256

    def missing(self, wanted: Iterable[WantedFile]) -> list[MissingFile]:
        """Return those that are not here, each once, with how much of them is.

        Raises
        ------
        RequestError
            If there is no room for the rest: a disk that is filled with a part of it would stop trials, too.
        """
        different = {one.sha256: one for one in wanted}
        found = [
            MissingFile(sha256=sha256, offset=self._arrived(sha256)) for sha256 in different if not self.has(sha256)
        ]
        self._check_room(sum(different[one.sha256].size - one.offset for one in found))
        return found

    def _check_room(self, needed: int) -> None:
        free = shutil.disk_usage(self._folder.parent).free
        if needed > free:
            raise RequestError(
                _TOO_LARGE,
                f"The disk of the master is too full for this, at {self._folder.parent}: {needed / 1e6:,.1f} MB are to "
                f"come, {free / 1e6:,.1f} MB are free. Make room there (`det data list` shows the store), or "
                "bring less.",
            )

    def find(self, sizes: Iterable[int]) -> list[FoundFile]:
        """Return the files that have one of these sizes."""
        wanted = set(sizes)
        found = []
        for path in (self._folder / "contents").glob("??/*"):
            size = path.stat().st_size
            if size in wanted:
                found.append(FoundFile(sha256=path.name, size=size))
        return found

    async def receive(self, stream: AsyncIterable[bytes]) -> int:
        """Take the pieces of a request's body as they come; return how many bytes of files they have.

        Raises
        ------
        RequestError
            If a piece does not go on where the file ends, or the whole is not what its hash says.
        """
        parser = _Parser(self)
        gathered = bytearray()
        try:
            async for block in stream:
                gathered += block
                if len(gathered) >= _FEED:
                    ready, gathered = bytes(gathered), bytearray()
                    await asyncio.to_thread(parser.feed, ready)
            # What is being written counts as taken, even if that fails: `close` must not write it once more.
            ready, gathered = bytes(gathered), bytearray()
            await asyncio.to_thread(parser.feed, ready)
            await asyncio.to_thread(parser.end)
        finally:  # what has arrived stays, whatever has ended it
            await asyncio.to_thread(parser.close, bytes(gathered))
        return parser.size

    def create(self, body: DataSetCreate) -> DataSetInfo:
        """Give files a name.

        Raises
        ------
        RequestError
            If some of them are not here.
        UnsafePathError
            If a path leaves its folder.
        """
        for file in body.files:
            check_relative(file.path)
        lacking = [file.path for file in body.files if not self.has(file.sha256)]
        if lacking:
            raise RequestError(_CONFLICT, f"{len(lacking)} files are not in the store yet, such as {lacking[0]!r}.")
        return _info(self._write_set(body), body)

    def sets(self) -> list[DataSetInfo]:
        """Return all sets, by name."""
        return [_info(created, body) for created, body in self._read_sets()]

    def files_of(self, name: str) -> list[FileEntry]:
        """Return the files of a set."""
        for _, body in self._read_sets():
            if body.name == name:
                return body.files
        raise NotFoundError(f"There are no data {name!r} in the store; `det data list` shows what is there.")

    def remove(self, name: str) -> None:
        """Remove a set, and the files that belong to no other."""
        doomed = {file.sha256 for file in self.files_of(name)}
        self._remove_set(name)
        self.drop(doomed)

    def drop(self, doomed: Iterable[Sha256]) -> None:
        """Remove those of these files that belong to no set."""
        kept = self._named()
        for sha256 in set(doomed) - kept:
            self._remove_content(sha256)

    def together(self, wanted: Iterable[Sha256]) -> None:
        """Have these files lie in one place, where a worker looks for all of them."""

    def drop_left(self, used: Set[Sha256], before: float) -> None:
        """Remove what has been in the store since before a time and belongs to no set: of uploads that were given up.

        Parameters
        ----------
        used : set of str
            Files that are to stay.
        before : float
            As `time.time` tells it.
        """
        kept = self._named() | used
        for path in (*(self._folder / "contents").glob("??/*"), *(self._folder / "partial").glob("*")):
            with suppress(OSError):
                if path.name not in kept and path.stat().st_mtime < before:
                    path.unlink()

    def _named(self) -> set[Sha256]:
        return {file.sha256 for _, body in self._read_sets() for file in body.files}

    @contextmanager
    def writing(self, sha256: Sha256, size: int, offset: int) -> Iterator[Callable[[memoryview], None]]:
        """Yield what takes the bytes of a file from `offset` on; at its end the file is verified."""
        if self.has(sha256):
            yield lambda block: None
            return
        with self._alone(sha256):
            partial = self._partial(sha256)
            if self._arrived(sha256) != offset:
                raise RequestError(_CONFLICT, f"Of this file {self._arrived(sha256)} bytes are here, not {offset}.")
            partial.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            known, digest = self._digests.pop(sha256, (0, hashlib.sha256()))
            with partial.open("ab", buffering=0) as file:
                if known != offset:
                    digest = _digest_of(partial)

                def write(block: memoryview) -> None:
                    _write_all(file.fileno(), block, digest)

                try:
                    yield write
                finally:
                    self._digests[sha256] = file.tell(), digest
            if self._arrived(sha256) == size:
                self._accept(sha256, digest.hexdigest())

    @contextmanager
    def _alone(self, sha256: Sha256) -> Iterator[None]:
        """Let nobody else write the same file."""
        with self._lock:
            if sha256 in self._writing:
                raise RequestError(_CONFLICT, "The same file is being sent by another process; try again later.")
            self._writing.add(sha256)
        try:
            yield
        finally:
            with self._lock:
                self._writing.discard(sha256)

    def _accept(self, sha256: Sha256, found: str) -> None:
        del self._digests[sha256]
        partial, place = self._partial(sha256), self.path_of(sha256)
        if found != sha256:
            partial.unlink()
            raise RequestError(_CONFLICT, CHANGED)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial.chmod(MODE)
        partial.replace(place)

    @property
    def _sets(self) -> Path:
        return self._folder / "sets"

    def _partial(self, sha256: Sha256) -> Path:
        check_sha256(sha256)
        return self._folder / "partial" / sha256

    def _arrived(self, sha256: Sha256) -> int:
        try:
            return self._partial(sha256).stat().st_size
        except FileNotFoundError:
            return 0

    def _read_sets(self) -> Iterator[tuple[float, DataSetCreate]]:
        """Yield the sets by name, each with when it was made, in seconds since 1970."""
        for path in sorted(self._sets.glob("*.json")):
            try:
                yield path.stat().st_mtime, DataSetCreate.model_validate_json(path.read_bytes())
            except (OSError, ValidationError):
                continue  # removed meanwhile, or not ours

    def _write_set(self, body: DataSetCreate) -> float:
        """Write a set; return when that was."""
        place = self._sets / f"{body.name}.json"
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = place.with_suffix(".new")
        temporary.write_text(body.model_dump_json())
        temporary.replace(place)
        return place.stat().st_mtime

    def _remove_set(self, name: str) -> None:
        (self._sets / f"{name}.json").unlink(missing_ok=True)

    def _remove_content(self, sha256: Sha256) -> None:
        self.path_of(sha256).unlink(missing_ok=True)

    def settled(self) -> None:
        """Wait until what has come is stored."""


class _Parser:
    """Takes a body apart as it comes."""

    def __init__(self, store: DataStore) -> None:
        self._store = store
        self._head = bytearray()
        self._left = 0
        self._open: Any = None
        self._write: Callable[[memoryview], None] = lambda block: None
        self.size = 0

    def feed(self, block: bytes) -> None:
        view = memoryview(block)
        while len(view):
            if not self._left:
                taken = view[: PIECE.size - len(self._head)]
                self._head += taken
                view = view[len(taken) :]
                if len(self._head) == PIECE.size:
                    self._begin()
                continue
            taken = view[: self._left]
            self._write(taken)
            self._left -= len(taken)
            self.size += len(taken)
            view = view[len(taken) :]
            if not self._left:
                self._finish()

    def _begin(self) -> None:
        sha256, size, offset, length = PIECE.unpack(bytes(self._head))
        self._head.clear()
        if offset + length > size:
            raise RequestError(400, "A piece goes on after the end of its file.")
        self._open = self._store.writing(sha256.hex(), size, offset)
        self._write = self._open.__enter__()
        self._left = length
        if not length:
            self._finish()

    def _finish(self) -> None:
        opened, self._open = self._open, None
        opened.__exit__(None, None, None)

    def end(self) -> None:
        """Check that nothing is missing."""
        if self._left or self._head:
            raise RequestError(400, "The body ends early.")
        self._store.settled()

    def close(self, rest: bytes) -> None:
        """Keep what has arrived of a file that is not complete; `rest` is what came last."""
        if self._open is not None:
            self._write(memoryview(rest)[: self._left])
            self._finish()
        self._store.settled()


def _digest_of(path: Path) -> Any:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BUFFER):
            digest.update(block)
    return digest


def _write_all(descriptor: int, block: memoryview, digest: Any) -> None:
    """Write a block; what a full disk has taken of it before it refuses the rest is in the digest, too."""
    while len(block):
        written = os.write(descriptor, block)
        digest.update(block[:written])
        block = block[written:]


def _info(created: float, body: DataSetCreate) -> DataSetInfo:
    moment = datetime.fromtimestamp(created, UTC).isoformat(timespec="seconds")
    return DataSetInfo(
        name=body.name, files=len(body.files), size=sum(file.size for file in body.files), created=moment
    )
