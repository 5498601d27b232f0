"""The packed form of one blob: a header, then blocks, each a zstd frame or raw.

It is the same on disk and on the wire, so that what was compressed once is stored as it came. Blocks are independent:
any number of threads can make or check them, and no more than a few need be in memory.

=========  =====  ==========================================================
offset     bytes  what
=========  =====  ==========================================================
0          4      ``DNB1``
4          8      size of the raw content (little endian, as all numbers)
12         ...    blocks, until their raw lengths add up to that size
=========  =====  ==========================================================

A block is: 1 byte encoding (0 raw, 1 zstd), 4 bytes stored length, 4 bytes raw length, payload.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

import zstandard

from det_native.errors import StorageError

MAGIC = b"DNB1"
BLOCK = 1 << 20
MAX_BLOCK = 4 << 20
HEADER = struct.Struct("<4sQ")
BLOCK_HEADER = struct.Struct("<BII")
RAW = 0
ZSTD = 1

Buffer = bytes | bytearray | memoryview

_SAMPLE = 16 << 10
_WORTHWHILE = 0.92
_LEVEL = 1


class FrameError(StorageError):
    """Packed content that does not follow the format, or does not have its hash."""


class _Coders(threading.local):
    """A compressor and a decompressor of this thread; they may not be shared between threads."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_coders = _Coders()


class BlockHeader(NamedTuple):
    """What stands before a payload; lengths in bytes."""

    encoding: int
    stored: int
    raw: int


def pack_header(size: int) -> bytes:
    """Return what stands before the blocks of a blob of `size` raw bytes."""
    return HEADER.pack(MAGIC, size)


def parse_header(header: Buffer) -> int:
    """Return the raw size that a blob's header declares."""
    magic, size = HEADER.unpack(header)
    if magic != MAGIC:
        raise FrameError("Not packed content: the first four bytes are not 'DNB1'.")
    return int(size)


def encode_block(raw: Buffer) -> tuple[bytes, Buffer]:
    """Return the header and the payload of one block of at most `MAX_BLOCK` raw bytes.

    Content of which a sample does not shrink, or that does not shrink as a whole, stays raw.
    """
    payload: Buffer = raw
    encoding = RAW
    if _shrinks(raw):
        compressed = _coders.compressor.compress(raw)
        if len(compressed) < len(raw) * _WORTHWHILE:
            payload, encoding = compressed, ZSTD
    return BLOCK_HEADER.pack(encoding, len(payload), len(raw)), payload


def raw_block(raw: Buffer) -> tuple[bytes, Buffer]:
    """Return the header and the payload of a block that is kept raw."""
    return BLOCK_HEADER.pack(RAW, len(raw), len(raw)), raw


def _shrinks(raw: Buffer) -> bool:
    if len(raw) <= 64:
        return False
    if len(raw) <= 4 * _SAMPLE:
        return True
    middle = len(raw) // 2
    sample = memoryview(raw)[middle : middle + _SAMPLE]
    return len(_coders.compressor.compress(sample)) < _SAMPLE * _WORTHWHILE


def parse_block_header(header: Buffer) -> BlockHeader:
    """Return the header of a block, its lengths within what any block may have."""
    block = BlockHeader(*BLOCK_HEADER.unpack(header))
    if block.encoding not in (RAW, ZSTD):
        raise FrameError(f"A block of the unknown encoding {block.encoding}.")
    if not 0 < block.raw <= MAX_BLOCK or not 0 < block.stored <= MAX_BLOCK:
        raise FrameError(
            f"A block of {block.stored} stored and {block.raw} raw bytes; at most {MAX_BLOCK} are allowed."
        )
    if block.encoding == RAW and block.stored != block.raw:
        raise FrameError("A raw block whose two lengths differ.")
    return block


def decode_block(block: BlockHeader, payload: Buffer) -> Buffer:
    """Return the raw content of a block. Never allocates more than the length that its header declares."""
    if len(payload) != block.stored:
        raise FrameError(f"A block of {len(payload)} bytes where {block.stored} were declared.")
    if block.encoding == RAW:
        return payload
    try:
        if zstandard.frame_content_size(payload) != block.raw:
            raise FrameError("A zstd frame of another size than its block declares.")
        raw = _coders.decompressor.decompress(payload, max_output_size=block.raw, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise FrameError(f"A damaged zstd frame: {error}.") from error
    if len(raw) != block.raw:
        raise FrameError("A zstd frame of another size than its block declares.")
    return raw


def read_blocks(read: Callable[[int], Buffer]) -> Iterator[Buffer]:
    """Yield the raw blocks of packed content.

    Parameters
    ----------
    read : callable
        Returns the next `n` bytes, fewer only at the end (as ``BufferedReader.read`` does).

    Raises
    ------
    FrameError
        The content does not follow the format, ends early, or goes on after its end.
    """
    remaining = parse_header(_exactly(read, HEADER.size))
    while remaining:
        block = parse_block_header(_exactly(read, BLOCK_HEADER.size))
        if block.raw > remaining:
            raise FrameError("Packed content with more bytes than its header declares.")
        remaining -= block.raw
        yield decode_block(block, _exactly(read, block.stored))
    if len(read(1)):
        raise FrameError("Packed content that goes on after its end.")


def _exactly(read: Callable[[int], Buffer], count: int) -> Buffer:
    piece = read(count)
    if len(piece) != count:
        raise FrameError("Packed content that ends early.")
    return piece


def reader_of(buffer: Buffer) -> Callable[[int], Buffer]:
    """Return a function that reads `buffer` piece by piece without copying."""
    view = memoryview(buffer)
    position = 0

    def read(count: int) -> memoryview:
        nonlocal position
        piece = view[position : position + count]
        position += len(piece)
        return piece

    return read
