"""The contract of the blob store, over local folders and fsspec."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.errors import BundleCorruptError, StorageError
from det_native.storage import frames
from det_native.storage.blobs import BlobStore, FileState
from det_native.storage.paths import UnsafePathError
from det_native.storage.put_many import put_many


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


CONTENTS = [b"", b"x", b"text " * 100_000, os.urandom(100_000), os.urandom(3_000_000), bytes(5_000_000)]


@pytest.mark.parametrize("content", CONTENTS, ids=len)
def test_what_is_put_is_read(uri: str, content: bytes) -> None:
    store = BlobStore(uri)
    assert sha(content) not in store
    store.put(sha(content), content)
    assert sha(content) in store
    assert BlobStore(uri).read(sha(content)) == content


def test_missing_keeps_order_and_names_each_once(uri: str) -> None:
    store = BlobStore(uri)
    store.put(sha(b"there"), b"there")
    gone = [sha(b"z"), sha(b"a"), sha(b"m")]
    assert store.missing([gone[0], sha(b"there"), *gone]) == gone


def test_delete_is_final_and_repeatable(uri: str) -> None:
    store = BlobStore(uri)
    store.put(sha(b"x"), b"x")
    store.delete(sha(b"x"))
    store.delete(sha(b"x"))
    assert sha(b"x") not in store
    with pytest.raises(StorageError, match="no blob"):
        store.read(sha(b"x"))


def test_content_with_another_hash_is_refused_and_not_stored(uri: str) -> None:
    store = BlobStore(uri)
    for content in (b"small", os.urandom(2_500_000)):
        with pytest.raises(frames.FrameError, match="has the hash"):
            store.put(sha(b"other"), content)
    assert sha(b"other") not in store


@pytest.mark.parametrize("name", ["../../etc/passwd", "x", "A" * 64])
def test_a_name_that_is_no_hash_is_refused(uri: str, name: str) -> None:
    with pytest.raises(UnsafePathError):
        BlobStore(uri).read(name)


def test_text_is_stored_smaller_and_noise_is_not_compressed(tmp_path: Path) -> None:
    store = BlobStore(str(tmp_path))
    text, noise = b"learning rate, loss\n" * 50_000, os.urandom(1_000_000)
    store.put(sha(text), text)
    store.put(sha(noise), noise)
    sizes = {path.name: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}
    assert sizes[sha(text)] < len(text) / 20
    assert len(noise) < sizes[sha(noise)] < len(noise) + 100


def test_packed_content_is_verified_and_stored_as_it_came(uri: str, tmp_path: Path) -> None:
    content = b"some text " * 300_000
    source = BlobStore(str(tmp_path / "source"))
    source.put(sha(content), content)
    packed = (tmp_path / "source" / sha(content)[:2] / sha(content)).read_bytes()
    store = BlobStore(uri)
    store.put_packed(sha(content), packed)
    assert store.read(sha(content)) == content
    for damaged in (packed[:-1], packed + b"x", packed[:20] + b"\xff" + packed[21:], b"XXXX" + packed[4:]):
        with pytest.raises(StorageError):
            BlobStore(str(tmp_path / "other")).put_packed(sha(content), damaged)
    assert sha(content) not in BlobStore(str(tmp_path / "other"))


@pytest.mark.parametrize("content", [b"small", b"text " * 500_000, os.urandom(2_000_000)], ids=len)
def test_damage_is_found_named_and_healed_by_the_next_upload(tmp_path: Path, content: bytes) -> None:
    store = BlobStore(str(tmp_path))
    store.put(sha(content), content)
    path = tmp_path / sha(content)[:2] / sha(content)
    whole = path.read_bytes()
    places = {0, 5, 12, 14, 18, 21, len(whole) // 2, len(whole) - 1}
    damages = [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in places if place < len(whole)]
    for damaged in (*damages, whole[:-1], whole + b"x", whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(BundleCorruptError, match=sha(content)):
            store.read(sha(content))
        assert store.missing([sha(content)]) == [sha(content)]
        store.put(sha(content), content)
        assert store.read(sha(content)) == content


def test_an_empty_file_left_by_a_power_cut_is_missing(tmp_path: Path) -> None:
    store = BlobStore(str(tmp_path))
    store.put(sha(b"x"), b"x")
    (tmp_path / sha(b"x")[:2] / sha(b"x")).write_bytes(b"")
    assert store.missing([sha(b"x")]) == [sha(b"x")]


def test_write_to_makes_a_new_file_with_its_mode(uri: str, tmp_path: Path) -> None:
    store = BlobStore(uri)
    content = os.urandom(2_200_000)
    store.put(sha(content), content)
    target = tmp_path / "target"
    assert store.write_to(sha(content), target, 0o755) == len(content)
    assert target.read_bytes() == content
    assert target.stat().st_mode & 0o100
    with pytest.raises(StorageError, match="target"):
        store.write_to(sha(content), target)


def test_write_to_follows_no_link_and_leaves_nothing_of_a_damaged_blob(tmp_path: Path) -> None:
    store = BlobStore(str(tmp_path / "store"))
    store.put(sha(b"content"), b"content")
    victim = tmp_path / "victim"
    (tmp_path / "link").symlink_to(victim)
    with pytest.raises(StorageError):
        store.write_to(sha(b"content"), tmp_path / "link")
    assert not victim.exists()
    (tmp_path / "store" / sha(b"content")[:2] / sha(b"content")).write_bytes(b"DNB1 nonsense")
    with pytest.raises(BundleCorruptError):
        store.write_to(sha(b"content"), tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_nothing_half_written_appears(tmp_path: Path) -> None:
    store = BlobStore(str(tmp_path))
    content = os.urandom(3_000_000)
    with store.writer(sha(content), len(content)) as writer:
        header, payload = frames.encode_block(content[: frames.BLOCK])
        writer.write(header, payload, content[: frames.BLOCK])
        assert sha(content) not in store
        with pytest.raises(frames.FrameError, match="ends early"):
            writer.commit()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_leftovers_of_long_ago_are_removed_and_fresh_ones_are_not(tmp_path: Path) -> None:
    store = BlobStore(str(tmp_path))
    store.put(sha(b"x"), b"x")
    old, fresh = tmp_path / ".incoming" / "old", tmp_path / ".incoming" / "fresh"
    old.write_bytes(b"half")
    fresh.write_bytes(b"half")
    os.utime(old, (0, 0))
    store.remove_leftovers()
    assert not old.exists()
    assert fresh.exists()


def test_many_threads_may_put_the_same_blobs(uri: str) -> None:
    contents = [os.urandom(50_000) for _ in range(5)] + [b"t" * 1_500_000]

    def put_all(_: int) -> None:
        store = BlobStore(uri)
        for content in contents:
            store.put(sha(content), content)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put_all, range(4)))
    assert [BlobStore(uri).read(sha(content)) for content in contents] == contents


def test_the_folder_may_be_removed_under_a_running_store(tmp_path: Path) -> None:
    import shutil

    store = BlobStore(str(tmp_path / "store"))
    store.put(sha(b"x"), b"x")
    shutil.rmtree(tmp_path / "store")
    store.put(sha(b"x"), b"x")
    assert store.read(sha(b"x")) == b"x"


def test_a_deposited_file_in_its_known_state_is_copied_and_any_other_is_verified(uri: str, tmp_path: Path) -> None:
    store = BlobStore(uri)
    path = tmp_path / "file"
    content = os.urandom(2_500_000)
    path.write_bytes(content)
    state = FileState.of(path.stat())
    text = b"bytes in memory"
    put_many({sha(content): path, sha(text): text}, {sha(content): state}, store)
    assert store.read(sha(content)) == content
    assert store.read(sha(text)) == text
    path.write_bytes(b"changed since")
    with pytest.raises(StorageError):
        put_many({sha(b"claimed"): path}, {sha(b"claimed"): state}, store)
    assert sha(b"claimed") not in store


@given(noise=st.binary(max_size=60))
def test_random_bytes_are_no_packed_content(noise: bytes) -> None:
    with pytest.raises(frames.FrameError):
        list(frames.read_blocks(frames.reader_of(b"DNB1" + b"\x05\0\0\0\0\0\0\0" + noise)))


def test_a_frame_that_claims_a_huge_size_is_refused_before_it_is_expanded() -> None:
    import zstandard

    frame = zstandard.ZstdCompressor().compress(bytes(50_000_000))
    block = frames.BlockHeader(frames.ZSTD, len(frame), 1000)
    with pytest.raises(frames.FrameError, match="another size"):
        frames.decode_block(block, frame)
