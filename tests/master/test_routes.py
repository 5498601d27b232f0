"""Answers and refusals of the routes."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from master_parts import Master, Worker, configuration, manifest
from sqlalchemy.exc import OperationalError

from det_native import PROTOCOL
from det_native.client import http_source
from det_native.client.command import cli
from det_native.errors import BundleCorruptError
from det_native.master.store import trials
from det_native.schema.rest import ErrorBody, MetricSeries
from det_native.schema.states import ExperimentState
from det_native.storage.blobs import BlobStore
from det_native.storage.packing import CONTENT_TYPE, pack


def body(master: Master, **changes: Any) -> dict[str, Any]:
    return {"protocol": PROTOCOL, "config": configuration(), "bundle_id": master.bundle(), **changes}


def refused(answer: Any, status: int) -> ErrorBody:
    assert answer.status_code == status, answer.text
    return ErrorBody.model_validate(answer.json())


def test_a_repeat_with_the_same_key_is_the_same_experiment(master: Master) -> None:
    first, second = (
        master.client.post("/api/v1/experiments", json=body(master), headers={"Idempotency-Key": "k1"})
        for _ in range(2)
    )
    assert first.status_code == second.status_code == 201
    assert first.json()["id"] == second.json()["id"]
    assert len(master.get("/experiments")) == 1
    other = master.client.post("/api/v1/experiments", json=body(master, test=True), headers={"Idempotency-Key": "k1"})
    assert "another body" in refused(other, 409).error


def test_every_problem_of_a_configuration_is_told(master: Master) -> None:
    config = configuration(searcher={"metric": None}, max_restarts=-1, nonsense=1)
    told = refused(master.client.post("/api/v1/experiments", json=body(master, config=config)), 422)
    assert {"max_restarts", "nonsense"} <= {problem.where for problem in told.problems}
    assert master.get("/experiments") == []


def test_what_comes_later_is_refused_by_name(master: Master) -> None:
    config = configuration(data_layer={"type": "s3", "bucket": "records", "bucket_directory_path": "x"})
    told = refused(master.client.post("/api/v1/experiments", json=body(master, config=config)), 422)
    assert "data_layer: s3 (shared_fs, a folder that all machines see, works now)" in told.error


def test_more_slots_than_there_are_is_refused_with_what_to_do(master: Master) -> None:
    config = configuration(resources={"slots_per_trial": 3})
    told = refused(master.client.post("/api/v1/experiments", json=body(master, config=config)), 400)
    assert "3 slots for each trial, but the cluster has 2 slots" in told.error
    assert "`det up --slots 3`" in told.error
    assert master.get("/experiments") == []


def test_horovod_that_is_not_there_is_refused_with_what_to_run(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    horovod = {"distributed": {"backend": "horovod"}}
    monkeypatch.setitem(sys.modules, "horovod", None)  # as where it is not installed
    asked = body(master, config=configuration(resources={"slots_per_trial": 2}, **horovod))
    told = refused(master.client.post("/api/v1/experiments", json=asked), 422)
    assert f"which is not installed in the Python that trains ({sys.executable})" in told.error
    command = told.error.partition("run  ")[2].partition("  (")[0].split()
    assert command[:2] == [f"VENV={sys.prefix}", "sh"]
    assert "pip wheel" in Path(command[2]).read_text()
    assert master.get("/experiments") == []
    alone = body(master, config=configuration(**horovod))
    assert master.client.post("/api/v1/experiments", json=alone).status_code == 201


@pytest.mark.long
@pytest.mark.parametrize(("packages", "status"), [({"torch": "2"}, 422), ({"torch": "2", "horovod": "0.28.1"}, 201)])
def test_horovod_is_looked_for_in_the_python_of_the_workers(
    master: Master, tmp_path: Path, packages: dict[str, str], status: int
) -> None:
    python = tmp_path / "other" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch(0o700)
    described = manifest()
    interpreter = described.interpreter.model_copy(update={"executable": str(python), "packages": packages})
    sent = described.model_copy(update={"interpreter": interpreter}).model_dump(mode="json")
    bundle = master.client.post("/api/v1/bundles", json=sent).json()["id"]
    config = configuration(resources={"slots_per_trial": 2}, distributed={"backend": "horovod"})
    answer = master.client.post("/api/v1/experiments", json=body(master, config=config, bundle_id=bundle))
    assert answer.status_code == status, answer.text
    if status == 422:
        assert f"({python}): run  VENV={tmp_path / 'other'} sh " in refused(answer, 422).error


def test_other_refusals_of_an_experiment(master: Master) -> None:
    for changes, status in (
        ({"protocol": PROTOCOL + 1}, 426),
        ({"bundle_id": "0" * 64}, 404),
        ({"config": configuration(name="\ud800")}, 422),
        ({"config": configuration(data={"x": ["\ud800"]})}, 422),
        ({"extra": 1}, 422),
    ):
        content = json.dumps(body(master, **changes))
        headers = {"Content-Type": "application/json"}
        refused(master.client.post("/api/v1/experiments", content=content, headers=headers), status)
    refused(master.client.post("/api/v1/experiments", content=b"{", headers={"Content-Type": "application/json"}), 422)


@pytest.mark.long
def test_unknown_things_are_not_found(master: Master) -> None:
    for path in ("/experiments/9", "/trials/9", "/trials/9/metrics", "/trials/9/series?name=x", "/trials/9/logs"):
        refused(master.client.get(f"/api/v1{path}"), 404)
    for path in (
        "/checkpoints/x",
        "/checkpoints/x/files/y",
        f"/bundles/{'0' * 64}",
        f"/blobs/{'0' * 64}",
        "/events?experiment_id=9",
    ):
        refused(master.client.get(f"/api/v1{path}"), 404)
    refused(master.client.post("/api/v1/experiments/9/kill"), 404)
    refused(master.client.post(f"/api/v1/bundles/{'0' * 64}/check"), 404)
    refused(master.client.get("/api/v1/experiments/99999999999999999999"), 422)
    refused(master.client.delete("/api/v1/experiments"), 405)


@pytest.mark.long
def test_experiments_are_listed_newest_first_in_pages(master: Master) -> None:
    ids = [master.create()["id"] for _ in range(3)]
    assert [one["id"] for one in master.get("/experiments", limit=2)] == ids[:0:-1]
    assert [one["id"] for one in master.get("/experiments", before=ids[1])] == ids[:1]


def test_the_capture_report_is_kept(master: Master) -> None:
    row = {"what": "cell 3", "how": "source", "size": 9, "cell": "3", "status": "new", "note": ""}
    experiment = master.create(report=[row])
    assert master.get(f"/experiments/{experiment['id']}")["report"] == [row]
    assert "report" not in experiment


def test_blobs_come_packed_and_go_raw(master: Master) -> None:
    import hashlib

    content = {hashlib.sha256(text).hexdigest(): text for text in (b"one", b"two" * 1000)}
    hashes = list(content)
    missing = master.client.post("/api/v1/blobs/missing", json={"hashes": hashes}).json()
    assert missing["hashes"] == hashes
    stored = master.client.post("/api/v1/blobs", content=b"".join(pack(content)))
    assert sorted(stored.json()["hashes"]) == sorted(hashes)
    for sha256, text in content.items():
        assert master.client.get(f"/api/v1/blobs/{sha256}").content == text
    refused(master.client.post("/api/v1/blobs", content=b"nonsense"), 400)


def test_a_bundle_whose_blobs_are_missing_is_refused_with_their_list(master: Master) -> None:
    entry = {"path": "a.py", "sha256": "a" * 64, "size": 3}
    sent = {**manifest().model_dump(mode="json"), "files": [entry]}
    told = refused(master.client.post("/api/v1/bundles", json=sent), 409)
    assert told.missing == ["a" * 64]
    bundle = master.bundle()
    assert master.get(f"/bundles/{bundle}") == manifest().model_dump(mode="json")
    assert master.launcher.wait_for_warmed().framework == "torch"


def test_a_list_of_more_experiments_than_a_page_has_is_whole(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [master.create()["id"] for _ in range(5)]
    monkeypatch.setattr(http_source, "_EXPERIMENTS", 2)
    monkeypatch.setenv("DET_TOKEN", master.token)
    for limit in (10_000, 4, 3):
        words = ["-m", str(master.client.base_url), "experiment", "list", "--json", "-n", str(limit)]
        printed = CliRunner().invoke(cli, words)
        assert printed.exit_code == 0, printed.output
        assert [one["id"] for one in json.loads(printed.stdout)] == numbers[::-1][:limit]


def test_a_clock_that_is_set_back_puts_no_start_before_its_creation(
    master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "now", lambda: "2001-01-01T00:00:00.000Z")
    number = master.create()["id"]
    (job,) = master.world.wait_for_jobs(1)
    monkeypatch.setattr(trials, "now", lambda: "2000-01-01T00:00:00.000Z")
    worker = Worker(master, job)
    worker.start()
    worker.exit(batch=100)
    master.until_state(number, "COMPLETED")
    trial, experiment = master.get("/trials/1"), master.get(f"/experiments/{number}")
    for each in (trial, experiment):
        assert each["created"] <= each["started"] <= each["ended"]


@pytest.mark.long
@pytest.mark.parametrize("read", [True, False], ids=["read", "not read"])
def test_a_bundle_with_damage_is_asked_for_again(master: Master, read: bool) -> None:
    contents = {hashlib.sha256(content).hexdigest(): content for content in (b"a = 1", b"b = 2")}
    kind = {"Content-Type": CONTENT_TYPE}

    def send() -> None:
        assert master.client.post("/api/v1/blobs", content=b"".join(pack(contents)), headers=kind).status_code == 200

    files = [{"path": f"{sha256}.py", "sha256": sha256, "size": 5} for sha256 in contents]
    sent = {**manifest().model_dump(mode="json"), "files": files}
    send()
    bundle = master.client.post("/api/v1/bundles", json=sent).json()["id"]
    store = BlobStore(master.service.blobs.uri)
    asked = body(master, bundle_id=bundle)
    for _ in range(2):
        assert master.get(f"/bundles/{bundle}/created")["id"] == bundle
        assert master.client.post("/api/v1/experiments", json=asked).status_code == 201
        damaged = min(contents)
        path = Path(store.uri) / damaged[:2] / damaged
        if read:
            path.write_bytes(path.read_bytes()[:-1])
            with pytest.raises(BundleCorruptError, match="submit again"):
                store.read(damaged)
        else:  # in place, as a disk does
            with path.open("r+b") as stream:
                stream.seek(-1, os.SEEK_END)
                stream.write(b"#")
        for answer in (
            master.client.get(f"/api/v1/bundles/{bundle}/created"),
            master.client.post("/api/v1/experiments", json=asked),
        ):
            assert "send it again" in refused(answer, 404).error
        assert refused(master.client.post("/api/v1/bundles", json=sent), 409).missing == [damaged]
        send()


@pytest.mark.long
@pytest.mark.parametrize("end", ["sent again", "killed"])
def test_a_trial_whose_files_are_lost_waits_until_they_are_sent_again(master: Master, end: str) -> None:
    content = b"a = 1"
    sha256 = hashlib.sha256(content).hexdigest()
    master.service.blobs.put(sha256, content)
    files = [{"path": "a.py", "sha256": sha256, "size": 5}]
    bundle = master.client.post("/api/v1/bundles", json={**manifest().model_dump(mode="json"), "files": files})
    experiment = master.create(bundle_id=bundle.json()["id"])
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    master.service.blobs.delete(sha256)
    said = {"type": "StorageError", "message": "There is no blob", "traceback": "", "batch": 0}
    worker.send({"type": "exit", "reason": "HARNESS_ERROR", "batch": 0, "error": said, "early": False})
    master.launcher.end(job.run_id, 1)
    trial = master.until(f"/trials/{job.trial_id}", lambda found: found["state"] == "QUEUED")
    assert trial["restarts"] == 0
    assert "waits for files of its bundle ('a.py'), lost" in master.get(f"/experiments/{experiment['id']}")["notice"]
    if end == "killed":
        assert master.client.post(f"/api/v1/experiments/{experiment['id']}/kill").status_code == 200
        master.until_state(experiment["id"], "CANCELED")
        return
    master.service.blobs.put(sha256, content)
    assert len(master.world.wait_for_jobs(2)) == 2
    assert master.get(f"/trials/{job.trial_id}")["restarts"] == 0


def test_a_check_that_failed_by_lost_blobs_asks_for_them(master: Master) -> None:
    content = b"a = 1"
    sha256 = hashlib.sha256(content).hexdigest()
    master.service.blobs.put(sha256, content)
    sent = {**manifest().model_dump(mode="json"), "files": [{"path": "a.py", "sha256": sha256, "size": 5}]}
    bundle = master.client.post("/api/v1/bundles", json=sent).json()["id"]
    problem = {"where": "bundle", "what": "a.py is damaged"}
    master.launcher.check_result = {"ok": False, "problems": [problem]}
    assert master.client.post(f"/api/v1/bundles/{bundle}/check").json()["ok"] is False
    master.service.blobs.delete(sha256)
    assert "send it again" in refused(master.client.post(f"/api/v1/bundles/{bundle}/check"), 404).error


def test_files_of_a_checkpoint_are_those_of_its_manifest(master: Master) -> None:
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    uuid = worker.checkpoint(5)
    (Path(job.checkpoints) / uuid / "secret").write_text("x")
    answer = master.client.get(f"/api/v1/checkpoints/{uuid}/files/weights")
    assert answer.text == "weights after 5"
    assert answer.headers["content-disposition"] == "attachment; filename=\"weights\"; filename*=UTF-8''weights"
    for path in (
        "secret",
        "manifest.json",
        "../../token",
        "..%2f..%2ftoken",
        "%2e%2e/%2e%2e/token",
        "..\\token",
        "weights%00",
    ):
        assert master.client.get(f"/api/v1/checkpoints/{uuid}/files/{path}").status_code in (401, 404)
    assert master.get(f"/trials/{job.trial_id}/checkpoints")[0] == master.get(f"/checkpoints/{uuid}")


@pytest.mark.long
def test_logs_are_read_from_either_end(master: Master) -> None:
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    master.world.output[job.run_id] = "".join(f"{number}\n" for number in range(1, 11))
    lines = master.until("/trials/1/logs", lambda found: len(found) == 10)

    def texts(**asked: int) -> list[str]:
        return [line["text"] for line in master.get("/trials/1/logs", **asked)]

    assert texts(limit=2) == ["1", "2"]
    assert texts(last=3) == ["8", "9", "10"]
    assert texts(last=100, limit=1) == [str(number) for number in range(1, 11)]
    assert texts(last=3, after=lines[8]["id"]) == ["10"]
    assert texts(last=3, before=lines[7]["id"]) == ["5", "6", "7"], "paged back from the eighth"
    assert texts(last=3, before=lines[1]["id"]) == ["1"]
    assert texts(last=3, before=lines[0]["id"]) == []
    assert texts(last=5, after=lines[4]["id"], before=lines[7]["id"]) == ["6", "7"]
    refused(master.client.get("/api/v1/trials/9/logs?last=1"), 404)
    refused(master.client.get("/api/v1/trials/1/logs?last=0"), 422)


@pytest.mark.long
def test_not_a_numbers_travel_as_strings(master: Master) -> None:
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    sent = worker.train(1, 2, loss=["NaN", "-Infinity"])  # type: ignore[arg-type]
    assert (sent.through, sent.stop) == (2, False)
    assert master.get("/trials/1/metrics", kind="training") == [
        {"batch": 1, "metrics": {"loss": "NaN"}},
        {"batch": 2, "metrics": {"loss": "-Infinity"}},
    ]
    series = MetricSeries.model_validate(master.get("/trials/1/series", kind="training", name="loss"))
    assert (series.minimum, series.maximum) == ([None, float("-inf")], [None, float("-inf")])


def test_numbers_too_large_to_store_are_refused(master: Master) -> None:
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    refused(Worker(master, job).post({"seq": 1, "type": "started", "batch": 2**70}), 400)


def test_an_internal_error_says_where_the_log_is_and_nothing_else(
    master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(master.service, "info", fail)
    told = refused(master.client.get("/api/v1/master"), 500)
    assert str(master.service.log) in told.error
    assert "secret detail" not in told.error


def test_a_full_disk_is_said_to_be_one(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL

    def fail() -> None:
        raise OperationalError("INSERT", {}, full)

    monkeypatch.setattr(master.service, "info", fail)
    assert "disk of the master is full" in refused(master.client.get("/api/v1/master"), 507).error


def test_the_master_says_who_it_is(master: Master) -> None:
    assert master.get("/health") == {"status": "ok", "version": master.get("/master")["version"], "protocol": PROTOCOL}
    assert [slot["id"] for slot in master.get("/master")["slots"]] == ["cpu:0", "cpu:1"]


def test_shutting_down_is_up_to_the_process(master: Master) -> None:
    asked: list[bool] = []
    master.service.on_shutdown = lambda: asked.append(master.service.kill_workers)
    assert master.client.post("/api/v1/master/shutdown", params={"kill": True}).status_code == 202
    assert asked == [True]


def test_experiments_are_listed_by_each_state(master: Master) -> None:
    running, waiting = master.create({"resources": {"slots_per_trial": 2}}), master.create()
    master.world.wait_for_jobs(1)
    master.until(f"/experiments/{running['id']}", lambda found: found["started"] is not None)

    def listed(state: str) -> list[int]:
        return [one["id"] for one in master.get("/experiments", state=state)]

    assert listed("Running") == listed("ACTIVE") == [running["id"]]
    assert listed("Queued") == [waiting["id"]]
    for state in ExperimentState:
        assert listed(state.name) == listed(state.value)
