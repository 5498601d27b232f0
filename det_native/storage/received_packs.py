"""The body of a request with many blobs, taken apart as it comes: each blob is verified and put into a store.

:mod:`det_native.storage.packing` says what such a body consists of.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from det_native.errors import StorageError
from det_native.storage import frames
from det_native.storage.blob_writer import BlobWriter
from det_native.storage.blobs import BlobStore
from det_native.storage.frames import BLOCK_HEADER, BlockHeader, Buffer
from det_native.storage.packing import BLOB, END, MAGIC, RECORD

_FEED = 1 << 20
_DRAIN = 256 << 20
# Blobs that are on their way to an object store.
_AT_ONCE = 16


class PackError(StorageError):
    """A body that is not a pack of blobs, or whose content does not have its hashes."""


class PackTooLargeError(PackError):
    """A body that declares or holds more than the limits allow."""


@dataclass(frozen=True)
class PackLimits:
    """What one body may hold.

    Parameters
    ----------
    blob : int
        Raw bytes of one blob.
    total : int
        Raw bytes of all blobs together.
    count : int
        Number of blobs.
    ratio : float
        Raw bytes allowed for each byte received, beyond `allowance`.
    allowance : int
        Raw bytes that are allowed at any ratio: an array of zeros is no attack.
    """

    blob: int = 1 << 30
    total: int = 2 << 30
    count: int = 200_000
    ratio: float = 200.0
    allowance: int = 128 << 20


DEFAULT_LIMITS = PackLimits()


class Unpacker:
    """Push parser of a body: takes its chunks as they come, verifies every blob, and puts it into a store.

    It holds one block and one chunk in memory, whatever is sent. :meth:`feed` computes and writes, so call it outside
    of an event loop (or use :func:`receive`). Leave it through ``with``, which gives up an unfinished blob.

    Parameters
    ----------
    store : BlobStore
        Where complete blobs go. Those that were complete before an error stay: the next attempt need not send them.
    limits : PackLimits
        What the body may hold.
    """

    def __init__(self, store: BlobStore, limits: PackLimits = DEFAULT_LIMITS) -> None:
        self._store = store
        self._limits = limits
        self._buffer = bytearray()
        self._received = 0
        self._raw = 0
        self._count = 0
        self._writer: BlobWriter | None = None
        self._sha256 = ""
        self._ended = False
        self._pool: ThreadPoolExecutor | None = None
        self._committed: deque[Future[None]] = deque()
        self._step: Callable[[memoryview, list[str]], int] = self._take_magic

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def feed(self, chunk: Buffer) -> list[str]:
        """Take the next chunk, of any size, and return the hashes of the blobs that it completed.

        Raises
        ------
        PackTooLargeError
            A limit is exceeded; raised before the content in question is expanded or stored.
        PackError
            The body does not follow the format, or a blob's content has another hash.
        StorageError
            The store cannot be written.
        """
        self._received += len(chunk)
        self._buffer += chunk
        stored: list[str] = []
        position = 0
        view = memoryview(self._buffer)
        try:
            while position < len(view):
                with view[position:] as rest:
                    taken = self._step(rest, stored)
                if not taken:
                    break
                position += taken
        except frames.FrameError as error:
            raise PackError(str(error)) from error
        finally:
            view.release()
        del self._buffer[:position]
        return stored

    def finish(self) -> None:
        """Say that the body has ended; an error if it should have gone on."""
        if not self._ended:
            raise PackError("The pack of blobs ends early; send it again.")
        self._wait(0)

    def close(self) -> None:
        """Give up an unfinished blob. Safe to call at any time."""
        if self._writer is not None:
            self._writer.abort()
            self._writer = None
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    # Each step returns how many bytes it took from the front of `rest`, 0 if it needs more.

    def _take_magic(self, rest: memoryview, stored: list[str]) -> int:
        if rest[: len(MAGIC)] != MAGIC[: len(rest)]:
            raise PackError("Not a pack of blobs.")
        if len(rest) < len(MAGIC):
            return 0
        self._step = self._take_record
        return len(MAGIC)

    def _take_record(self, rest: memoryview, stored: list[str]) -> int:
        kind = rest[0]
        if kind == ord("E"):
            return self._take_end(rest)
        if kind != ord(BLOB):
            raise PackError("A pack with a record of an unknown kind.")
        if len(rest) < RECORD.size:
            return 0
        _, digest, header = RECORD.unpack_from(rest)
        size = frames.parse_header(header)
        self._admit(size)
        self._sha256 = digest.hex()
        self._writer = self._store.writer(self._sha256, size)
        self._step = self._take_block
        if size == 0:
            self._commit(stored)
        return RECORD.size

    def _take_block(self, rest: memoryview, stored: list[str]) -> int:
        if len(rest) < BLOCK_HEADER.size:
            return 0
        block: BlockHeader = frames.parse_block_header(rest[: BLOCK_HEADER.size])
        end = BLOCK_HEADER.size + block.stored
        if len(rest) < end:
            return 0
        if self._raw + block.raw > self._limits.allowance + self._limits.ratio * self._received:
            raise PackTooLargeError(f"A pack that expands more than {self._limits.ratio:.0f} times.")
        writer = self._writer
        if writer is None:
            raise PackError("A block outside of a blob.")
        with rest[: BLOCK_HEADER.size] as header, rest[BLOCK_HEADER.size : end] as payload:
            raw = writer.checked(block, payload)
            self._raw += block.raw
            writer.write(header, payload, raw)
            if writer.complete:
                self._commit(stored)
        return end

    def _take_end(self, rest: memoryview) -> int:
        if len(rest) < END.size:
            return 0
        _, count = END.unpack_from(rest)
        if count != self._count:
            raise PackError(f"A pack of {self._count} blobs whose end speaks of {count}.")
        self._ended = True
        self._step = self._take_nothing
        return END.size

    def _take_nothing(self, rest: memoryview, stored: list[str]) -> int:
        raise PackError("A pack that goes on after its end.")

    def _admit(self, size: int) -> None:
        self._count += 1
        if self._count > self._limits.count:
            raise PackTooLargeError(f"A pack of more than {self._limits.count} blobs.")
        if size > self._limits.blob:
            raise PackTooLargeError(f"A blob of {size} bytes; at most {self._limits.blob} are allowed.")
        if self._raw + size > self._limits.total:
            raise PackTooLargeError(f"A pack of more than {self._limits.total} raw bytes.")

    def _commit(self, stored: list[str]) -> None:
        if self._writer is None:
            raise PackError("The end of a blob outside of a blob.")
        writer, self._writer = self._writer, None
        if self._store.local:
            with writer:
                writer.commit()
        else:
            self._commit_later(writer)
        stored.append(self._sha256)
        self._step = self._take_record

    def _commit_later(self, writer: BlobWriter) -> None:
        """Put a blob into an object store beside others: each takes a request, and so the time of a way there."""
        writer.hold()
        self._pool = self._pool or ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="det-blobs")
        self._committed.append(self._pool.submit(_committed, writer))
        self._wait(_AT_ONCE)

    def _wait(self, most: int) -> None:
        """Wait until at most so many blobs are on their way; an error of theirs is raised."""
        while len(self._committed) > most:
            self._committed.popleft().result()


def _committed(writer: BlobWriter) -> None:
    with writer:
        writer.commit()


async def receive(chunks: AsyncIterable[Buffer], store: BlobStore, limits: PackLimits = DEFAULT_LIMITS) -> list[str]:
    """Feed a request body to an :class:`Unpacker` in a thread, while the event loop receives what follows.

    Parameters
    ----------
    chunks : async iterable of bytes
        Such as Starlette's ``request.stream()``.
    store : BlobStore
        Where the blobs go.
    limits : PackLimits
        What the body may hold.

    Returns
    -------
    list of str
        The hashes of all blobs, in the order of the body. Raises as :meth:`Unpacker.feed` does.
    """
    stored: list[str] = []
    gathered: list[Buffer] = []
    size = 0
    feeding: asyncio.Future[list[str]] | None = None
    unpacker = Unpacker(store, limits)
    try:
        async for chunk in chunks:
            gathered.append(chunk)
            size += len(chunk)
            if size >= _FEED:
                if feeding is not None:
                    stored += await feeding
                feeding = asyncio.ensure_future(asyncio.to_thread(_feed, unpacker, gathered))
                gathered, size = [], 0
        if feeding is not None:
            stored += await feeding
        stored += await asyncio.to_thread(_feed, unpacker, gathered)
        await asyncio.to_thread(unpacker.finish)
    except StorageError:
        await _drain(chunks)
        raise
    finally:
        if feeding is not None and not feeding.done():
            await asyncio.wait([feeding])
        await asyncio.to_thread(unpacker.close)
    return stored


async def _drain(chunks: AsyncIterable[Buffer]) -> None:
    """Read on for a while: a sender that is cut off in the middle never sees the reason."""
    left = _DRAIN
    async for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            return


def _feed(unpacker: Unpacker, chunks: Iterable[Buffer]) -> list[str]:
    return [sha256 for chunk in chunks for sha256 in unpacker.feed(chunk)]
