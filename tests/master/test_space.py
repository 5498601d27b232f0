"""What takes the disk of a master is told by kind and byte, kept to a budget, and deleted where nobody needs it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from master_parts import Master, Worker, running_master

from det_native.client.command import cli
from det_native.errors import ArgumentError
from det_native.master.flow.retention import drop_old_output
from det_native.master.store import logs
from det_native.schema.sizes import parse_size, shown_size
from det_native.schema.space import Space, SpaceSettings

Det = Callable[..., Result]


@pytest.fixture
def det(master: Master, monkeypatch: pytest.MonkeyPatch) -> Det:
    """Run the command line against the master."""
    monkeypatch.setenv("DET_TOKEN", master.token)

    def run(*words: str) -> Result:
        return CliRunner().invoke(cli, ["--master", str(master.client.base_url), *words])

    return run


def home_of(master: Master) -> Path:
    return master.service.places.home


def bytes_below(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def write(path: Path, size: int, days_old: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    then = time.time() - days_old * 86_400
    for each in (path, path.parent):
        os.utime(each, (then, then))
    return path


def completed(master: Master, config: dict[str, object] | None = None, count: int = 1) -> tuple[int, str]:
    """Have an experiment print something and end; return its id and its run."""
    experiment = master.create(config or {})
    job = master.world.wait_for_jobs(count)[-1]
    worker = Worker(master, job)
    worker.complete()
    master.launcher.end(job.run_id, 0)
    master.until_state(experiment["id"], "COMPLETED")
    with master.service.database.write() as transaction:
        logs.add(transaction, job.trial_id, job.run_id, "stdout", ["printed by the code"])
    return int(experiment["id"]), job.run_id


def printed(master: Master, experiment_id: int) -> list[str]:
    [trial] = master.get(f"/experiments/{experiment_id}/trials")
    return [line["text"] for line in master.get(f"/trials/{trial['id']}/logs") if line["stream"] == "stdout"]


def blob(master: Master, text: str, days_old: float = 1.0) -> str:
    found = sha256(text.encode()).hexdigest()
    master.service.blobs.put(found, text.encode())
    then = time.time() - days_old * 86_400
    os.utime(home_of(master) / "blobs" / found[:2] / found, (then, then))
    return found


def test_every_byte_of_the_home_is_told_once(master: Master) -> None:
    completed(master)
    home = home_of(master)
    write(home / "checkpoints" / "a-b" / "weights", 1_000)
    write(home / "cache" / "datasets" / "d" / "records", 2_000)
    write(home / "cache" / "checkpoints" / "c" / "weights", 300)
    write(home / "data" / "contents" / "ab" / "abc", 4_000)
    os.link(home / "data" / "contents" / "ab" / "abc", home / "linked")  # the same bytes by another name
    write(home / "tensorboard" / "1" / "1" / "events", 50)
    write(home / "notes.txt", 7)
    blob(master, "nobody's")
    found = Space.model_validate(master.get("/space"))
    kinds = {use.kind: use for use in found.uses}
    assert kinds["checkpoints"].bytes >= 1_000
    assert (kinds["cached datasets"].bytes, kinds["cached checkpoints"].bytes) == (2_000, 300)
    assert (kinds["data"].bytes, kinds["tensorboard"].bytes) == (4_000, 50)
    assert kinds["other files"].bytes >= 7
    assert kinds["unneeded blobs"].count == 1
    assert kinds["output"].count == 1
    assert kinds["output"].part_of == "database"
    on_disk = bytes_below(home) - 4_000
    database = sum(path.stat().st_size for path in home.glob("det.db*"))
    assert abs(found.total - on_disk) <= 0.2 * database + 65_536  # the database goes on writing
    assert found.total - kinds["database"].bytes == on_disk - database
    assert found.free


def test_the_home_is_shown_as_a_table_as_json_and_as_csv_and_in_status(master: Master, det: Det) -> None:
    write(home_of(master) / "cache" / "datasets" / "d" / "records", 2_000_000)
    table = det("space")
    assert table.exit_code == 0, table.output
    assert "cached datasets" in table.output
    assert "2.00 MB" in table.output
    assert "free" in table.output
    told = json.loads(det("space", "--json").output)
    assert {use["kind"] for use in told["uses"]} >= {"database", "cached datasets"}
    assert det("space", "--csv").output.splitlines()[0] == "kind,bytes,count,part_of,place"
    assert "free" in next(line for line in det("status").output.splitlines() if line.startswith("disk"))


def test_a_budget_is_kept_with_the_home_and_warned_of_before_it_is_used_up(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with running_master(home) as master:
        write(home / "tensorboard" / "events", 9_500_000)
        master.service.space.change(SpaceSettings(budget=master.service.space.space().total + 500_000))
        master.service.space.look()
        [warning] = master.service.space.notices
        assert "disk budget of the master is used up to 9" in warning
        answer = master.client.post("/api/v1/environment", json={"executable": "", "modules": []})
        assert warning in answer.json()["notices"]  # which the client says at a submit
        budget = master.get("/space/settings")["budget"]
    with running_master(home) as master:
        assert master.get("/space")["budget"] == budget


def test_above_the_budget_what_nobody_needs_goes_and_nothing_else(master: Master) -> None:
    _, run_id = completed(master)
    home = home_of(master)
    kept = [
        write(home / "checkpoints" / "registered" / "weights", 10_000, days_old=90),
        write(home / "data" / "contents" / "ab" / "abc", 1_000, days_old=90),
        write(home / "cache" / "checkpoints" / "fresh" / "weights", 1_000),
        home / "runs" / run_id,
    ]
    gone = [
        write(home / "cache" / "datasets" / "old" / "records", 5_000, days_old=9),
        write(home / "cache" / "checkpoints" / "old" / "weights", 5_000, days_old=9),
    ]
    stray = blob(master, "nobody's", days_old=9)
    master.service.space.change(SpaceSettings(budget=1))
    master.service.space.look()
    assert all(path.exists() for path in kept)
    assert not any(path.exists() for path in gone)
    assert stray not in master.service.blobs


@pytest.mark.long
def test_what_would_go_is_told_before_it_goes(master: Master, det: Det) -> None:
    _, run_id = completed(master)
    old = write(home_of(master) / "cache" / "checkpoints" / "old" / "weights", 5_000, days_old=9)
    new = write(home_of(master) / "cache" / "checkpoints" / "new" / "weights", 5_000)
    stray = blob(master, "nobody's")
    told = det("clean", "--all", "--older-than", "3", "--dry-run")
    assert "caches: 1 would go, 5.00 kB." in told.output
    assert old.exists()
    assert stray in master.service.blobs
    done = det("clean", "--caches", "--blobs", "--older-than", "0.5")
    assert "caches: 1 deleted, 5.00 kB." in done.output
    assert "blobs: 1 deleted" in done.output
    assert "The database takes" in done.output
    assert not old.exists()
    assert new.exists()
    assert stray not in master.service.blobs
    folder = home_of(master) / "runs" / run_id
    assert folder.exists()
    assert "runs: 1 deleted" in det("clean", "--runs", "--yes").output
    assert not folder.exists()


def test_while_trials_run_neither_their_folders_nor_cached_datasets_go(master: Master, det: Det) -> None:
    master.create()
    job = master.world.wait_for_jobs(1)[0]
    Worker(master, job).start()
    cached = write(home_of(master) / "cache" / "datasets" / "d" / "records", 5_000, days_old=9)
    told = det("clean", "--all", "--yes").output
    assert "trials run that may read them" in told
    assert cached.exists()
    assert Path(job.directory).exists()


@pytest.mark.long
def test_output_goes_after_as_many_days_as_the_configuration_says(master: Master) -> None:
    short, _ = completed(master, {"log_retention_days": 3})
    nested, _ = completed(master, {"retention_policy": {"log_retention_days": 30}}, 2)
    forever, _ = completed(master, {"log_retention_days": -1}, 3)
    silent, _ = completed(master, {}, 4)
    database = master.service.database

    def after(days: float, default: int | None = None) -> list[int]:
        drop_old_output(database, default, datetime.now(UTC) + timedelta(days=days))
        return [number for number in (short, nested, forever, silent) if printed(master, number)]

    assert after(2) == [short, nested, forever, silent]
    assert after(4) == [nested, forever, silent]
    assert after(40) == [forever, silent]
    assert after(40, default=7) == [forever]


def test_a_field_that_keeps_output_is_no_longer_called_without_effect() -> None:
    from det_native.schema.config import ExperimentConfig
    from det_native.schema.effects import fields_without_effect

    config = ExperimentConfig.model_validate({"log_retention_days": 3, "searcher": {"metric": "loss"}})
    assert "log_retention_days" not in fields_without_effect(config)
    assert "log_retention_days" not in fields_without_effect(config, local=True)


@pytest.mark.parametrize("text", ["50 apples", "", "-3GB", "0", "1e999"])
def test_a_budget_that_is_no_size_is_one_sentence(text: str, det: Det) -> None:
    with pytest.raises(ArgumentError, match="is no amount of disk space; write, for example, 50GB"):
        parse_size(text, "the disk budget")
    told = det("up", "--disk-budget", text)
    assert told.exit_code != 0
    assert "no amount of disk space" in told.output


def test_sizes_are_read_and_shown() -> None:
    assert [parse_size(text) for text in ("50GB", "1.5 TiB", "800m", "12")] == [50 * 10**9, 3 * 2**39, 8 * 10**8, 12]
    assert [shown_size(size) for size in (1, 999, 12_345, 12_300_000_000)] == [
        "1 byte",
        "999 bytes",
        "12.3 kB",
        "12.3 GB",
    ]


@pytest.mark.long
def test_the_budget_of_a_running_master_is_changed_from_the_command_line(master: Master, det: Det) -> None:
    assert det("space", "--budget", "50GB", "--keep-output", "30").exit_code == 0
    assert master.get("/space/settings") == {
        "budget": 50 * 10**9,
        "log_retention_days": 30,
        "cache_retention_days": None,
    }
    assert "of a budget of 50.0 GB" in det("status").output
    assert det("space", "--budget", "none").exit_code == 0
    assert master.get("/space/settings")["budget"] is None
