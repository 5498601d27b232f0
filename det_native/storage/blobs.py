"""Blobs by the SHA-256 of their raw content, packed (see :mod:`det_native.storage.frames`) and verified when read."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

from det_native.errors import BundleCorruptError, StorageError
from det_native.storage import frames
from det_native.storage.folder import LocalFolder, buffered, remove_file, write_all
from det_native.storage.frames import BLOCK, BLOCK_HEADER, BlockHeader, Buffer, FrameError
from det_native.storage.paths import check_sha256
from det_native.storage.remote_folder import open_folder

_REMOTE_THREADS = 16
# More than this is not read only to see whether it is still as it was sent.
_READ_AGAIN_BYTES = 64 << 20
_READ_AGAIN_BLOBS = 1_000
_REMEMBERED = 50_000
_KERNEL_COPIES = sys.platform == "linux"  # elsewhere sendfile wants a socket
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)


class FileState(NamedTuple):
    """What tells that a file has not changed; size in bytes, times in ns."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> FileState:
        """Take what is needed from a result of ``os.stat``."""
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def _unreadable(path: Path | str, error: OSError) -> StorageError:
    return StorageError(f"The file {os.fspath(path)!r} cannot be read: {error.strerror}.")


class StoredBlob(NamedTuple):
    """A blob as it lies in a store: bytes that its file takes, and when it was last written, in seconds since 1970."""

    sha256: str
    size: int
    modified: float


class BlobStore:
    """Content-addressed store of blobs at a path or at any address that fsspec knows.

    Safe for many threads and many processes at once: a blob appears whole or not at all, and putting one that is there
    changes nothing.

    Parameters
    ----------
    uri : str
        A path, ``file:///path``, or for instance ``s3://bucket/folder``.
    """

    def __init__(self, uri: str) -> None:
        self._folder = open_folder(uri)
        self.uri = self._folder.uri
        self._read: dict[str, FileState] = {}

    @staticmethod
    def _key(sha256: str) -> str:
        check_sha256(sha256)
        return f"{sha256[:2]}/{sha256}"

    def __contains__(self, sha256: str) -> bool:
        return self._folder.exists(self._key(sha256))

    def missing(self, hashes: Iterable[str]) -> list[str]:
        """Return those of `hashes` that are not stored, in their order, each once."""
        wanted = list(dict.fromkeys(hashes))
        if self._folder.local or len(wanted) < 2:
            return [sha256 for sha256 in wanted if sha256 not in self]
        with ThreadPoolExecutor(_REMOTE_THREADS) as threads:
            there = list(threads.map(self.__contains__, wanted))
        return [sha256 for sha256, found in zip(wanted, there, strict=True) if not found]

    def generation(self) -> object:
        """Return what differs once folders of the store have come or gone, or a reader has missed a blob.

        In an object store it never does.
        """
        if not isinstance(self._folder, LocalFolder):
            return None
        try:
            found = os.stat(self._folder.root)
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def put(self, sha256: str, raw: Buffer, *, compressed: bool = True) -> None:
        """Store `raw`, whose hash must be `sha256`; without compressing it where time counts more than room.

        Raises
        ------
        FrameError
            The content has another hash.
        StorageError
            It cannot be written.
        """
        view = memoryview(raw).cast("B")
        with self.writer(sha256, len(view)) as writer:
            for start in range(0, len(view), BLOCK):
                piece = view[start : start + BLOCK]
                header, payload = frames.encode_block(piece) if compressed else frames.raw_block(piece)
                writer.write(header, payload, piece)
            writer.commit()

    def put_file(self, sha256: str, path: Path | str, state: FileState | None = None) -> None:
        """Store the content of a file as it is, without compressing it.

        Parameters
        ----------
        sha256 : str
            Hash of the content.
        path : Path or str
            The file.
        state : FileState, optional
            State that the file had when `sha256` was taken, if it was not changed shortly before. A file that is
            still in that state is not hashed again.

        Raises
        ------
        FrameError
            The content has another hash.
        StorageError
            The file cannot be read, or the blob cannot be stored.
        """
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise _unreadable(path, error) from error
        try:
            before = FileState.of(os.fstat(descriptor))
            with self.writer(sha256, before.size) as writer:
                if before == state and _KERNEL_COPIES and isinstance(self._folder, LocalFolder):
                    writer.copy(descriptor)
                else:
                    for start in range(0, before.size, BLOCK):
                        raw = os.pread(descriptor, BLOCK, start)
                        writer.write(*frames.raw_block(raw), raw)
                if FileState.of(os.fstat(descriptor)) != before:
                    raise FrameError(f"The file {os.fspath(path)!r} changed while it was read.")
                writer.commit()
        except OSError as error:
            raise _unreadable(path, error) from error
        finally:
            os.close(descriptor)

    def put_packed(self, sha256: str, packed: Buffer) -> None:
        """Store packed content as it is, after its blocks and its hash have been verified."""
        read = frames.reader_of(packed)
        with self.writer(sha256, frames.parse_header(read(frames.HEADER.size))) as writer:
            while not writer.complete:
                header = read(frames.BLOCK_HEADER.size)
                if len(header) != frames.BLOCK_HEADER.size:
                    raise FrameError(f"Blob {sha256} ends early.")
                block = frames.parse_block_header(header)
                payload = read(block.stored)
                writer.write(header, payload, writer.checked(block, payload))
            if len(read(1)):
                raise FrameError(f"Blob {sha256} goes on after its end.")
            writer.commit()

    def writer(self, sha256: str, size: int) -> BlobWriter:
        """Return a writer for a blob that comes block by block; use it in a ``with`` statement."""
        return BlobWriter(self, sha256, size)

    def blocks(self, sha256: str) -> Iterator[Buffer]:
        """Yield the raw blocks of a blob. The hash is verified after the last one, so use nothing before the end.

        Raises
        ------
        StorageError
            There is no such blob, or it cannot be read.
        BundleCorruptError
            What is stored is damaged. It is removed, so that the next upload brings it again.
        """
        digest = hashlib.sha256()
        with self._open(sha256) as stream:
            try:
                for raw in frames.read_blocks(stream.read):
                    digest.update(raw)
                    yield raw
                if digest.hexdigest() != sha256:
                    raise FrameError("its content has another hash")
            except FrameError as error:
                self.delete(sha256)
                self.tell_loss()
                raise BundleCorruptError(
                    f"Stored blob {sha256} is damaged ({error}); submit again: it is sent anew then."
                ) from error

    def read(self, sha256: str) -> bytes:
        """Return the raw content of a blob, verified; raises as :meth:`blocks` does."""
        return b"".join(self.blocks(sha256))

    def write_to(self, sha256: str, path: Path | str, mode: int = 0o644) -> int:
        """Write the raw content of a blob into a new file, and return its size in bytes.

        Parameters
        ----------
        sha256 : str
            The blob.
        path : Path or str
            File to make. It must not exist, not even as a link; its folder must.
        mode : int
            Permission bits, before the umask.

        Raises
        ------
        StorageError, BundleCorruptError
            As :meth:`blocks`; also if the file exists. Nothing is left behind then.
        """
        try:
            descriptor = os.open(path, _NEW_FILE, mode)
        except OSError as error:
            raise StorageError(f"The file {os.fspath(path)!r} cannot be made: {error.strerror}.") from error
        size = 0
        try:
            try:
                for raw in self.blocks(sha256):
                    size += len(raw)
                    write_all(descriptor, (raw,))
            finally:
                os.close(descriptor)
        except BaseException:
            remove_file(os.fspath(path))
            raise
        return size

    def remove_damaged(self, hashes: Iterable[str]) -> None:
        """Read these blobs and remove those that are damaged, so that the next upload brings them again."""
        for sha256 in dict.fromkeys(hashes):
            with suppress(BundleCorruptError, StorageError, OSError):
                for _ in self.blocks(sha256):
                    pass

    def remove_changed(self, hashes: Sequence[str]) -> None:
        """Read the blobs whose files have changed since they were last read here; remove those that are damaged.

        What would take long (many blobs, large ones) and what lies in an object store is not read.
        """
        if not isinstance(self._folder, LocalFolder) or len(hashes) > _READ_AGAIN_BLOBS:
            return
        if len(self._read) > _REMEMBERED:
            self._read.clear()
        room = _READ_AGAIN_BYTES
        for sha256 in hashes:
            with suppress(FileNotFoundError):
                state = FileState.of(os.stat(self._folder.root / self._key(sha256)))
                if self._read.get(sha256) != state and state.size <= room:
                    room -= state.size
                    self.remove_damaged([sha256])
                    self._read[sha256] = state

    def delete(self, sha256: str) -> None:
        """Remove a blob, if it is there."""
        self._folder.delete(self._key(sha256))

    def entries(self) -> Iterator[StoredBlob]:
        """Yield the blobs of a local store, in no order; of one elsewhere none."""
        if not isinstance(self._folder, LocalFolder):
            return
        for folder in self._folder.children():
            if len(folder) != 2:
                continue
            with suppress(FileNotFoundError), os.scandir(self._folder.path(folder)) as files:
                for file in files:
                    with suppress(FileNotFoundError):
                        state = file.stat(follow_symlinks=False)
                        if len(file.name) == 64:
                            yield StoredBlob(file.name, state.st_size, state.st_mtime)

    def size(self, sha256: str) -> int | None:
        """Return the bytes that a blob takes, None if it is not there."""
        try:
            return self._folder.size(self._key(sha256))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def refresh(self, sha256: str) -> bool:
        """Return whether a blob is here; it counts as new then, since it is about to be reported."""
        if sha256 not in self:
            return False
        if isinstance(self._folder, LocalFolder):
            try:
                os.utime(self._folder.path(self._key(sha256)))
            except FileNotFoundError:  # removed this moment
                return False
            except OSError:  # of another user's, say
                pass
        return True

    def modified(self, sha256: str) -> float | None:
        """Return when a blob of a local store was last written, in seconds since 1970; None if it is not there."""
        with suppress(FileNotFoundError):
            if isinstance(self._folder, LocalFolder):
                return os.stat(self._folder.path(self._key(sha256))).st_mtime
        return None

    def remove_leftovers(self) -> None:
        """Remove what writers left that crashed more than a day ago."""
        if isinstance(self._folder, LocalFolder):
            self._folder.remove_leftovers()

    def _open(self, sha256: str) -> IO[bytes]:
        try:
            return buffered(self._folder.open(self._key(sha256)))
        except FileNotFoundError as error:
            self.tell_loss()
            raise StorageError(
                f"There is no blob {sha256} at {self.uri}. It was damaged, or somebody removed it; submit again: it is "
                "sent anew then."
            ) from error

    def tell_loss(self) -> None:
        """Have every process that remembers which blobs are here look again (see :meth:`generation`)."""
        if isinstance(self._folder, LocalFolder):
            self._folder.mark_changed()


class BlobWriter:
    """Takes the blocks of one blob, and publishes it once they are complete and have the right hash."""

    def __init__(self, store: BlobStore, sha256: str, size: int) -> None:
        self._folder = store._folder
        self._key = store._key(sha256)
        self._sha256 = sha256
        self._size = size
        self._taken = 0
        self._digest = hashlib.sha256()
        self._copied = False
        self._pieces: list[Buffer] = [frames.pack_header(size)]
        self._descriptor: int | None = None
        self._temporary: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.abort()

    @property
    def complete(self) -> bool:
        """Whether all blocks have come."""
        return self._taken == self._size

    def checked(self, block: BlockHeader, payload: Buffer) -> Buffer:
        """Return the raw content of a block, after making sure that it still fits into the blob."""
        if block.raw > self._size - self._taken:
            raise FrameError(f"Blob {self._sha256} has more bytes than its header declares.")
        return frames.decode_block(block, payload)

    def write(self, header: Buffer, payload: Buffer, raw: Buffer) -> None:
        """Take a packed block (`header`, `payload`) and its raw content.

        The buffers must stay as they are until the next call of this object.
        """
        self._digest.update(raw)
        self._taken += len(raw)
        self._pieces += (header, payload)
        if not self.complete or self._descriptor is not None:
            self._flush()

    def copy(self, source: int) -> None:
        """Take the whole content, raw, from an open file that is known to have it: copied by the kernel, not hashed."""
        self._flush()
        if self._descriptor is None:
            raise StorageError(f"Blob {self._sha256} cannot be copied to {self._folder.uri}.")
        self._copied = True
        try:
            while not self.complete:
                self._copy_block(self._descriptor, source)
        except OSError as error:
            raise StorageError(f"Blob {self._sha256} cannot be stored: {error}.") from error

    def _copy_block(self, descriptor: int, source: int) -> None:
        length = min(BLOCK, self._size - self._taken)
        write_all(descriptor, [BLOCK_HEADER.pack(frames.RAW, length, length)])
        end = self._taken + length
        while self._taken < end:
            count = os.sendfile(descriptor, source, self._taken, end - self._taken)
            if not count:
                raise FrameError("The file became shorter while it was read.")
            self._taken += count

    def commit(self) -> None:
        """Let the blob appear in the store.

        Raises
        ------
        FrameError
            Blocks are missing, or the hash is another one.
        StorageError
            The blob cannot be written.
        """
        if not self.complete:
            raise FrameError(f"Blob {self._sha256} ends early.")
        if not self._copied and self._digest.hexdigest() != self._sha256:
            raise FrameError(f"Content sent as blob {self._sha256} has the hash {self._digest.hexdigest()}.")
        try:
            self._publish()
        except OSError as error:
            raise StorageError(f"Blob {self._sha256} cannot be stored: {error}.") from error

    def abort(self) -> None:
        """Give up what was not committed. Safe to call at any time."""
        self._pieces = []
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if self._temporary is not None:
            remove_file(self._temporary)
            self._temporary = None

    def _flush(self) -> None:
        """Write out what has come, so that memory holds one block whatever the blob's size."""
        try:
            if self._descriptor is None:
                self._descriptor, self._temporary = self._create()
            write_all(self._descriptor, self._pieces)
        except OSError as error:
            raise StorageError(f"Blob {self._sha256} cannot be stored: {error}.") from error
        self._pieces = []

    def _create(self) -> tuple[int, str]:
        if isinstance(self._folder, LocalFolder):
            return self._folder.create()
        return tempfile.mkstemp(prefix="det-blob-")

    def _publish(self) -> None:
        if self._descriptor is None or self._temporary is None:
            self._folder.publish(self._key, self._pieces)
            return
        os.close(self._descriptor)
        self._descriptor = None
        if isinstance(self._folder, LocalFolder):
            self._folder.adopt(self._temporary, self._key)
            self._temporary = None
        else:
            self._folder.publish_file(self._key, Path(self._temporary))
