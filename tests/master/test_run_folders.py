"""What runs leave on disk: the code's own files, and for the last ones what they printed and reported."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from master_parts import Master, Worker, manifest

from det_native.master.flow import collection
from det_native.schema import run_ids
from det_native.storage.packing import pack


def test_a_run_leaves_only_what_its_code_wrote(master: Master) -> None:
    content = {hashlib.sha256(text).hexdigest(): text for text in (b"code", b"data")}
    master.client.post("/api/v1/blobs", content=b"".join(pack(content)))
    paths = dict(zip(("train.py", "input/deep/data.csv"), content, strict=True))
    files = [{"path": path, "sha256": sha256, "size": 4} for path, sha256 in paths.items()]
    bundle = master.client.post("/api/v1/bundles", json={**manifest().model_dump(mode="json"), "files": files}).json()
    master.create(bundle_id=bundle["id"])
    (job,) = master.world.wait_for_jobs(1)
    work = Path(job.directory) / "work"
    (work / "input" / "deep").mkdir(parents=True)
    for path in (*paths, "result.txt"):
        (work / path).write_text("text")
    Worker(master, job).complete()
    master.until("/master", lambda _: [path.name for path in work.iterdir()] == ["result.txt"])


def test_a_run_whose_code_wrote_nothing_leaves_no_working_directory(master: Master) -> None:
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    work = Path(job.directory) / "work"
    work.mkdir(parents=True)
    Worker(master, job).complete()
    master.until("/master", lambda _: not work.exists())
    assert work.parent.exists()


def test_the_last_runs_stay_and_older_ones_keep_only_what_their_code_wrote(
    master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "KEPT_RUNS", 2)
    folders: list[Path] = []
    for number in range(1, 6):
        experiment = master.create()
        job = master.world.wait_for_jobs(number)[-1]
        folder = Path(job.directory)
        folders.append(folder)
        (folder / "spool").mkdir()
        for name in ("output.log", "exit.json", "spool/00000001.jsonl"):
            (folder / name).touch()
        if number == 2:
            (folder / "work").mkdir()
            (folder / "work" / "result.txt").write_text("the user's")
        if number == 3:  # it may have published what it did not report: the next worker looks at its spool
            (folder.parent / ".publishing").mkdir()
            (folder.parent / ".publishing" / f"{folder.name}.json").touch()
        if number == 5:
            break  # this one goes on
        Worker(master, job).complete()
        master.until_state(experiment["id"], "COMPLETED")
    first, second, third, fourth, fifth = folders
    everything = ["exit.json", "output.log", "spool"]
    master.until("/master", lambda _: not first.exists())
    assert [path.name for path in second.iterdir()] == ["work"]
    assert (second / "work" / "result.txt").read_text() == "the user's"
    for folder in (third, fourth, fifth):
        assert sorted(path.name for path in folder.iterdir()) == everything


def test_the_ids_of_runs_rise_whatever_is_done_to_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    hour = 3_600 * 10**9
    clock = iter([1_800_000_000 * 10**9 + shift for shift in (0, 0, hour, -hour, -hour, 2 * hour)])
    monkeypatch.setattr(run_ids, "time", SimpleNamespace(time_ns=lambda: next(clock)))
    monkeypatch.setattr(run_ids, "_last_milliseconds", 0)
    made = [run_ids.new_id() for _ in range(6)]
    assert made == sorted(made)
