"""Experiments that keep their checkpoints in S3: written, continued from, read, collected; keys are shown nowhere."""

from __future__ import annotations

import json
import logging
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fault_proxy import FaultProxy, Network
from master_parts import Master, Worker, configuration, running_master
from s3_server import KEY, S3, SECRET, running_s3

from det_native import PROTOCOL
from det_native.client.command import cli
from det_native.errors import ArgumentError
from det_native.master import space_watch
from det_native.master.config import parse_arguments

Det = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """Run an S3."""
    with running_s3() as server:
        yield server


def storage_at(s3: S3, bucket: str, **policy: int) -> dict[str, Any]:
    return {"type": "url", "url": f"s3://{bucket}/runs", "options": s3.options, **policy}


def refused(master: Master, storage: Any) -> str:
    body = {"protocol": PROTOCOL, "config": configuration(checkpoint_storage=storage), "bundle_id": master.bundle()}
    answer = master.client.post("/api/v1/experiments", json=body)
    assert answer.status_code == 422, answer.text
    return answer.text


def uuids_in(s3: S3, bucket: str) -> set[str]:
    return {key.split("/")[1] for key in s3.sizes(bucket)}


def test_checkpoints_live_in_a_bucket(master: Master, s3: S3, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "det_native")
    bucket = s3.bucket()
    number = master.create({"checkpoint_storage": storage_at(s3, bucket)})["id"]
    job = master.world.wait_for_jobs(1)[-1]
    assert (job.checkpoints, job.checkpoint_options) == (f"s3://{bucket}/runs", s3.options)
    worker = Worker(master, job)
    worker.start()
    made = []
    for batch, loss in ((10, 0.1), (20, 0.3), (30, 0.4), (40, 0.2)):
        worker.validate(batch, loss=loss)
        made.append(worker.checkpoint(batch))
    kept = {made[0], *made[2:]}
    path = f"/experiments/{number}/checkpoints"
    master.until(path, lambda found: {one["uuid"] for one in found if one["state"] == "COMPLETED"} == kept)
    master.until("/master", lambda _: uuids_in(s3, bucket) == kept)
    assert master.client.get(f"/api/v1/checkpoints/{made[0]}/files/weights").text == "weights after 10"
    assert master.client.get(f"/api/v1/checkpoints/{made[0]}/files/weights?offset=8").text == "after 10"
    master.launcher.end(job.run_id, -9, "killed by SIGKILL")
    again = master.world.wait_for_jobs(2)[-1]
    assert again.resume is not None
    assert again.resume.uuid == made[-1]
    later = Worker(master, again)
    later.start(40)
    later.train(41, 100)
    later.exit(batch=100)
    master.until_state(number, "COMPLETED")
    master.until("/master", lambda _: uuids_in(s3, bucket) == {made[0], made[-1]})
    listed = [one for one in master.get(path) if one["state"] == "COMPLETED"]
    in_bucket = {key: size for key, size in s3.sizes(bucket).items() if not key.endswith("manifest.json")}
    assert sum(in_bucket.values()) == sum(one["size"] for one in listed)
    assert master.client.delete(f"/api/v1/checkpoints/{made[0]}").status_code == 200
    assert uuids_in(s3, bucket) == {made[-1]}
    verified = master.client.post(f"/api/v1/checkpoints/{made[-1]}/verify").json()
    assert verified["ok"], verified
    shown = [master.get(f"/experiments/{number}"), master.get("/experiments"), master.get(path)]
    home = master.service.places.home
    files = [file for file in home.rglob("*") if file.is_file() and file.parent.name != "secrets"]
    for text in [json.dumps(shown).encode(), caplog.text.encode(), *(file.read_bytes() for file in files)]:
        assert SECRET.encode() not in text
        assert KEY.encode() not in text
    [secret] = (home / "secrets").iterdir()
    assert secret.stat().st_mode & 0o077 == 0
    assert (home / "secrets").stat().st_mode & 0o077 == 0


def test_a_configuration_that_was_shown_can_be_submitted_again(master: Master, s3: S3) -> None:
    bucket = s3.bucket()
    first = master.create({"checkpoint_storage": storage_at(s3, bucket)})
    shown = first["config"]["checkpoint_storage"]
    assert shown["options"].startswith("<secret ")
    second = master.create({"checkpoint_storage": shown})
    assert second["config"]["checkpoint_storage"] == shown
    assert master.world.wait_for_jobs(2)[-1].checkpoint_options == s3.options
    assert (
        "give it again"
        in master.client.post(
            "/api/v1/experiments",
            json={
                "protocol": PROTOCOL,
                "config": configuration(checkpoint_storage=shown | {"options": "<secret 0123456789abcdef>"}),
                "bundle_id": master.bundle(),
            },
        ).text
    )


def test_the_older_type_s3_and_an_address_alone_go_there_too(
    master: Master, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3.bucket()
    keys = {"access_key": KEY, "secret_key": SECRET, "endpoint_url": s3.endpoint}
    told = master.create({"checkpoint_storage": {"type": "s3", "bucket": bucket, "prefix": "a/b", **keys}})["config"]
    assert told["checkpoint_storage"]["endpoint_url"] == s3.endpoint
    assert SECRET not in json.dumps(told)
    assert KEY not in json.dumps(told)
    job = master.world.wait_for_jobs(1)[-1]
    assert job.checkpoints == f"s3://{bucket}/a/b"
    Worker(master, job).start()
    assert Worker(master, job) is not None
    for name, value in {"ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    plain = master.create({"checkpoint_storage": f"s3://{bucket}/plain"})["config"]["checkpoint_storage"]
    assert (plain["type"], plain["url"], plain["save_trial_best"]) == ("url", f"s3://{bucket}/plain", 1)


def test_a_folder_that_cannot_be_made_is_refused_in_two_sentences(master: Master, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = f"{tmp_path}/file/deep"
    for field, storage in (
        (".host_path", {"type": "shared_fs", "host_path": folder}),
        ("", folder),
        (".container_path", {"type": "directory", "container_path": folder}),
    ):
        answer = json.loads(refused(master, storage))
        (line,) = str(answer["error"]).splitlines()[1:]
        assert line == (
            f"  - checkpoint_storage{field}: Checkpoints cannot be written to {folder}: Not a directory. "
            "Make the bucket or folder, or give checkpoint_storage another address or other keys."
        )


def test_a_server_that_nobody_answers_at_is_refused_when_it_is_submitted(master: Master) -> None:
    with socket.socket() as server:  # bound, and not listening
        server.bind(("127.0.0.1", 0))
        url = f"ftp://127.0.0.1:{server.getsockname()[1]}/x"
        assert f"checkpoint_storage: Checkpoints cannot be written to {url}: Connection refused. Make" in (
            refused(master, url)
        )


def test_what_cannot_be_written_to_is_refused_when_it_is_submitted(
    master: Master, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = refused(master, {"type": "url", "url": "s3://nobody-made-it", "options": s3.options})
    assert "Checkpoints cannot be written to s3://nobody-made-it" in missing
    assert ". Make the bucket or folder, or give checkpoint_storage another address or other keys." in missing
    assert SECRET not in missing
    assert "name or password" in refused(master, "s3://me:word@bucket")
    assert "absolute path" in refused(master, "some/folder")
    assert "cannot be written to at https://" in refused(master, "https://example.org/x")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    assert "pip install 'det-native[s3]'" in refused(master, "s3://bucket/folder")
    assert master.get("/experiments") == []


@pytest.mark.long
def test_a_master_has_a_place_for_all_checkpoints(tmp_path: Path, s3: S3) -> None:
    bucket = s3.bucket()
    settings = parse_arguments(
        ["--home", str(tmp_path / "home"), "--checkpoints", f"s3://{bucket}"],
        {"DET_CHECKPOINTS_OPTIONS": json.dumps(s3.options)},
    )
    assert SECRET not in repr(settings)
    place = {"checkpoint_url": settings.checkpoints, "checkpoint_options": settings.checkpoint_options}
    with running_master(tmp_path / "home", **place) as master:
        told = master.create({"checkpoint_storage": {"save_trial_best": 4}})["config"]["checkpoint_storage"]
        assert (told["url"], told["save_trial_best"]) == (f"s3://{bucket}", 4)
        worker = Worker(master, master.world.wait_for_jobs(1)[-1])
        worker.start()
        uuid = worker.checkpoint(10)
        assert {key.split("/")[0] for key in s3.sizes(bucket)} == {uuid}
    with running_master(tmp_path / "home") as later:  # set up with another place: those stay where they are
        assert later.client.get(f"/api/v1/checkpoints/{uuid}/files/weights").text == "weights after 10"
    for options in ("no json", "[1]"):
        with pytest.raises(ArgumentError, match="DET_CHECKPOINTS_OPTIONS must be a JSON object"):
            parse_arguments([], {"DET_CHECKPOINTS": "s3://b", "DET_CHECKPOINTS_OPTIONS": options})
    with pytest.raises(ArgumentError, match=r"--checkpoints \(DET_CHECKPOINTS\)"):
        parse_arguments(["--checkpoints", "https://example.org"], {})


@pytest.fixture
def det(monkeypatch: pytest.MonkeyPatch) -> Det:
    """Run the command line against a master; return the exit code and what it prints."""

    def run(master: Master, *words: str) -> tuple[int, str]:
        monkeypatch.setenv("DET_TOKEN", master.token)
        done = CliRunner().invoke(cli, ["--master", str(master.client.base_url), *words])
        return done.exit_code, f"{done.output}{done.exception or ''}"

    return run


def trained(master: Master, s3: S3, bucket: str, proxy: FaultProxy) -> tuple[int, str]:
    """Train an experiment whose master reaches the bucket by a proxy; return it and its checkpoint."""
    options = s3.options | {"endpoint_url": f"http://127.0.0.1:{proxy.port}"}
    number = master.create({"checkpoint_storage": {"type": "url", "url": f"s3://{bucket}", "options": options}})["id"]
    worker = Worker(master, master.world.wait_for_jobs(1)[-1])
    worker.start()
    worker.train(1, 100)
    uuid = worker.checkpoint(100)
    worker.exit(batch=100)
    master.until_state(number, "COMPLETED")
    return number, uuid


@pytest.mark.long
def test_a_deletion_says_that_the_storage_cannot_be_reached_and_is_finished_once_it_can(
    tmp_path: Path, s3: S3, det: Det, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space_watch, "_FIRST_SECONDS", 0.2)  # instead of minutes
    monkeypatch.setattr(space_watch, "_PERIOD_SECONDS", 0.2)
    bucket = s3.bucket()
    with FaultProxy(int(s3.endpoint.rpartition(":")[2])) as proxy, running_master(tmp_path / "home") as master:
        number, _ = trained(master, s3, bucket, proxy)
        with proxy.being(Network.REFUSING):
            code, said = det(master, "experiment", "delete", str(number), "--yes")
            assert code == 0
            assert f"Experiment {number} is deleted; its checkpoints at s3://{bucket} cannot be reached now" in said
            assert "and are removed once they can be. The master tries again every few minutes" in said
            assert master.get("/experiments") == []
            assert master.get("/space")["waiting_deletions"] == 1
            assert "1 deleted experiment has files that cannot be removed yet" in det(master, "status")[1]
            assert len(s3.sizes(bucket)) == 2
        master.until("/space", lambda found: found["waiting_deletions"] == 0)
        assert s3.sizes(bucket) == {}
        assert "removed yet" not in det(master, "status")[1]


@pytest.mark.long
def test_who_asks_for_a_checkpoint_hears_soon_that_its_storage_is_silent(
    master: Master, s3: S3, det: Det, tmp_path: Path
) -> None:
    bucket = s3.bucket()
    with FaultProxy(int(s3.endpoint.rpartition(":")[2])) as proxy:
        _, uuid = trained(master, s3, bucket, proxy)
        asked = ("verify", uuid), ("download", uuid, "-o", str(tmp_path / "here"))
        for network, words in zip((Network.HELD, Network.REFUSING), asked, strict=True):
            with proxy.being(network):
                began = time.monotonic()
                code, said = det(master, "checkpoint", *words)
                assert time.monotonic() - began < 25
                assert code == 1
                assert f"The storage s3://{bucket} failed" in said
        assert det(master, "checkpoint", "verify", uuid)[0] == 0
