"""Runs of kernels that no master was there to record: the next one takes them in."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from kernel_parts import STARTED, job_in, kernel_run, process_facts, wait_to_be_taken_in
from master_parts import Master, manifest, publish, running_master

from det_native.master.flow import collection, kernels, take_in
from det_native.schema.kernel_runs import KernelRun
from det_native.schema.manifests import FileEntry
from det_native.schema.run_ids import new_id
from det_native.schema.sealed import seal
from det_native.storage.blobs import BlobStore

pytestmark = pytest.mark.slow  # a whole master for each test

GONE = process_facts(2**22 + 1, start="", namespace="pid:[0]")
CONTENT = b"print('the code of the kernel')"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder of temporary files of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def gone_process() -> Any:
    """Return a process of this machine that has ended."""
    here = process_facts(os.getpid())
    return here.model_copy(update={"start": here.start + "0"})


def left(root: Path, *reports: dict[str, Any], **fields: Any) -> KernelRun:
    """Leave a run as a kernel does that has trained 50 batches and is gone."""
    asked = kernel_run(root, fields.pop("process", None) or gone_process(), **fields)
    folder = wait_to_be_taken_in(asked)
    told: list[dict[str, Any]] = [
        {"type": "started", "batch": 0, "length": 400},
        {
            "type": "metrics",
            "kind": "training",
            "batches": [*range(1, 51)],
            "metrics": {"loss": [1.0 / batch for batch in range(1, 51)]},
        },
        *reports,
    ]
    lines = b"".join(seal(json.dumps({"seq": number, **report})) for number, report in enumerate(told, 1))
    (folder / "spool" / "00000001.jsonl").write_bytes(lines)
    (folder / "output.log").write_text("epoch 1\n")
    for path in (folder / "spool" / "00000001.jsonl", folder / "output.log", folder / "kernel.json"):
        os.utime(path, (1_767_400_000, 1_767_400_000))
    return asked


def program() -> dict[str, Any]:
    code = FileEntry(path="code.py", sha256=SHA256, size=len(CONTENT))
    return {"bundle": manifest().model_copy(update={"files": (code,)})}


def put_blob(root: Path) -> None:
    BlobStore(str(root / "blobs")).put(SHA256, CONTENT)


def the_experiment(master: Master, state: str) -> dict[str, Any]:
    (found,) = master.until("/experiments", lambda found: len(found) == 1 and found[0]["state"] == state)
    return dict(master.get(f"/experiments/{found['id']}"))


def test_what_a_kernel_has_left_is_taken_in_by_the_next_master_with_its_program(tmp_path: Path) -> None:
    home = tmp_path / "home"
    left(home, **program())
    put_blob(home)
    with running_master(home) as master:
        found = the_experiment(master, "CANCELED")
        assert (
            found["error"]["message"] == "its kernel was restarted or ended in the middle of it, after batch 50 of 400."
        )
        heard = "2026-01-03T00:26:40.000Z"
        found = master.until(f"/experiments/{found['id']}", lambda found: found["ended"] == heard)
        assert found["created"] == STARTED
        (trial,) = master.get(f"/experiments/{found['id']}/trials")
        assert (trial["batches"], trial["ended"], trial["best_at"]) == (50, found["ended"], None)
        assert [line["text"] for line in master.get(f"/trials/{trial['id']}/logs")] == ["epoch 1"]
        assert master.get(f"/bundles/{found['bundle_id']}")["files"][0]["sha256"] == SHA256
        assert master.client.post(f"/api/v1/experiments/{found['id']}/fork", json={}).status_code == 201
    with running_master(home) as master:
        assert sorted(each["state"] for each in master.get("/experiments")) == ["ACTIVE", "CANCELED"]


def test_one_that_had_come_to_its_end_is_completed_and_without_all_of_its_code_it_says_so(tmp_path: Path) -> None:
    home = tmp_path / "home"
    left(home, {"type": "exit", "reason": "COMPLETED", "batch": 50, "early": True}, **program())
    with running_master(home) as master:
        found = the_experiment(master, "COMPLETED")
        assert found["bundle_id"] is None
        assert "1 of its files were gone" in found["no_program"]


def test_one_whose_process_lives_records_itself_unless_its_end_lies_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    asked = left(home, process=process_facts(os.getpid()))
    monkeypatch.setattr(kernels, "UNSENT_SECONDS", 0.0)
    with running_master(home) as master:
        master.service.take_in.look()
        assert master.get("/experiments") == []
        report = {"type": "exit", "seq": 3, "reason": "STOPPED", "batch": 50}
        (Path(asked.directory) / "exit.json").write_text(json.dumps(report))
        os.utime(Path(asked.directory) / "exit.json", (1, 1))
        master.service.take_in.look()
        assert "interrupted" in the_experiment(master, "CANCELED")["error"]["message"]


def test_one_of_another_machine_or_boot_is_taken_in_once_it_was_silent_for_long(tmp_path: Path) -> None:
    home = tmp_path / "home"
    asked = left(home, process=GONE)
    output = Path(asked.directory) / "output.log"
    os.utime(output)
    with running_master(home) as master:
        master.service.take_in.look()
        assert master.get("/experiments") == []
        os.utime(output, (time.time() - kernels.SILENT_SECONDS - 1,) * 2)
        master.service.take_in.look()
        the_experiment(master, "CANCELED")


def test_a_run_whose_home_could_not_be_written_is_found_among_the_temporary_files(tmp_path: Path) -> None:
    spare = tmp_path / f"det-native-{os.getuid()}"
    run_id = new_id()
    uuid, checkpoint = publish(job_in(spare, run_id), 50)
    asked = left(spare, checkpoint, **program(), run_id=run_id)
    put_blob(spare)
    spare.chmod(0o755)
    with running_master(tmp_path / "home") as master:
        master.service.take_in.look()
        assert master.get("/experiments") == []  # others could have put it there
        spare.chmod(0o700)
        master.service.take_in.look()
        number = the_experiment(master, "CANCELED")["id"]
        moved = tmp_path / "home" / "runs" / asked.run_id
        master.until("/master", lambda _: moved.is_dir() and not Path(asked.directory).exists())
        assert BlobStore(str(tmp_path / "home" / "blobs")).read(SHA256) == CONTENT
        place = tmp_path / "home" / "checkpoints" / uuid
        master.until(f"/checkpoints/{uuid}", lambda found: found["location"] == str(place))
        assert (place / "weights").read_text() == "weights after 50"
        assert master.client.get(f"/api/v1/checkpoints/{uuid}/files/weights").content == b"weights after 50"
        assert not (spare / "checkpoints" / uuid).exists(), "the system clears the folder of temporary files away"
        assert master.client.delete(f"/api/v1/experiments/{number}").status_code == 200
        assert not moved.exists()
        master.service.take_in.look()
        assert master.get("/experiments") == []


def test_one_that_cannot_be_read_is_set_aside_with_a_line_and_the_others_are_taken_in(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "home"
    broken = [left(home), left(home), left(home)]
    (Path(broken[0].directory) / "kernel.json").write_text('{"protocol": 1')
    (Path(broken[1].directory) / "kernel.json").write_bytes(b"\xff\xfe")
    Path(broken[2].directory).rename(Path(broken[2].directory).with_name("not an id"))
    left(home)
    with running_master(home) as master:
        the_experiment(master, "CANCELED")
        master.service.take_in.look()
    lines = [record.getMessage() for record in caplog.records if "cannot be taken in" in record.getMessage()]
    assert len(lines) == 3
    assert len([*home.glob(f"runs/*/{take_in.BROKEN_NAME}")]) == 3


def test_what_waits_to_be_taken_in_keeps_its_folder_and_its_blobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    left(home, **program())
    put_blob(home)
    with running_master(home) as master:
        number = the_experiment(master, "CANCELED")["id"]
    asked = left(home, process=process_facts(os.getpid()), **program())
    logged = BlobStore(str(home / "blobs"))
    other = hashlib.sha256(b"nobody's").hexdigest()
    logged.put(other, b"nobody's")
    for path in home.glob("blobs/??/*"):
        os.utime(path, (1, 1))
    monkeypatch.setattr(collection, "KEPT_RUNS", 0)
    with running_master(home) as master:
        body = {"kinds": ["blobs", "runs"], "older_than_days": 0}
        assert master.client.post("/api/v1/space/clean", json=body).status_code == 200
        collection.clear_old_runs(master.service.context)
        assert (Path(asked.directory) / "kernel.json").exists()
        assert master.client.delete(f"/api/v1/experiments/{number}").status_code == 200
        assert (logged.missing([SHA256]), logged.missing([other])) == ([], [other])
