"""Checkpoints in a bucket of S3, over real HTTP."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from s3_server import S3, SECRET, running_s3

from det_native.errors import CheckpointCorruptError, CheckpointNotFoundError, MissingDependencyError, StorageError
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.checkpoints import CheckpointStorage


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """Run an S3."""
    with running_s3() as server:
        yield server


def described(number: int, batch: int = 1) -> CheckpointManifest:
    return CheckpointManifest(
        uuid=f"00000000-0000-4000-8000-{number:012d}",
        framework="torch",
        framework_version="2",
        det_version="0",
        batch=batch,
        experiment_id=1,
        trial_id=1,
        run_id="r",
        bundle_id="0" * 64,
        hparams={},
        created="2026-01-01T00:00:00Z",
    )


def published(storage: CheckpointStorage, number: int, like: CheckpointManifest | None = None) -> CheckpointManifest:
    folder = storage.workspace()
    (folder / "weights").write_bytes(b"weights" * 1000)
    (folder / "code").mkdir()
    (folder / "code" / "model.py").write_text(f"number = {number}")
    location, manifest = storage.publish(folder, described(number), like=like)
    assert location == f"{storage.uri}/{manifest.uuid}"
    assert not folder.exists()
    return manifest


def test_a_checkpoint_goes_to_a_bucket_and_comes_back(s3: S3, tmp_path: Path) -> None:
    bucket = s3.bucket()
    storage = CheckpointStorage(f"s3://{bucket}/deep/folder", s3.options)
    first = published(storage, 1)
    second = published(storage, 2, like=first)
    assert [one.uuid for one in storage.list()] == [first.uuid, second.uuid]
    storage.verify(second)
    storage.fetch(second.uuid, tmp_path / "into", second.sha256)
    assert (tmp_path / "into" / "weights").read_bytes() == b"weights" * 1000
    assert (tmp_path / "into" / "code" / "model.py").read_text() == "number = 2"
    again = CheckpointStorage(f"s3://{bucket}/deep/folder", s3.options)
    again.delete(first.uuid)
    assert [one.uuid for one in storage.list()] == [second.uuid]
    assert all(key.startswith(f"deep/folder/{second.uuid}/") for key in s3.sizes(bucket))


def test_an_object_that_is_changed_or_gone_is_named(s3: S3) -> None:
    bucket = s3.bucket()
    storage = CheckpointStorage(f"s3://{bucket}", s3.options)
    manifest = published(storage, 1)
    s3.files().pipe_file(f"{bucket}/{manifest.uuid}/weights", b"WEIGHTS" * 1000)
    with pytest.raises(CheckpointCorruptError, match="weights"):
        storage.verify(manifest)
    s3.files().rm_file(f"{bucket}/{manifest.uuid}/weights")
    with pytest.raises(CheckpointCorruptError, match="weights"):
        storage.check(manifest)
    storage.delete(manifest.uuid)
    with pytest.raises(CheckpointNotFoundError):
        storage.manifest(manifest.uuid)
    assert s3.sizes(bucket) == {}


def test_where_nothing_can_be_written_is_one_sentence(s3: S3) -> None:
    bucket = s3.bucket()
    CheckpointStorage(f"s3://{bucket}/folder", s3.options).check_writable()
    assert s3.sizes(bucket) == {}
    with pytest.raises(StorageError, match=r"Checkpoints cannot be written to s3://nobody-made-it/x: .*does not exist"):
        CheckpointStorage("s3://nobody-made-it/x", s3.options).check_writable()
    assert not s3.files().exists("nobody-made-it")
    with pytest.raises(StorageError, match=r"unexpected keyword argument .not-an-option") as told:
        CheckpointStorage(f"s3://{bucket}", {"secret": SECRET, "not-an-option": SECRET}).check_writable()
    assert SECRET not in str(told.value)


def test_a_package_that_is_missing_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    import fsspec  # noqa: F401

    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(MissingDependencyError, match=r"pip install 'det-native\[s3\]'"):
        CheckpointStorage("s3://bucket/folder")
