"""Many blobs in one request body, as a client writes it; :mod:`det_native.storage.received_packs` takes it apart.

A body is ``DNPACK1`` and a line feed, then records, then the end record. A record is the byte ``B``, 32 bytes of hash,
and a packed blob (see :mod:`det_native.storage.frames`). The end record is the byte ``E`` and the number of blobs (4
bytes, little endian).
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from det_native.errors import StorageError
from det_native.storage import frames
from det_native.storage.frames import BLOCK, HEADER, Buffer
from det_native.storage.paths import check_sha256

CONTENT_TYPE = "application/vnd.det-native.blobs"

#: What a body begins with, the kind of a record, the end record, and what stands before a packed blob.
MAGIC = b"DNPACK1\n"
BLOB = b"B"
END = struct.Struct("<cI")
RECORD = struct.Struct(f"<c32s{HEADER.size}s")
_PIECE = 256 << 10


@dataclass(frozen=True)
class _Part:
    """A stretch of one blob that is packed in one go; the first carries the record's head."""

    sha256: str
    content: Path | bytes
    size: int
    start: int
    length: int


def pack(contents: Mapping[str, Path | bytes], *, threads: int | None = None) -> Generator[bytes, None, None]:
    """Yield the body that carries `contents`, compressed by several threads, a few megabytes at a time in memory.

    Close the iterator if it is not read to the end (``contextlib.closing``): that ends its threads.

    Parameters
    ----------
    contents : mapping of SHA-256 to Path or bytes
        Files are read while packing; their size must not change meanwhile.
    threads : int, optional
        Default: one for each core, at most 8.

    Raises
    ------
    StorageError
        A file cannot be read, or changed its size.
    """
    workers = threads or min(os.cpu_count() or 1, 8)
    yield MAGIC
    with ThreadPoolExecutor(workers, thread_name_prefix="det-pack") as pool:
        waiting: deque[Future[list[bytes]]] = deque()
        try:
            for task in _tasks(contents):
                waiting.append(pool.submit(_pack_parts, task))
                if len(waiting) > 3 * workers:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    yield END.pack(b"E", len(contents))


def _tasks(contents: Mapping[str, Path | bytes]) -> Iterator[list[_Part]]:
    """Cut large blobs into blocks and gather small ones, so that each task is about one block of work."""
    task: list[_Part] = []
    gathered = 0
    for sha256, content in contents.items():
        size = len(content) if isinstance(content, bytes) else _size_of(content)
        for start in range(0, max(size, 1), BLOCK):
            length = min(BLOCK, size - start)
            task.append(_Part(sha256, content, size, start, length))
            gathered += length
            if gathered >= BLOCK // 2:
                yield task
                task, gathered = [], 0
    if task:
        yield task


def _size_of(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError as error:
        raise StorageError(f"The file {str(path)!r} cannot be read: {error.strerror}.") from error


def _pack_parts(parts: list[_Part]) -> list[bytes]:
    """Return the packed parts, small ones joined: every piece costs the sender a system call."""
    pieces: list[bytes] = []
    small: list[Buffer] = []
    gathered = 0
    for part in parts:
        if part.start == 0:
            check_sha256(part.sha256)
            small.append(RECORD.pack(BLOB, bytes.fromhex(part.sha256), frames.pack_header(part.size)))
        if part.length:
            header, payload = frames.encode_block(_read_part(part))
            small += (header, payload)
            gathered += len(payload)
        if gathered >= _PIECE:
            pieces.append(b"".join(small))
            small, gathered = [], 0
    if small:
        pieces.append(b"".join(small))
    return pieces


def _read_part(part: _Part) -> Buffer:
    if isinstance(part.content, bytes):
        return memoryview(part.content)[part.start : part.start + part.length]
    try:
        descriptor = os.open(part.content, os.O_RDONLY | os.O_CLOEXEC)
        try:
            raw = os.pread(descriptor, part.length, part.start)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(f"The file {str(part.content)!r} cannot be read: {error.strerror}.") from error
    if len(raw) != part.length:
        raise StorageError(f"The file {str(part.content)!r} became shorter while it was sent; run the call again.")
    return raw
