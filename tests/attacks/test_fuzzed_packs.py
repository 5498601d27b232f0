"""Packed blobs and lists of files that nobody of ours made: nothing false is kept, and nothing is written elsewhere."""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from attack_parts import TEXTS, cheaply
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from det_native.errors import BundleCorruptError, StorageError
from det_native.schema.manifests import BundleManifest, FileEntry, Interpreter, Program
from det_native.storage import frames
from det_native.storage.blobs import BlobStore
from det_native.storage.packing import pack
from det_native.storage.received_packs import PackLimits, Unpacker
from det_native.storage.unpack import unpack_bundle

CONTENTS = [b"", b"x", b"line of text\n" * 300, bytes(range(256)) * 20]
PACK = b"".join(pack({hashlib.sha256(content).hexdigest(): content for content in CONTENTS}, threads=1))


def received(body: bytes, step: int, limits: PackLimits | None = None) -> Iterator[bytes]:
    """Yield what a store has kept of a body, after it was refused or taken; nothing lies beside the blobs."""
    with tempfile.TemporaryDirectory() as folder:
        store = BlobStore(os.path.join(folder, "blobs"))
        with cheaply(), Unpacker(store, limits or PackLimits()) as unpacker:
            try:
                for start in range(0, len(body), step):
                    unpacker.feed(body[start : start + step])
                unpacker.finish()
            except StorageError:
                pass
        assert set(os.listdir(folder)) <= {"blobs"}
        for path in Path(folder).rglob("*"):
            assert not path.is_symlink()
            if path.is_file():
                content = store.read(path.name)
                assert hashlib.sha256(content).hexdigest() == path.name
                yield content


CHANGES = st.one_of(
    st.tuples(st.just("flip"), st.integers(0, len(PACK) - 1), st.integers(1, 255)),
    st.tuples(st.just("cut"), st.integers(0, len(PACK)), st.just(0)),
    st.tuples(st.just("double"), st.integers(0, len(PACK)), st.integers(1, 200)),
    st.tuples(st.just("drop"), st.integers(0, len(PACK)), st.integers(1, 200)),
    st.tuples(
        st.just("number"), st.integers(0, len(PACK) - 8), st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1])
    ),
)


@given(changes=st.lists(CHANGES, min_size=1, max_size=4), step=st.sampled_from([7, 61, 1 << 16]))
def test_a_damaged_pack_leaves_only_whole_blobs(changes: list[tuple[str, int, int]], step: int) -> None:
    body = bytearray(PACK)
    for kind, place, value in changes:
        if kind == "flip" and place < len(body):
            body[place] ^= value
        elif kind == "cut":
            del body[place:]
        elif kind == "double":
            body[place:place] = body[place : place + value]
        elif kind == "drop":
            del body[place : place + value]
        elif kind == "number":
            body[place : place + 8] = struct.pack("<Q", value)
    assert set(received(bytes(body), step)) <= set(CONTENTS)


def bomb(raw: int, blocks: int) -> bytes:
    """Return a pack of one blob, small as it travels and large as it is."""
    block = bytes(raw)
    payload = zstandard.ZstdCompressor(level=19).compress(block)
    header = frames.BLOCK_HEADER.pack(frames.ZSTD, len(payload), raw)
    digest = hashlib.sha256(block * blocks).digest()
    return b"DNPACK1\nB" + digest + frames.pack_header(raw * blocks) + (header + payload) * blocks


@pytest.mark.parametrize(
    "body",
    [
        bomb(4 << 20, 200),
        bomb(4 << 20, 1) * 300,
        bomb(1, 1).replace(frames.pack_header(1), frames.pack_header(1 << 62)),
        b"DNPACK1\n" + (b"B" + hashlib.sha256(b"").digest() + frames.pack_header(0)) * 300_000,
        b"DNPACK1\nB" + bytes(32) + frames.pack_header(1 << 29) + frames.BLOCK_HEADER.pack(1, 1 << 22, 1 << 22),
    ],
    ids=["ratio", "many", "size", "count", "block"],
)
def test_a_bomb_is_refused_before_it_is_large(body: bytes) -> None:
    limits = PackLimits(total=256 << 20, allowance=32 << 20, count=1000)
    assert all(len(content) <= 4 << 20 for content in received(body, 1 << 16, limits))


PATHS = (
    st.lists(
        st.sampled_from(
            ["..", ".", "/", "\\", "\0", "C:", "%2e%2e", "%252e%252e", "a", "~", "link", "\u2024\u2024", "\uff0f"]
        )
        | st.text(max_size=3),
        min_size=1,
        max_size=6,
    ).map("/".join)
    | TEXTS
)


@given(
    paths=st.lists(PATHS, min_size=1, max_size=3), mode=st.sampled_from([0o644, 0o7777, 0o120777, 0o60666, -1, 2**40])
)
def test_whatever_a_bundle_names_its_files_they_lie_in_its_folder(paths: list[str], mode: int) -> None:
    content = b"x"
    sha256 = hashlib.sha256(content).hexdigest()
    with tempfile.TemporaryDirectory() as folder:
        store = BlobStore(os.path.join(folder, "blobs"))
        store.put(sha256, content)
        before = snapshot(Path(folder, "blobs"))
        try:
            files = tuple(FileEntry(path=path, sha256=sha256, size=1, mode=mode) for path in paths)
            bundle = BundleManifest(
                protocol=1,
                interpreter=Interpreter(python="3.11.7", executable="python"),
                program=Program(kind="script", framework="torch", command=("train.py",)),
                files=files,
            )
            with cheaply():
                unpack_bundle(bundle, store, Path(folder, "work"))
        except (BundleCorruptError, StorageError, ValidationError):
            assert not Path(folder, "work").exists() or not any(Path(folder, "work").iterdir())
        assert set(os.listdir(folder)) <= {"blobs", "work"}
        assert snapshot(Path(folder, "blobs")) == before
        for path in Path(folder).rglob("*"):
            assert path.is_dir() or path.is_file()
            assert not path.is_symlink()
            assert not path.stat().st_mode & 0o6000  # neither runs as another user


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "sha256", ["../../token", "/etc/passwd", "0" * 63, "A" * 64, "0" * 64 + "\n", "..%2f" + "0" * 59]
)
def test_a_bundle_names_its_contents_by_hashes_only(sha256: str, tmp_path: Path) -> None:
    store = BlobStore(str(tmp_path / "blobs"))
    (tmp_path / "token").write_text("secret")
    with pytest.raises(StorageError):
        store.read(sha256)
    with pytest.raises(StorageError):
        store.put(sha256, b"x")
