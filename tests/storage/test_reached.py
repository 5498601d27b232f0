"""What only the master's machine can see is told on another one, and nothing is written there."""

from __future__ import annotations

import platform
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from det_harness.program.check import check_bundle
from s3_server import S3, running_s3

from det_native import PROTOCOL
from det_native.errors import StorageError
from det_native.master.flow.jobs import marks_of
from det_native.master.flow.places import Places
from det_native.schema.job import CheckJob
from det_native.schema.manifests import BundleManifest, Interpreter, Program
from det_native.storage.reached import check_reached, mark_of


def test_a_folder_is_known_by_its_mark(tmp_path: Path) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    mark = mark_of(str(shared))
    assert mark
    assert mark_of(f"file://{shared}") == mark, "each master finds the same"
    check_reached(str(shared), {}, mark)
    for other in (own, tmp_path / "nowhere" / "deep"):
        with pytest.raises(StorageError, match=f"The machine {platform.node()} does not see the master's folder"):
            check_reached(str(other), {}, mark)
        assert not other.exists()
    mark_of(str(own))
    with pytest.raises(StorageError, match="does not see"):
        check_reached(str(own), {}, mark)


def test_where_nothing_is_known_nothing_is_refused(tmp_path: Path) -> None:
    assert mark_of("s3://bucket/folder") == ""
    (tmp_path / "file").write_text("")
    assert mark_of(str(tmp_path / "file")) == ""
    check_reached(str(tmp_path / "nowhere"), {}, "")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("storage", "checkpoints", "expected"),
    [
        ("", "", []),
        ("", "home/checkpoints", []),
        ("", "nfs", ["nfs"]),
        ("team", "", ["team"]),
        ("team", "team/checkpoints", ["team/checkpoints"]),
        ("team", "nfs", ["nfs", "team"]),
    ],
)
def test_workers_have_to_reach_what_lies_outside_of_the_home(
    tmp_path: Path, storage: str, checkpoints: str, expected: list[str]
) -> None:
    def below(name: str) -> str:
        return str(tmp_path / name) if name else ""

    places = Places(tmp_path / "home", "", (), storage_url=below(storage), several_machines=True)
    marks = marks_of(places, below(checkpoints))
    assert list(marks) == [below(name) for name in expected]
    assert all(marks.values())
    assert marks_of(Places(tmp_path / "home", "", (), storage_url=below(storage)), below(checkpoints)) == {}


def test_a_bundle_is_not_checked_where_its_trials_could_not_run(tmp_path: Path) -> None:
    bundle = BundleManifest(
        protocol=PROTOCOL,
        interpreter=Interpreter(python="3.11.0", executable=""),
        program=Program(kind="cells", framework="torch"),
    )
    folder = str(tmp_path / "folder")
    job = CheckJob(
        protocol=PROTOCOL, directory=str(tmp_path / "run"), blobs=folder, bundle=bundle, marks={folder: "other"}
    )
    result = check_bundle(job)
    [problem] = result.problems
    assert problem.where == "storage"
    assert "does not see the master's folder" in problem.what


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """Run an S3."""
    with running_s3() as server:
        yield server


@pytest.mark.slow
@pytest.mark.long
def test_a_bucket_that_this_machine_may_not_write_to_is_told(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = s3.bucket()
    check_reached(f"s3://{bucket}/all", s3.options, "")
    assert s3.sizes(bucket) == {}
    with pytest.raises(StorageError, match=rf"The machine {platform.node()} cannot write to s3://nobody-made-it/x: .*"):
        check_reached("s3://nobody-made-it/x", s3.options, "")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    with pytest.raises(StorageError, match=r"cannot write to .*: NoCredentialsError: .* keys \(DET_STORAGE_OPTIONS"):
        check_reached(f"s3://{bucket}/all", {"endpoint_url": s3.endpoint}, "")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    away = {**s3.options, "endpoint_url": f"http://127.0.0.1:{port}"}
    check_reached(f"s3://{bucket}/all", away, "")  # that may be over soon
