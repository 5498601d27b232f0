"""Files that trials have written: downloaded from the master, and found where a killed worker left them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from master_parts import Master, Worker, running_master

from det_native.schema.job import TrialJob
from det_native.storage.blobs import BlobStore
from det_native.storage.file_states import Baseline, Limits, walk


def begin(job: TrialJob, folder: Path | None = None, limits: Limits | None = None, **before: str) -> Path:
    """Do what a worker does when training begins; return its working directory."""
    folder = folder or Path(job.directory)
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    for name, text in before.items():
        (work / name).write_text(text)
    Baseline(dict(walk(work, links=True)), limits or Limits()).write(folder)
    return work


def put(job: TrialJob, content: bytes) -> str:
    sha256 = hashlib.sha256(content).hexdigest()
    BlobStore(job.blobs).put(sha256, content)
    return sha256


def content(master: Master, path: str, **params: object) -> tuple[int, bytes]:
    response = master.client.get("/api/v1/trials/1/artifacts/content", params={"path": path, **params})
    return response.status_code, response.content


def test_a_file_is_downloaded_whole_or_from_an_offset(master: Master) -> None:
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    raw = b"0123456789" * 500_000
    sha256 = put(job, raw)
    worker.send({"type": "artifacts", "files": [{"path": "a b/ü.bin", "sha256": sha256, "size": len(raw), "batch": 3}]})
    (found,) = master.get("/trials/1/artifacts")
    assert (found["path"], found["sha256"], found["size"], found["batch"]) == ("a b/ü.bin", sha256, len(raw), 3)
    assert content(master, "a b/ü.bin") == (200, raw)
    assert content(master, "a b/ü.bin", offset=4_999_995) == (200, b"56789")
    assert content(master, "a b/ü.bin", offset=9_999_999) == (200, b"")
    assert content(master, "a b/ü.bin", sha256=sha256)[0] == 200
    answer = master.client.get("/api/v1/trials/1/artifacts/content", params={"path": "a b/ü.bin"})
    assert answer.headers["content-disposition"] == "attachment; filename=\"_.bin\"; filename*=UTF-8''%C3%BC.bin"


def test_reports_of_files_outside_of_the_working_directory_are_refused(master: Master) -> None:
    """Whoever fetches the files writes by these paths, and deletes what was removed."""
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    sha256 = put(job, b"x")
    for path in ("../x", "a/../../x", "/etc/passwd", "a\\..\\x", ".."):
        kept = {"path": path, "sha256": sha256, "size": 1, "batch": 1}
        for told in ({"files": [kept]}, {"files": [{**kept, "sha256": None}]}, {"files": [], "removed": [path]}):
            answer = worker.post({"seq": worker.seq + 1, "type": "artifacts", **told})
            assert answer.status_code == 400, (path, told)
            assert "path" in answer.json()["error"]
    assert master.get("/trials/1/artifacts") == []
    odd = {"path": "a\\b", "sha256": None, "size": 1, "batch": 1, "note": "It is not kept; rename it."}
    worker.send({"type": "artifacts", "files": [odd], "removed": ["..a/b..", "c\\d"]})
    assert [file["path"] for file in master.get("/trials/1/artifacts")] == ["a\\b"]


def test_what_cannot_be_downloaded_is_refused_with_a_sentence(master: Master) -> None:
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    files = [
        {"path": "huge", "size": 9, "batch": 1, "note": "Not kept: too large."},
        {"path": "lost", "sha256": "0" * 64, "size": 9, "batch": 1},
    ]
    worker.send({"type": "artifacts", "files": files})
    status, text = content(master, "nothing")
    assert (status, b"has written no file 'nothing'" in text) == (404, True)
    status, text = content(master, "huge")
    assert (status, b"was not kept. Not kept: too large." in text) == (404, True)
    status, text = content(master, "lost")
    assert (status, b"is lost" in text) == (409, True)
    status, text = content(master, "lost", sha256="1" * 64)
    assert (status, b"anew" in text) == (409, True)
    assert content(master, "../../token")[0] == 404


def test_what_a_killed_worker_had_written_counts(master: Master) -> None:
    experiment = master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    worker.train(1, 20)
    work = begin(job, data="of the bundle")
    (work / "log.csv").write_text("1")
    sha256 = put(job, b"1")
    worker.send({"type": "artifacts", "files": [{"path": "log.csv", "sha256": sha256, "size": 1, "batch": 5}]})
    (work / "log.csv").write_text("12")
    (work / "best.pt").write_text("weights")
    assert master.client.post(f"/api/v1/experiments/{experiment['id']}/kill").status_code == 200
    master.until_state(experiment["id"], "CANCELED")
    found = {each["path"]: each["batch"] for each in master.get("/trials/1/artifacts")}
    assert found == {"best.pt": 20, "log.csv": 20}
    assert content(master, "log.csv") == (200, b"12")
    assert content(master, "best.pt") == (200, b"weights")


def test_files_of_every_process_of_a_killed_run_count_and_the_first_ones_come_first(master: Master) -> None:
    experiment = master.create({"resources": {"slots_per_trial": 2}})
    (job,) = master.world.wait_for_jobs(1)
    Worker(master, job).start()
    for rank, folder in enumerate((Path(job.directory), Path(job.directory) / "rank-1")):
        work = begin(job, folder)
        (work / "shared").write_text(f"of {rank}")
        (work / f"of-{rank}").write_text("own")
    master.client.post(f"/api/v1/experiments/{experiment['id']}/kill")
    master.until_state(experiment["id"], "CANCELED")
    assert [each["path"] for each in master.get("/trials/1/artifacts")] == ["of-0", "of-1", "shared"]
    assert content(master, "shared") == (200, b"of 0")


def test_what_a_run_reported_in_the_end_is_not_looked_for_again(master: Master) -> None:
    experiment = master.create()
    (job,) = master.world.wait_for_jobs(1)
    work = Path(job.directory) / "work"
    work.mkdir(parents=True)
    (work / "not reported").write_text("1")
    Worker(master, job).complete()
    master.until_state(experiment["id"], "COMPLETED")
    assert master.get("/trials/1/artifacts") == []


def test_the_limits_of_the_run_hold_for_what_it_left(master: Master) -> None:
    experiment = master.create()
    (job,) = master.world.wait_for_jobs(1)
    Worker(master, job).start()
    (begin(job, limits=Limits(size=5, files=9)) / "large").write_text("more than five")
    master.client.post(f"/api/v1/experiments/{experiment['id']}/kill")
    master.until_state(experiment["id"], "CANCELED")
    (found,) = master.get("/trials/1/artifacts")
    assert found["sha256"] is None
    assert "DET_ARTIFACTS_MB" in found["note"]


def test_the_next_master_finds_what_a_run_left_that_ended_without_one(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with running_master(home) as first:
        first.create()
        (job,) = first.world.wait_for_jobs(1)
        Worker(first, job).start()
        launcher = first.launcher
    (begin(job) / "best.pt").write_text("weights")
    launcher.world.alive.clear()
    with running_master(home, launcher=type(launcher)(launcher.world)) as second:
        found = second.until("/trials/1/artifacts", bool)
        assert [each["path"] for each in found] == ["best.pt"]
