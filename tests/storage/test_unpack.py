"""A bundle's files in a worker's directory, and bundles that try to get out of it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from det_native.errors import BundleCorruptError, StorageError
from det_native.schema.manifests import BundleManifest, FileEntry, Interpreter, Program
from det_native.storage.blobs import BlobStore
from det_native.storage.unpack import unpack_bundle


def entry(store: BlobStore, path: str, content: bytes, mode: int = 0o644) -> FileEntry:
    sha256 = hashlib.sha256(content).hexdigest()
    store.put(sha256, content)
    return FileEntry(path=path, sha256=sha256, size=len(content), mode=mode)


def bundle(*files: FileEntry) -> BundleManifest:
    program = Program(kind="script", framework="torch", command=("train.py",))
    return BundleManifest(
        protocol=1, interpreter=Interpreter(python="3.11.7", executable="python"), program=program, files=files
    )


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "blobs"))


def test_files_lie_where_the_manifest_says(store: BlobStore, tmp_path: Path) -> None:
    files = [entry(store, f"pkg{index % 3}/sub/m{index}.py", b"x = %d\n" % index) for index in range(200)]
    files += [entry(store, "run.sh", b"#!/bin/sh\n", 0o755), entry(store, "empty", b"")]
    files += [entry(store, "big.bin", os.urandom(6_000_000)), entry(store, "same.bin", b"x = 1\n")]
    into = tmp_path / "new" / "work"
    unpack_bundle(bundle(*files), store, into)
    found = {path.relative_to(into).as_posix(): path for path in into.rglob("*") if path.is_file()}
    assert set(found) == {file.path for file in files}
    for file in files:
        assert hashlib.sha256(found[file.path].read_bytes()).hexdigest() == file.sha256
    assert os.access(found["run.sh"], os.X_OK)
    assert not found["empty"].stat().st_mode & 0o111


def test_a_bundle_without_files_makes_an_empty_directory(store: BlobStore, tmp_path: Path) -> None:
    unpack_bundle(bundle(), store, tmp_path / "work")
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize("path", ["../out", "/tmp/out", "a/../../out", "..\\out", "C:/out", "a\0b", "", "a//b"])
def test_a_path_that_leaves_is_refused_before_anything_is_written(store: BlobStore, tmp_path: Path, path: str) -> None:
    into = tmp_path / "work"
    with pytest.raises(BundleCorruptError, match="outside"):
        unpack_bundle(bundle(entry(store, "good", b"x"), entry(store, path, b"y")), store, into)
    assert not into.exists()
    assert not (tmp_path / "out").exists()


def test_the_same_place_twice_is_refused(store: BlobStore, tmp_path: Path) -> None:
    with pytest.raises(BundleCorruptError, match="twice"):
        unpack_bundle(bundle(entry(store, "a", b"1"), entry(store, "a", b"2")), store, tmp_path / "w")
    with pytest.raises(BundleCorruptError, match="both as a file and as a folder"):
        unpack_bundle(bundle(entry(store, "a", b"1"), entry(store, "a/b", b"2")), store, tmp_path / "w")


def test_a_directory_that_is_not_empty_is_refused(store: BlobStore, tmp_path: Path) -> None:
    into = tmp_path / "work"
    into.mkdir()
    (into / "data").symlink_to("/")
    with pytest.raises(StorageError, match="not empty"):
        unpack_bundle(bundle(entry(store, "data/x", b"x")), store, into)


def test_a_wrong_size_names_the_file(store: BlobStore, tmp_path: Path) -> None:
    wrong = entry(store, "dir/model.py", b"content").model_copy(update={"size": 3})
    with pytest.raises(BundleCorruptError, match=r"dir/model\.py.*7 bytes.*3"):
        unpack_bundle(bundle(wrong), store, tmp_path / "work")
    assert not (tmp_path / "work" / "dir" / "model.py").exists()


def test_a_damaged_blob_names_the_file(store: BlobStore, tmp_path: Path) -> None:
    file = entry(store, "dir/model.py", b"content" * 1000)
    stored = tmp_path / "blobs" / file.sha256[:2] / file.sha256
    content = bytearray(stored.read_bytes())
    content[-1] ^= 1
    stored.write_bytes(content)
    with pytest.raises(BundleCorruptError, match=r"dir/model\.py"):
        unpack_bundle(bundle(file), store, tmp_path / "work")
    assert not (tmp_path / "work" / "dir" / "model.py").exists()


def test_a_missing_blob_names_the_file(store: BlobStore, tmp_path: Path) -> None:
    file = entry(store, "data.csv", b"content")
    store.delete(file.sha256)
    with pytest.raises(StorageError, match=r"data\.csv.*no blob"):
        unpack_bundle(bundle(file), store, tmp_path / "work")


def test_setuid_and_the_like_are_not_set(store: BlobStore, tmp_path: Path) -> None:
    unpack_bundle(bundle(entry(store, "tool", b"x", 0o6755)), store, tmp_path / "work")
    assert (tmp_path / "work" / "tool").stat().st_mode & 0o7000 == 0
