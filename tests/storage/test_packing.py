"""The wire form of many blobs: any chunking, any damage, any excess."""

from __future__ import annotations

import asyncio
import hashlib
import os
import struct
import tempfile
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.errors import StorageError
from det_native.storage import frames
from det_native.storage.blobs import BlobStore
from det_native.storage.packing import pack
from det_native.storage.received_packs import PackError, PackLimits, PackTooLargeError, Unpacker, receive

MAGIC = b"DNPACK1\n"


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def unpack(store: BlobStore, body: bytes, step: int, limits: PackLimits | None = None) -> list[str]:
    with Unpacker(store, limits or PackLimits()) as unpacker:
        stored = [one for start in range(0, len(body), step) for one in unpacker.feed(body[start : start + step])]
        unpacker.finish()
    return stored


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def contents(tmp_path: Path) -> dict[str, Path | bytes]:
    source = tmp_path / "source"
    source.mkdir()
    found: dict[str, Path | bytes] = {}
    for index, content in enumerate([b"", b"x", b"text " * 700_000, os.urandom(2_100_000), b"y" * 1000]):
        (source / str(index)).write_bytes(content)
        found[sha(content)] = source / str(index) if index % 2 else content
    return found


def raw(content: Path | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.read_bytes()


@pytest.mark.parametrize("step", [7_001, 1 << 16, 1 << 30])
def test_blobs_arrive_whole_and_in_order(uri: str, contents: dict[str, Path | bytes], step: int) -> None:
    store = BlobStore(uri)
    assert unpack(store, b"".join(pack(contents)), step) == list(contents)
    for sha256, content in contents.items():
        assert store.read(sha256) == raw(content)


def test_one_byte_at_a_time(tmp_path: Path) -> None:
    small = {sha(content): content for content in (b"", b"a", b"text " * 50)}
    store = BlobStore(str(tmp_path))
    assert unpack(store, b"".join(pack(small)), 1) == list(small)


def test_a_pack_is_much_smaller_than_text(contents: dict[str, Path | bytes]) -> None:
    text = b"a line of a log, 0.125\n" * 400_000
    assert len(b"".join(pack({sha(text): text}))) < len(text) / 20


def test_several_threads_make_the_same_pack_as_one(contents: dict[str, Path | bytes]) -> None:
    assert b"".join(pack(contents, threads=4)) == b"".join(pack(contents, threads=1))


def test_a_pack_given_up_halfway_ends_its_threads() -> None:
    many = {sha(content): content for content in (os.urandom(1_000_000) for _ in range(20))}
    with closing(pack(many, threads=4)) as body:
        next(body)
        next(body)


def test_a_file_that_vanished_or_shrank_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="vanished"):
        list(pack({sha(b"x"): tmp_path / "vanished"}))


@pytest.mark.parametrize("keep", [0, 3, 8, 9, 40, 60, -6, -5, -1])
def test_a_body_that_ends_early_is_refused_and_leaves_nothing_half(tmp_path: Path, keep: int) -> None:
    content = os.urandom(2_000_000)
    body = b"".join(pack({sha(content): content}))
    store = BlobStore(str(tmp_path))
    with pytest.raises(PackError, match="ends early"):
        unpack(store, body[:keep] if keep else b"", 1 << 16)
    assert files_in(tmp_path / ".incoming") == []
    assert all(path.name == sha(content) for path in files_in(tmp_path))


def test_every_flipped_byte_is_refused(tmp_path: Path) -> None:
    content = b"some text to compress " * 40
    body = b"".join(pack({sha(content): content}))
    for place in range(len(body)):
        store = BlobStore(str(tmp_path / str(place)))
        damaged = bytearray(body)
        damaged[place] ^= 0x41
        with pytest.raises(StorageError):
            unpack(store, bytes(damaged), 50)
        if sha(content) in store:
            assert place >= len(body) - 5  # only the count at the end was damaged: the blob itself is right
            assert store.read(sha(content)) == content


@given(noise=st.binary(max_size=200), step=st.integers(1, 50))
def test_noise_is_refused(noise: bytes, step: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with pytest.raises(PackError):
            unpack(BlobStore(folder), MAGIC + b"B" + noise, step)
        assert files_in(Path(folder)) == []


def test_more_after_the_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="goes on"):
        unpack(BlobStore(str(tmp_path)), b"".join(pack({sha(b"x"): b"x"})) + b"x", 1 << 16)


def test_blobs_before_a_damage_stay(tmp_path: Path) -> None:
    first, second = b"first" * 100, b"second" * 100
    body = b"".join(pack({sha(first): first}))[:-5] + b"".join(pack({sha(b"lie"): second}))[len(MAGIC) :]
    store = BlobStore(str(tmp_path))
    with pytest.raises(PackError, match="has the hash"):
        unpack(store, body, 1 << 16)
    assert store.missing([sha(first), sha(b"lie"), sha(second)]) == [sha(b"lie"), sha(second)]


def test_limits_of_size_total_and_count(tmp_path: Path) -> None:
    contents = {sha(bytes([index]) * 1000): bytes([index]) * 1000 for index in range(5)}
    body = b"".join(pack(contents))
    store = BlobStore(str(tmp_path))
    for limits in (PackLimits(blob=999), PackLimits(total=4999), PackLimits(count=4)):
        with pytest.raises(PackTooLargeError):
            unpack(store, body, 1 << 16, limits)
    assert len(unpack(store, body, 1 << 16, PackLimits(blob=1000, total=5000, count=5))) == 5


def test_a_declared_size_is_refused_before_a_byte_of_it_has_come(tmp_path: Path) -> None:
    head = MAGIC + struct.pack("<c32s", b"B", bytes(32)) + frames.pack_header(1 << 60)
    with Unpacker(BlobStore(str(tmp_path))) as unpacker, pytest.raises(PackTooLargeError):
        unpacker.feed(head)


def test_a_bomb_is_refused_and_an_array_of_zeros_is_not(tmp_path: Path) -> None:
    zeros = bytes(30_000_000)
    body = b"".join(pack({sha(zeros): zeros}))
    assert len(body) < 10_000
    limits = PackLimits(allowance=10_000_000)
    with pytest.raises(PackTooLargeError, match="expands"):
        unpack(BlobStore(str(tmp_path / "bomb")), body, 1 << 16, limits)
    assert unpack(BlobStore(str(tmp_path / "zeros")), body, 1 << 16) == [sha(zeros)]


def test_a_block_longer_than_allowed_is_refused_at_once(tmp_path: Path) -> None:
    head = MAGIC + struct.pack("<c32s", b"B", bytes(32)) + frames.pack_header(1 << 29)
    block = frames.BLOCK_HEADER.pack(frames.ZSTD, 1 << 28, 1 << 28)
    with Unpacker(BlobStore(str(tmp_path))) as unpacker, pytest.raises(PackError, match="at most"):
        unpacker.feed(head + block)


def test_memory_stays_bounded_for_a_large_blob(tmp_path: Path) -> None:
    import tracemalloc

    source = tmp_path / "large"
    with source.open("wb") as stream:
        digest = hashlib.sha256()
        for _ in range(60):
            piece = os.urandom(1 << 20)
            digest.update(piece)
            stream.write(piece)
    tracemalloc.start()
    with Unpacker(BlobStore(str(tmp_path / "store"))) as unpacker:
        for chunk in pack({digest.hexdigest(): source}, threads=2):
            unpacker.feed(chunk)
        unpacker.finish()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30 << 20


def test_a_body_is_received_while_it_comes(uri: str, contents: dict[str, Path | bytes]) -> None:
    async def chunks(body: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(body), 50_000):
            yield body[start : start + 50_000]
            await asyncio.sleep(0)

    body = b"".join(pack(contents))
    store = BlobStore(uri)
    assert asyncio.run(receive(chunks(body), store)) == list(contents)
    assert store.missing(contents) == []
    with pytest.raises(PackError):
        asyncio.run(receive(chunks(body[:-1]), store))
    with pytest.raises(PackTooLargeError):
        asyncio.run(receive(chunks(body), store, PackLimits(count=1)))
