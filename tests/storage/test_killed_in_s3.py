"""Writers that are killed in the middle of an upload to S3 leave nothing that counts, and their parts go later."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from det_harness.trial.publications import Publications
from fault_proxy import FaultProxy, Network
from s3_server import S3, running_s3

from det_native.storage.blobs import BlobStore
from det_native.storage.checkpoints import CheckpointStorage

pytestmark = pytest.mark.slow

UUID = "00000000-0000-4000-8000-000000000001"
SIZE = 64 << 20
# Bytes a second: the upload lasts until its writer is killed.
RATE = 4 << 20
PATIENCE = 60.0

WRITER = """
import hashlib, json, sys
from pathlib import Path
from det_harness.trial.publications import Publications
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.blobs import BlobStore
from det_native.storage.checkpoints import CheckpointStorage

what, uri, options, run, uuid, size = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), *sys.argv[4:7]
if what == "blob":
    store = BlobStore(uri, options)
    file = Path(run) / "file"
    with file.open("wb") as stream:
        stream.truncate(int(size))
    digest = hashlib.file_digest(file.open("rb"), "sha256").hexdigest()
    print("begins", flush=True)
    store.put_file(digest, file)
else:
    storage = CheckpointStorage(uri, options)
    folder = storage.workspace()
    (folder / "small").write_text("small")
    with (folder / "weights").open("wb") as stream:
        stream.truncate(int(size))
    manifest = CheckpointManifest(
        uuid=uuid, framework="torch", framework_version="2", det_version="0", batch=1, experiment_id=1, trial_id=1,
        run_id=Path(run).name, bundle_id="0" * 64, hparams={}, created="2026-01-01T00:00:00Z",
    )
    Publications(Path(run), Path(run).name, uri, options).begin(uuid)
    print("begins", flush=True)
    storage.publish(folder, manifest)
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """Run an S3."""
    with running_s3() as server:
        yield server


def uploads(s3: S3, bucket: str) -> list[str]:
    found = s3.files().call_s3("list_multipart_uploads", Bucket=bucket)
    return [one["Key"] for one in found.get("Uploads") or []]


def killed(what: str, s3: S3, bucket: str, run: Path) -> None:
    """Run a writer, and kill it once an upload in parts has begun; no part of it ever arrives."""
    (run / "spool").mkdir(parents=True)
    with FaultProxy(int(s3.endpoint.rpartition(":")[2])) as proxy, proxy.slow(RATE):
        options = s3.options | {"endpoint_url": f"http://127.0.0.1:{proxy.port}"}
        arguments = [what, f"s3://{bucket}/below", json.dumps(options), str(run), UUID, str(SIZE)]
        environment = {**os.environ, "TMPDIR": str(run)}
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE, env=environment
        ) as process:
            assert process.stdout is not None
            try:
                assert process.stdout.readline() == b"begins\n"
                deadline = time.monotonic() + PATIENCE
                while not uploads(s3, bucket):
                    assert time.monotonic() < deadline
                    assert process.poll() is None
            finally:
                with proxy.being(Network.HELD):
                    process.kill()


@pytest.mark.long
def test_a_killed_checkpoint_is_none_and_its_parts_go_with_the_next_run(s3: S3, tmp_path: Path) -> None:
    bucket = s3.bucket()
    killed("checkpoint", s3, bucket, tmp_path / "runs" / "first")
    storage = CheckpointStorage(f"s3://{bucket}/below", s3.options)
    assert storage.list() == []
    assert uploads(s3, bucket) == [f"below/{UUID}/weights"]
    note = tmp_path / "runs" / ".publishing" / "first.json"
    note.write_text(note.read_text().replace(note.read_text().split('endpoint_url":"')[1].split('"')[0], s3.endpoint))
    Publications(tmp_path / "runs" / "second", "second", storage.uri, s3.options).clean()
    assert (uploads(s3, bucket), s3.sizes(bucket), note.exists()) == ([], {}, False)


@pytest.mark.long
def test_what_no_run_cleans_up_goes_after_a_week_but_not_what_others_have_in_the_bucket(s3: S3, tmp_path: Path) -> None:
    bucket = s3.bucket()
    storage = CheckpointStorage(f"s3://{bucket}", s3.options)
    for key in (f"{UUID}/weights", "videos/of somebody else"):  # moto says of every upload that it was begun in 2010
        s3.files().call_s3("create_multipart_upload", Bucket=bucket, Key=key)
    storage.remove_leftovers()
    assert uploads(s3, bucket) == ["videos/of somebody else"]


@pytest.mark.soak
def test_a_killed_blob_is_none_and_its_parts_go(s3: S3, tmp_path: Path) -> None:
    bucket = s3.bucket()
    killed("blob", s3, bucket, tmp_path / "runs" / "first")
    store = BlobStore(f"s3://{bucket}/below", s3.options)
    assert (list(store.entries()), len(uploads(s3, bucket))) == ([], 1)
    assert store.remove_leftovers() == 1
    assert uploads(s3, bucket) == []
