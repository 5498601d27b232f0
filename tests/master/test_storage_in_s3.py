"""A master whose bundles, written files, data and checkpoints lie in S3: what it answers, and how often it asks."""

from __future__ import annotations

import hashlib
import json
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_proxy import FaultProxy, Network
from master_parts import Master, Worker, manifest, running_master
from s3_server import KEY, S3, SECRET, running_s3

from det_native.client.starting import _environment
from det_native.errors import ArgumentError, MasterStartError
from det_native.master import kept_settings
from det_native.master.config import parse_arguments
from det_native.master.flow.unneeded_blobs import NEW_SECONDS
from det_native.schema.home import Home
from det_native.storage.blobs import BlobStore
from det_native.storage.packing import pack

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """Run an S3."""
    with running_s3() as server:
        yield server


def place(s3: S3, bucket: str, port: int | None = None) -> dict[str, Any]:
    endpoint = {} if port is None else {"endpoint_url": f"http://127.0.0.1:{port}"}
    return {"storage_url": f"s3://{bucket}/all", "storage_options": s3.options | endpoint}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def bundle_of(*contents: bytes) -> dict[str, Any]:
    files = [
        {"path": f"{number}.py", "sha256": digest(content), "size": len(content), "mode": 0o644}
        for number, content in enumerate(contents)
    ]
    return {**manifest().content(), "files": files}


def send(master: Master, *contents: bytes) -> str:
    """Send a bundle as a client does; return its id."""
    hashes = {digest(content): content for content in contents}
    missing = master.client.post("/api/v1/blobs/missing", json={"hashes": list(hashes)}).json()["hashes"]
    if missing:
        body = b"".join(pack({sha256: hashes[sha256] for sha256 in missing}))
        master.client.post("/api/v1/blobs", content=body).raise_for_status()
    answer = master.client.post("/api/v1/bundles", json=bundle_of(*contents))
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def test_bundles_go_there_and_one_that_is_known_costs_no_request(tmp_path: Path, s3: S3) -> None:
    bucket = s3.bucket()
    contents = [f"x = {number}".encode() for number in range(40)]
    with (
        FaultProxy(int(s3.endpoint.rpartition(":")[2])) as proxy,
        running_master(tmp_path / "home", **place(s3, bucket, proxy.port)) as master,
    ):
        bundle_id = send(master, *contents)
        assert len([key for key in s3.sizes(bucket) if key.startswith("all/blobs/")]) == 40
        before = proxy.passed
        for _ in range(3):
            assert send(master, *contents) == bundle_id
            assert master.get(f"/bundles/{bundle_id}/created")["id"] == bundle_id
        assert proxy.passed == before
        master.create(bundle_id=bundle_id)
        jobs = master.world.wait_for_jobs(1)
        assert {(job.blobs, job.outputs, job.data) for job in jobs} == {
            (f"s3://{bucket}/all/blobs", f"s3://{bucket}/all/blobs", f"s3://{bucket}/all/data")
        }
        assert jobs[0].storage_options == master.service.places.storage_options
        assert jobs[0].checkpoints == f"s3://{bucket}/all/checkpoints"
        assert SECRET not in repr(jobs[0])
        assert SECRET not in repr(master.service.places)
    with running_master(tmp_path / "home", **place(s3, bucket)) as master:
        assert master.get(f"/bundles/{bundle_id}/created")["id"] == bundle_id
        one = digest(contents[0])
        assert master.client.get(f"/api/v1/blobs/{one}").content == contents[0]
        s3.files().rm_file(f"{bucket}/all/blobs/{one[:2]}/{one}")
        assert master.service.blobs.lost([one]) == [one], "as a check finds that failed for it"
        assert master.client.get(f"/api/v1/bundles/{bundle_id}/created").status_code == 404
        send(master, *contents)
        assert master.get(f"/bundles/{bundle_id}/created")["id"] == bundle_id


@pytest.mark.long
def test_what_the_home_has_from_before_goes_on_there(tmp_path: Path, s3: S3) -> None:
    bucket = s3.bucket()
    with running_master(tmp_path / "home") as master:
        old = send(master, b"old = 1", b"shared = 1")
        number = master.create(bundle_id=old)["id"]
        worker = Worker(master, master.world.wait_for_jobs(1)[-1])
        worker.start()
        uuid = worker.checkpoint(10)
        report(worker, b"written before")
        launcher = master.launcher
    with running_master(tmp_path / "home", launcher=launcher, **place(s3, bucket)) as master:
        assert written(master, 1, "log.csv") == b"written before"
        assert master.client.get(f"/api/v1/checkpoints/{uuid}/files/weights").text == "weights after 10"
        home = tmp_path / "home"
        worker.master = master
        launcher.end(worker.job.run_id, -9, "killed by SIGKILL")
        again = master.world.wait_for_jobs(2)[-1]
        assert (again.blobs, again.outputs) == (str(home / "blobs"), f"s3://{bucket}/all/blobs")
        assert again.checkpoints == str(home / "checkpoints")
        new = send(master, b"new = 1", b"shared = 1")
        master.create(bundle_id=new)
        assert master.world.wait_for_jobs(3)[-1].blobs == f"s3://{bucket}/all/blobs"
        later = Worker(master, again)
        later.start(10)
        report(later, b"written after")
        later.exit(batch=100)
        assert written(master, 1, "log.csv") == b"written after"
        assert digest(b"written after") in "".join(s3.sizes(bucket))
        assert master.get(f"/experiments/{number}")["id"] == number


def report(worker: Worker, content: bytes) -> None:
    job = worker.job
    BlobStore(job.outputs or job.blobs, job.storage_options).put(digest(content), content)
    file = {"path": "log.csv", "sha256": digest(content), "size": len(content), "batch": 1}
    worker.send({"type": "artifacts", "files": [file], "removed": []})


def written(master: Master, trial: int, path: str) -> bytes:
    answer = master.client.get(f"/api/v1/trials/{trial}/artifacts/content", params={"path": path})
    assert answer.status_code == 200, answer.text
    return answer.content


@pytest.mark.long
def test_files_go_with_their_experiment_and_what_nobody_needs_is_cleaned(
    tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3.bucket()
    with running_master(tmp_path / "home", **place(s3, bucket)) as master:
        number = master.create(bundle_id=send(master, b"mine = 1"))["id"]
        worker = Worker(master, master.world.wait_for_jobs(1)[-1])
        worker.start()
        report(worker, b"a log")
        worker.checkpoint(10)
        worker.exit(batch=100)
        master.until_state(number, "COMPLETED")
        freed = master.client.delete(f"/api/v1/experiments/{number}").json()
        assert (freed["blobs"], freed["checkpoints"]) == (2, 1)
        assert s3.sizes(bucket) == {}
        send(master, b"nobody = 1")
        s3.files().call_s3("create_multipart_upload", Bucket=bucket, Key="all/blobs/00/of a worker that was killed")
        body = {"kinds": ["blobs", "uploads"], "dry_run": False}
        done = master.client.post("/api/v1/space/clean", json=body).json()
        assert [kind["count"] for kind in done["kinds"]] == [0, 1], "a new blob may be on its way to an experiment"
        assert "Uploads" not in s3.files().call_s3("list_multipart_uploads", Bucket=bucket)
        monkeypatch.setattr("det_native.master.flow.unneeded_blobs.NEW_SECONDS", -NEW_SECONDS)
        monkeypatch.setattr(master.service.guard, "_until", {})
        with master.service.database.write() as transaction:
            transaction.connection.exec_driver_sql("DELETE FROM bundles")
        done = master.client.post("/api/v1/space/clean", json={"kinds": ["blobs"], "dry_run": False}).json()
        assert done["kinds"][0]["count"] == 1
        assert s3.sizes(bucket) == {}


def test_a_storage_that_cannot_be_used_is_told_at_the_start(tmp_path: Path, s3: S3) -> None:
    cases = {
        "does not exist": place(s3, "nobody-made-it"),
        "Connection refused|Could not connect": place(s3, "x", _closed_port()),
    }
    for said, where in cases.items():
        with pytest.raises(MasterStartError, match=said) as told, running_master(tmp_path / "home", **where):
            pass
        assert "The storage s3://" in str(told.value)
        assert "--storage" in str(told.value)
        assert SECRET not in str(told.value)
        assert "\n" not in str(told.value)


@pytest.mark.long
def test_a_wrong_key_is_told_at_the_start(tmp_path: Path) -> None:
    with running_s3(free_requests=0) as strict, pytest.raises(MasterStartError) as told:
        build_with(tmp_path / "home", **place(strict, "any"))
    assert "The AWS Access Key Id you provided does not exist in our records. Make the bucket" in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.long
def test_a_silent_storage_is_told_at_the_start_soon(tmp_path: Path, s3: S3) -> None:
    with FaultProxy(int(s3.endpoint.rpartition(":")[2])) as proxy, proxy.being(Network.SILENT):
        began = time.monotonic()
        with pytest.raises(MasterStartError, match="The storage s3://any/all cannot be used: ") as told:
            build_with(tmp_path / "home", **place(s3, "any", proxy.port))
        assert time.monotonic() - began < 20
        assert "\n" not in str(told.value)


def build_with(home: Path, **where: Any) -> None:
    with running_master(home, **where):
        pass


@pytest.mark.long
def test_a_storage_that_is_silent_later_holds_no_decision_up(
    tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("det_native.master.flow.lost_files._UNREACHABLE_SECONDS", 0.5)
    bucket = s3.bucket()
    said = {"type": "StorageError", "message": "The storage is away", "traceback": "", "batch": 0}
    with (
        FaultProxy(int(s3.endpoint.rpartition(":")[2])) as proxy,
        running_master(tmp_path / "home", **place(s3, bucket, proxy.port)) as master,
    ):
        bundle = send(master, b"x = 1")
        number = master.create(bundle_id=bundle)["id"]
        [job] = master.world.wait_for_jobs(1)
        worker = Worker(master, job)
        worker.start()
        with proxy.being(Network.SILENT):
            worker.send({"type": "exit", "reason": "HARNESS_ERROR", "batch": 0, "error": said, "early": False})
            began = time.monotonic()
            master.launcher.end(job.run_id, 1)
            master.until(f"/trials/{job.trial_id}", lambda trial: trial["state"] == "QUEUED")
            for _ in range(3):  # each is a decision
                master.client.post(f"/api/v1/experiments/{number}/pause").raise_for_status()
                master.client.post(f"/api/v1/experiments/{number}/resume").raise_for_status()
            assert time.monotonic() - began < 6
            assert "waits for the storage of its bundle" in master.get(f"/experiments/{number}")["notice"]
        again = master.world.wait_for_jobs(2)[1]
        assert master.get(f"/trials/{job.trial_id}")["restarts"] == 0
        worker = Worker(master, again)
        worker.start()
        with proxy.being(Network.SILENT):  # a second time it is told as what it is
            worker.send({"type": "exit", "reason": "HARNESS_ERROR", "batch": 0, "error": said, "early": False})
            master.launcher.end(again.run_id, 1)
            master.until(f"/trials/{job.trial_id}", lambda trial: trial["restarts"] == 1)


def _closed_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


@pytest.mark.long
def test_a_storage_that_is_away_later_is_told_to_who_asks(
    tmp_path: Path, s3: S3, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "det_native")
    bucket = s3.bucket()
    with (
        FaultProxy(int(s3.endpoint.rpartition(":")[2])) as proxy,
        running_master(tmp_path / "home", **place(s3, bucket, proxy.port)) as master,
    ):
        sent = send(master, b"x = 1")
        with proxy.being(Network.REFUSING):
            refused = master.client.post("/api/v1/blobs/missing", json={"hashes": ["0" * 64]})
            assert refused.status_code == 424
            assert refused.json()["error"].startswith(f"The storage s3://{bucket}/all failed: EndpointConnectionError")
            assert master.get("/master")["home"]
            assert master.service.outage.lasts is False
        master.create(bundle_id=sent)
        assert master.client.post("/api/v1/blobs/missing", json={"hashes": ["0" * 64]}).status_code == 200
        home = tmp_path / "home"
        files = [file for file in home.rglob("*") if file.is_file() and file.parent.name != "secrets"]
        shown = [json.dumps(master.get(path)) for path in ("/master", "/experiments", "/experiments/1", "/space")]
        for text in [*(one.encode() for one in shown), caplog.text.encode(), *(file.read_bytes() for file in files)]:
            assert SECRET.encode() not in text
            assert KEY.encode() not in text


def test_a_home_remembers_its_storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)
    assert kept_settings.settle(home, "", {}) == ("", {})
    assert kept_settings.settle(home, "s3://a/b", {"key": "1"}) == ("s3://a/b", {"key": "1"})
    assert kept_settings.settle(home, "", {}) == ("", {}), "one that does not work is not kept"
    monkeypatch.setenv("DET_SMTP_URL", "")
    kept_settings.keep(home, kept_settings.settle_variables(home), storage=("s3://a/b", {"key": "1"}))
    assert kept_settings.settle(home, "", {}) == ("s3://a/b", {"key": "1"})
    assert kept_settings.settle(home, "s3://a/b", {"key": "2"}) == ("s3://a/b", {"key": "2"})
    with pytest.raises(MasterStartError, match="lie at s3://a/b: start with that, or copy all below it to s3://other"):
        kept_settings.settle(home, "s3://other", {})
    [file] = (tmp_path / "secrets").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    settings = parse_arguments(["--storage", "s3://b/c"], {"DET_STORAGE_OPTIONS": json.dumps({"key": SECRET})})
    assert (settings.storage, settings.storage_options) == ("s3://b/c", {"key": SECRET})
    assert SECRET not in repr(settings)
    with pytest.raises(ArgumentError, match=r"--storage \(DET_STORAGE\)"):
        parse_arguments(["--storage", "https://example.org"], {})
    with pytest.raises(ArgumentError, match="DET_STORAGE_OPTIONS must be a JSON object"):
        parse_arguments([], {"DET_STORAGE": "s3://b", "DET_STORAGE_OPTIONS": "[1]"})
    for name in ("DET_STORAGE", "DET_STORAGE_OPTIONS", "DET_CHECKPOINTS"):
        monkeypatch.setenv(name, "x")
        assert _environment()[name] == "x"
