"""Runs that kernels of an earlier version kept (commit 9877da7) are experiments of the next master, with all they had.

The home has a training with labels, notes, a project, a pin and an archive; a search; one that failed, one that was
interrupted, and one whose kernel was killed. What the earlier version said of them is in ``expected.json``.
"""

from __future__ import annotations

import fcntl
import io
import json
import logging
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from kernel_parts import process_facts
from master_parts import Master, running_master

pytestmark = pytest.mark.slow  # a whole master for each test

OLD = Path(__file__).parent / "homes" / "local-9877da7.tar.zst"
MADE_IN = "/tmp/old57/home"
EXPERIMENT = (
    *("name", "state", "error", "created", "ended", "description", "labels", "project", "notes", "archived"),
    *("metric", "smaller_is_better", "progress", "best_validation", "trials", "config", "report"),
)
TRIAL = (
    *("state", "hparams", "seed", "batches", "target_batches", "best_validation", "best_at", "started"),
    *("ended", "error", "notice", "warning", "restarts"),
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Unpack the home."""
    home = tmp_path / "home"
    with OLD.open("rb") as packed, zstandard.ZstdDecompressor().stream_reader(packed) as stream:
        content = io.BytesIO(stream.read())
    with tarfile.open(fileobj=content) as archive:
        archive.extractall(home, filter="data")
    for path in home.glob("local/*/trials/*/*.json*"):
        written = path.stat().st_mtime_ns  # which is when the run was last heard of
        path.write_text(path.read_text().replace(MADE_IN, str(home)).replace("/tmp/old57/work", str(home)))
        os.utime(path, ns=(written, written))
    (written,) = json.loads((home / "local/4/trials/1/artifacts.json").read_text())  # the last one that wrote it
    os.utime(home / "written.txt", ns=(written["time"], written["time"]))
    return home


def taken_over(master: Master, count: int = 5) -> list[dict[str, Any]]:
    """Return them, in the order of their old numbers, once their folders are gone."""
    local = master.service.places.home / "local"
    master.until("/experiments", lambda found: len([*local.glob("[0-9]*")]) == 5 - count)
    found = [*master.get("/experiments"), *master.get("/experiments", archived=True)]
    return sorted({each["id"]: each for each in found}.values(), key=lambda each: int(each["id"]))


def some(known: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: known[name] for name in names}


def test_all_that_an_earlier_version_kept_is_there(home: Path, migrated_url: str) -> None:
    # An earlier version said in each error what the number of its cell means.
    text = (home / "expected.json").read_text()
    expected = json.loads(text, object_hook=lambda each: {k: v for k, v in each.items() if k != "prompts"})
    with running_master(home, database_url=migrated_url) as master:
        found = taken_over(master)
        master.until("/experiments", lambda _: not (home / "local").exists())
        for experiment, number in zip(found, "12345", strict=True):
            old = expected[number]
            detail = master.get(f"/experiments/{experiment['id']}")
            assert detail["in_kernel"]
            assert bool(detail["bundle_id"]) == bool(old["experiment"]["bundle_id"])
            known = some(detail, EXPERIMENT)
            old["experiment"]["config"]["notify"] = known["config"]["notify"]
            was_then = some(old["experiment"], EXPERIMENT)
            if number == "5":  # by times of files, of which an archive has the seconds
                known["ended"], was_then["ended"] = known["ended"][:19], was_then["ended"][:19]
            assert known == was_then
            trials = master.get(f"/experiments/{experiment['id']}/trials")
            for trial, was in zip(trials, old["trials"].values(), strict=True):
                names = [name for name in TRIAL if (number, name) != ("5", "ended")]
                assert some(trial, names) == some(was["trial"], names)
                trial_id = trial["id"]
                for kind, rows in was["rows"].items():
                    assert master.get(f"/trials/{trial_id}/metrics", kind=kind, limit=1000) == rows
                for name in ("time", "stream", "text", "rank"):
                    lines = master.get(f"/trials/{trial_id}/logs", limit=1000)
                    assert [line[name] for line in lines] == [line[name] for line in was["logs"]]
                media = master.get(f"/trials/{trial_id}/media")
                changed = ("id", "trial_id")
                assert [without(each, changed) for each in media] == [without(each, changed) for each in was["media"]]
                samples = master.get(f"/trials/{trial_id}/system")
                assert [sample["metrics"] for sample in samples] == [sample["metrics"] for sample in was["samples"]]
                checkpoints = master.get(f"/experiments/{experiment['id']}/checkpoints")
                mine = [one for one in checkpoints if one["trial_id"] == trial_id]
                kept = ("uuid", "batch", "state", "size", "metrics", "created", "manifest", "metadata", "pinned")
                assert [some(one, kept) for one in mine] == [some(one, kept) for one in was["checkpoints"]]
                for one in mine:
                    assert master.client.post(f"/api/v1/checkpoints/{one['uuid']}/verify").json()["ok"]
                assert [*(home / "tensorboard" / str(experiment["id"]) / str(trial_id)).rglob("events*")]
        (pinned,) = [one for one in master.get("/experiments/1/checkpoints") if one["pinned"]]
        assert pinned["metadata"] == {"why": "the first"}
        files = master.get("/trials/1/artifacts")
        assert [(file["path"], file["sha256"]) for file in files] == [("written.txt", None)]  # others wrote it since
        assert "It was changed" in files[0]["note"]
        (trial,) = master.get("/experiments/4/trials")
        content = master.client.get(f"/api/v1/trials/{trial['id']}/artifacts/content", params={"path": "written.txt"})
        assert content.text == "by the training"
        picture = master.get("/trials/1/media")[0]
        assert master.client.get(f"/api/v1/trials/1/media/{picture['id']}/content").content.startswith(b"\x89PNG")
        assert master.client.post("/api/v1/experiments/1/fork", json={}).status_code == 201
        assert master.client.delete("/api/v1/experiments/2").status_code == 200
    with running_master(home, database_url=migrated_url) as master:
        assert len(master.get("/experiments")) == 4  # and the one that is archived


def without(known: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in known.items() if name not in names}


def test_one_that_cannot_be_read_stays_and_what_was_broken_off_is_done_once(
    home: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = home / "local" / "3" / "trials" / "1" / "training.jsonl"
    whole = trial.read_text()
    trial.write_text("{broken\n" + whole)

    rename = Path.rename

    def broken_off(source: Path, target: Path) -> Path:
        if "files" in source.parts:
            raise OSError("the machine goes down")
        return rename(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", broken_off)
        with running_master(home) as master:
            master.until("/experiments", lambda _: "local-5 cannot be taken over" in caplog.text)
    with caplog.at_level(logging.ERROR), running_master(home) as master:
        assert len(taken_over(master, 4)) == 4
        assert [each.name for each in (home / "local").glob("[0-9]*")] == ["3"]
        assert (home / "local" / "blobs").is_dir()
        for one in master.get("/experiments/1/checkpoints"):
            assert master.client.post(f"/api/v1/checkpoints/{one['uuid']}/verify").json()["ok"]
    trial.write_text(whole)
    with running_master(home) as master:
        assert len(taken_over(master)) == 5
        master.until("/experiments", lambda _: not (home / "local").exists())


def test_one_that_a_kernel_of_the_earlier_version_trains_still_is_left_to_it(home: Path) -> None:
    process = home / "local" / "5" / "process.json"
    known = json.loads(process.read_text())
    process.write_text(json.dumps(known | process_facts(os.getpid()).model_dump()))
    with (home / "local" / "5" / "run.lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with running_master(home) as master:
            assert len(taken_over(master, 4)) == 4
    with running_master(home) as master:
        assert len(taken_over(master)) == 5
