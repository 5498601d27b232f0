"""Blobs in a bucket, seen by a master with a home from before, and by workers with a cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from s3_server import S3, running_s3

from det_native.errors import BundleCorruptError, StorageError
from det_native.schema.manifests import BundleManifest, FileEntry, Interpreter, Program
from det_native.storage.blobs import BlobStore
from det_native.storage.cached_blobs import blobs_of_job
from det_native.storage.shared_blobs import SharedBlobs
from det_native.storage.unpack import unpack_bundle

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """Run an S3."""
    with running_s3() as server:
        yield server


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def put(store: BlobStore, *contents: bytes) -> list[str]:
    for content in contents:
        store.put(digest(content), content)
    return [digest(content) for content in contents]


def test_what_the_home_has_from_before_is_read_there_and_what_is_new_goes_to_the_bucket(s3: S3, tmp_path: Path) -> None:
    bucket = s3.bucket()
    [old] = put(BlobStore(str(tmp_path / "blobs")), b"from before")
    store = SharedBlobs(f"s3://{bucket}/all/blobs", s3.options, tmp_path / "blobs")
    [new] = put(store, b"new" * 100)
    assert list(s3.sizes(bucket)) == [f"all/blobs/{new[:2]}/{new}"]
    assert store.read(old) == b"from before"
    assert store.read(new) == b"new" * 100
    assert (old in store, new in store, "0" * 64 in store) == (True, True, False)
    assert store.missing([old, new]) == [old], "a worker of another machine does not see the home"
    assert store.lost([old, new]) == []
    assert store.place_of([old]) == str(tmp_path / "blobs")
    assert store.place_of([old, new]) == f"s3://{bucket}/all/blobs"
    assert {entry.sha256 for entry in store.entries()} == {old, new}
    generation = store.generation()
    s3.files().rm_file(f"{bucket}/all/blobs/{new[:2]}/{new}")
    assert store.missing([new]) == [], "it was there"
    assert store.lost([new]) == [new]
    assert store.generation() != generation
    for sha256 in (old, new):
        store.delete(sha256)
    assert (old in store, s3.sizes(bucket)) == (False, {})


def test_a_worker_brings_each_blob_once_and_verifies_it(s3: S3, tmp_path: Path) -> None:
    bucket = s3.bucket()
    uri, cache = f"s3://{bucket}/blobs", tmp_path / "cache"
    contents = [os.urandom(3_000_000), b"", *(f"file {number}".encode() for number in range(20))]
    hashes = put(BlobStore(uri, s3.options), *contents)
    files = [
        FileEntry(path=f"{number}", sha256=sha256, size=len(content), mode=0o644)
        for number, (sha256, content) in enumerate(zip(hashes, contents, strict=True))
    ]
    interpreter = Interpreter(python="3.11.7", executable="")
    bundle = BundleManifest(
        protocol=1, interpreter=interpreter, program=Program(kind="cells", framework="torch"), files=files
    )
    unpack_bundle(bundle, blobs_of_job(uri, s3.options, str(cache)), tmp_path / "one")
    assert [(tmp_path / "one" / file.path).read_bytes() for file in files] == contents
    s3.files().rm(bucket, recursive=True)
    near = cache / "blobs" / hashes[2][:2] / hashes[2]
    blobs = blobs_of_job(uri, s3.options, str(cache))
    unpack_bundle(bundle, blobs, tmp_path / "two")
    assert [(tmp_path / "two" / file.path).read_bytes() for file in files] == contents
    near.write_bytes(near.read_bytes()[:-1] + b"x")
    with pytest.raises(StorageError, match=r"cannot be reached|There is no blob"):
        blobs.read(hashes[2])
    assert not near.exists()


def test_a_damaged_object_is_removed_and_a_damaged_copy_brought_anew(s3: S3, tmp_path: Path) -> None:
    bucket = s3.bucket()
    uri = f"s3://{bucket}/blobs"
    one, two = put(BlobStore(uri, s3.options), b"one" * 10, b"two" * 10)
    blobs = blobs_of_job(uri, s3.options, str(tmp_path))
    assert blobs.read(one) == b"one" * 10
    near = tmp_path / "blobs" / one[:2] / one
    near.write_bytes(near.read_bytes()[:-1] + b"x")
    assert blobs.read(one) == b"one" * 10
    name = f"{bucket}/blobs/{two[:2]}/{two}"
    s3.files().pipe_file(name, s3.files().cat_file(name)[:-1] + b"x")
    with pytest.raises(BundleCorruptError, match="submit again"):
        blobs.read(two)
    assert not s3.files().exists(name)


def test_a_full_cache_is_done_without(s3: S3, tmp_path: Path) -> None:
    bucket = s3.bucket()
    uri = f"s3://{bucket}/blobs"
    [sha256] = put(BlobStore(uri, s3.options), b"content")
    (tmp_path / "cache").touch()
    assert blobs_of_job(uri, s3.options, str(tmp_path / "cache")).read(sha256) == b"content"
