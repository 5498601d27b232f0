"""Blobs by the SHA-256 of their raw content, packed (see :mod:`det_native.storage.frames`) and verified when read."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from det_native.errors import BundleCorruptError, StorageError
from det_native.storage import frames
from det_native.storage.addresses import open_folder
from det_native.storage.blob_writer import KERNEL_COPIES, BlobWriter
from det_native.storage.folder import LocalFolder, buffered, remove_file, write_all
from det_native.storage.frames import BLOCK, Buffer, FrameError
from det_native.storage.paths import check_sha256
from det_native.storage.room import storage_error

_REMOTE_THREADS = 16
# What crashed writers have left of parts in an object store goes after so long, which no upload takes.
_LEFT_SECONDS = 86_400.0
# An object that was written within this time stays long enough to be reported: new ones stay for some hours.
_FRESH_SECONDS = 3600.0
# More than this is not read only to see whether it is still as it was sent.
_READ_AGAIN_BYTES = 64 << 20
_READ_AGAIN_BLOBS = 1_000
_REMEMBERED = 50_000
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
    options : mapping, optional
        What fsspec's file system takes beside the address, secrets among it.
    prompt : bool
        Whether somebody waits for answers: a storage that is silent is given up soon.
    """

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None, *, prompt: bool = False) -> None:
        self._folder = open_folder(uri, options, prompt=prompt)
        self.uri = self._folder.uri
        self.local = self._folder.local
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

    def lost(self, hashes: Iterable[str]) -> list[str]:
        """Return those of `hashes` that are nowhere, looked for anew: somebody has found one missing, say."""
        return self.missing(hashes)

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
                if before == state and KERNEL_COPIES and isinstance(self._folder, LocalFolder):
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
        self.put_stream(sha256, frames.reader_of(packed))

    def put_stream(self, sha256: str, read: Callable[[int], Buffer]) -> None:
        """Store packed content that `read` returns piece by piece, fewer bytes than asked for only at its end."""
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
        return BlobWriter(self._folder, self._key(sha256), sha256, size, self._stored)

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
            except OSError as error:
                if self.local:
                    raise
                raise self._unreachable(error) from error

    def fetch(self, hashes: Iterable[str]) -> None:
        """Have blobs near that are about to be read; of use where reading each takes a request."""

    def packed(self, sha256: str) -> IO[bytes]:
        """Open a blob as it is stored; raises as :meth:`blocks` does, but for what is damaged."""
        return self._open(sha256)

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
        """Yield the blobs, in no order."""
        from det_native.storage.remote_folder import RemoteFolder

        if isinstance(self._folder, RemoteFolder):
            for found in self._folder.files():
                folder, _, name = found.key.partition("/")
                if len(name) == 64 and name.startswith(folder):
                    yield StoredBlob(name, found.size, found.modified)
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
        """Return whether a blob is here; it counts as new then, since it is about to be reported.

        Objects of a store cannot be touched: an old one is to be put again, which makes it new.
        """
        if not self.local:
            written = self.modified(sha256)
            return written is not None and time.time() - written < _FRESH_SECONDS
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
        """Return when a blob was last written, in seconds since 1970; None if it is not there."""
        with suppress(FileNotFoundError):
            if isinstance(self._folder, LocalFolder):
                return os.stat(self._folder.path(self._key(sha256))).st_mtime
            from det_native.storage.remote_folder import RemoteFolder

            if isinstance(self._folder, RemoteFolder):
                return self._folder.modified(self._key(sha256))
        return None

    def remove_leftovers(self) -> int:
        """Remove what writers left that crashed more than a day ago; return how many parts in S3 there were."""
        if isinstance(self._folder, LocalFolder):
            self._folder.remove_leftovers()
        from det_native.storage.multipart import abort_left

        return abort_left(self._folder, time.time() - _LEFT_SECONDS)

    def _stored(self, sha256: str, size: int) -> None:
        """Take note that a blob has appeared."""

    def _unreachable(self, error: OSError) -> StorageError:
        said = str(error.strerror or error).strip().rstrip(".") or type(error).__name__
        return storage_error(f"The storage {self.uri} cannot be reached: {said}.", error)

    def _open(self, sha256: str) -> IO[bytes]:
        try:
            return buffered(self._folder.open(self._key(sha256)))
        except FileNotFoundError as error:
            self.tell_loss()
            raise StorageError(
                f"There is no blob {sha256} at {self.uri}. It was damaged, or somebody removed it; submit again: it is "
                "sent anew then."
            ) from error
        except OSError as error:
            if self.local:
                raise
            raise self._unreachable(error) from error

    def tell_loss(self) -> None:
        """Have every process that remembers which blobs are here look again (see :meth:`generation`)."""
        if isinstance(self._folder, LocalFolder):
            self._folder.mark_changed()
