"""A store of data in a bucket: files arrive in parts, go on where they were cut off, and count once verified."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from s3_server import S3, running_s3
from small_disks import small_disk

from det_native.errors import DiskFullError, RequestError, StorageError
from det_native.schema.datasets import DataSetCreate, WantedFile
from det_native.schema.manifests import FileEntry
from det_native.storage import parts
from det_native.storage.cached_data import DataCache
from det_native.storage.datasets import PIECE, DataStore
from det_native.storage.linked_data import link_files
from det_native.storage.shared_data import SharedData

pytestmark = pytest.mark.long

PART = 5 << 20
LARGE = os.urandom(2 * PART + 1000)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """Run an S3."""
    with running_s3() as server:
        yield server


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let parts be as small as S3 allows."""
    monkeypatch.setattr(parts, "_LEAST", PART)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def piece(content: bytes, offset: int = 0, sha256: str | None = None) -> bytes:
    head = PIECE.pack(bytes.fromhex(sha256 or digest(content)), len(content), offset, len(content) - offset)
    return head + content[offset:]


def receive(store: DataStore, body: bytes, cut: int | None = None) -> int:
    async def stream() -> AsyncIterator[bytes]:
        whole = body if cut is None else body[:cut]
        for start in range(0, len(whole), 1 << 20):
            yield whole[start : start + (1 << 20)]
        if cut is not None:
            raise ConnectionError

    return asyncio.run(store.receive(stream()))


def entry(content: bytes, path: str = "file") -> FileEntry:
    return FileEntry(path=path, sha256=digest(content), size=len(content), mode=0o644)


def offset_of(store: DataStore, content: bytes, sha256: str | None = None) -> int | None:
    """Return how much of a file has arrived, None if it is there."""
    found = store.missing([WantedFile(sha256=sha256 or digest(content), size=len(content))])
    return found[0].offset if found else None


def uploads(s3: S3, bucket: str) -> list[str]:
    found = s3.files().call_s3("list_multipart_uploads", Bucket=bucket)
    return [one["Key"] for one in found.get("Uploads") or []]


def in_parts(s3: S3, bucket: str, content: bytes) -> str:
    sha256 = digest(content)
    return f"{bucket}/data/contents/{sha256[:2]}/{sha256}"


@pytest.mark.parametrize("restarted", [False, True], ids=["the same master", "another master"])
def test_what_is_cut_off_goes_on_in_the_parts_that_are_there(s3: S3, tmp_path: Path, restarted: bool) -> None:
    bucket = s3.bucket()
    store = SharedData(f"s3://{bucket}/data", s3.options, tmp_path)
    with pytest.raises(ConnectionError):
        receive(store, piece(LARGE), cut=PART + 500_000)
    if restarted:
        store = SharedData(f"s3://{bucket}/data", s3.options, tmp_path)
    arrived = offset_of(store, LARGE)
    assert arrived is not None
    assert PART < arrived <= PART + 500_000
    assert (len(uploads(s3, bucket)), s3.sizes(bucket)) == (1, {})
    assert not store.has(digest(LARGE))
    receive(store, piece(LARGE, arrived))
    assert store.has(digest(LARGE))
    assert s3.files().cat_file(in_parts(s3, bucket, LARGE)) == LARGE
    assert (uploads(s3, bucket), list((tmp_path / "uploads").iterdir())) == ([], [])


@pytest.mark.parametrize("restarted", [False, True], ids=["the same master", "another master"])
def test_what_is_not_what_its_hash_says_never_appears(s3: S3, tmp_path: Path, restarted: bool) -> None:
    bucket = s3.bucket()
    store = SharedData(f"s3://{bucket}/data", s3.options, tmp_path)
    claimed = digest(b"something else")
    with pytest.raises(ConnectionError):
        receive(store, piece(LARGE, sha256=claimed), cut=PART + 500_000)
    if restarted:
        store = SharedData(f"s3://{bucket}/data", s3.options, tmp_path)
    arrived = offset_of(store, LARGE, claimed)
    assert arrived is not None
    with pytest.raises(RequestError, match="changed while it was sent"):
        receive(store, piece(LARGE, arrived, claimed))
    with pytest.raises(RequestError, match="changed while it was sent"):
        receive(store, piece(b"small", sha256=claimed))
    assert (uploads(s3, bucket), s3.sizes(bucket), offset_of(store, LARGE, claimed)) == ([], {}, 0)


def test_a_master_that_is_killed_before_it_has_verified_does_so_later(s3: S3, tmp_path: Path) -> None:
    bucket = s3.bucket()
    store = SharedData(f"s3://{bucket}/data", s3.options, tmp_path)
    receive(store, piece(LARGE))
    (tmp_path / "uploads" / f"{digest(LARGE)}.json").write_text('{"upload": "gone", "part": 5242880}')
    again = SharedData(f"s3://{bucket}/data", s3.options, tmp_path)
    assert (again.has(digest(LARGE)), offset_of(again, LARGE)) == (False, len(LARGE))
    receive(again, piece(LARGE, len(LARGE)))
    assert again.has(digest(LARGE))


def test_sets_of_many_small_files_are_listed_used_and_removed(s3: S3, tmp_path: Path) -> None:
    bucket = s3.bucket()
    old = DataStore(tmp_path)
    receive(old, piece(b"from before"))
    old.create(DataSetCreate(name="old", files=[entry(b"from before")]))
    store = SharedData(f"s3://{bucket}/data", s3.options, tmp_path)
    contents = [b"", *(f"number {number}".encode() for number in range(50))]
    receive(store, b"".join(map(piece, contents)))
    assert [offset_of(store, content) for content in contents] == [None] * 51
    files = [entry(content, f"{number}") for number, content in enumerate(contents)]
    store.create(DataSetCreate(name="numbers", files=files))
    assert [(one.name, one.files) for one in store.sets()] == [("numbers", 51), ("old", 1)]
    again = SharedData(f"s3://{bucket}/data", s3.options, tmp_path)
    assert again.files_of("numbers") == files
    assert {one.size for one in again.find([8, 11])} == {8, 11}
    link_files(files, f"s3://{bucket}/data", tmp_path / "work", s3.options, str(tmp_path / "cache"))
    assert [(tmp_path / "work" / file.path).read_bytes() for file in files] == contents
    again.together([digest(b"from before"), files[3].sha256])
    assert in_parts(s3, bucket, b"from before").partition("/")[2] in s3.sizes(bucket)
    again.remove("numbers")
    again.remove("old")
    assert (s3.sizes(bucket), again.sets()) == ({}, [])
    receive(again, piece(b"in no set"))
    again.drop_left({digest(b"in no set")}, time.time() + 10)
    assert again.has(digest(b"in no set"))
    again.drop_left(set(), time.time() + 10)
    assert s3.sizes(bucket) == {}


def test_what_was_given_up_goes_with_its_parts(s3: S3, tmp_path: Path) -> None:
    bucket = s3.bucket()
    store = SharedData(f"s3://{bucket}/data", s3.options, tmp_path)
    s3.files().call_s3("create_multipart_upload", Bucket=bucket, Key="data/contents/of a home that is gone")
    with pytest.raises(ConnectionError):
        receive(store, piece(LARGE), cut=PART + 500_000)
    store.drop_left(set(), time.time() - 7 * 86_400)  # moto says of every upload that it was begun in 2010
    assert uploads(s3, bucket) == [in_parts(s3, bucket, LARGE).partition("/")[2]], "which goes on"
    store.drop_left(set(), time.time() + 10)
    assert (uploads(s3, bucket), offset_of(store, LARGE)) == ([], 0)


def test_ten_workers_of_a_machine_bring_a_file_once(s3: S3, tmp_path: Path) -> None:
    bucket = s3.bucket()
    store = SharedData(f"s3://{bucket}/data", s3.options, tmp_path / "home")
    receive(store, piece(LARGE))
    partial = tmp_path / "cache" / "partial" / digest(LARGE)
    partial.parent.mkdir(parents=True)
    partial.write_bytes(LARGE[: PART + 5])
    caches = [DataCache(f"s3://{bucket}/data", s3.options, tmp_path / "cache") for _ in range(10)]
    with ThreadPoolExecutor(10) as threads:
        list(threads.map(lambda cache: cache.bring([entry(LARGE)]), caches))
    place = DataStore(tmp_path / "cache").path_of(digest(LARGE))
    assert place.read_bytes() == LARGE
    assert (place.stat().st_mode & 0o777, partial.exists()) == (0o444, False)
    place.unlink()
    partial.write_bytes(b"damaged by a power cut")
    caches[0].bring([entry(LARGE)])
    assert place.read_bytes() == LARGE
    place.unlink()
    name = in_parts(s3, bucket, LARGE)
    s3.files().pipe_file(name, LARGE[:-1] + b"x")
    with pytest.raises(StorageError, match="is not what was brought there"):
        caches[0].bring([entry(LARGE)])
    s3.files().rm_file(name)
    with pytest.raises(StorageError, match="no longer in the cluster's store of data"):
        caches[0].bring([entry(LARGE)])


def test_a_full_disk_is_told_as_that(s3: S3, tmp_path: Path) -> None:
    bucket = s3.bucket()
    store = SharedData(f"s3://{bucket}/data", s3.options, tmp_path)
    receive(store, piece(LARGE))
    with small_disk(tmp_path / "disk"), pytest.raises(DiskFullError, match="No space left"):
        DataCache(f"s3://{bucket}/data", s3.options, tmp_path / "disk" / "cache").bring([entry(LARGE)])


def test_parts_are_as_large_as_the_file_needs() -> None:
    for size in (1, 5 << 30, 1 << 40, 5 << 40):
        assert -(-size // parts.part_size(size)) < parts.MOST_PARTS
