"""The output of a trial takes no more than its share of the disk, in the store and in the worker's own file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from master_parts import Worker, running_master
from store_parts import Fixture

from det_native.master.flow.context import Context
from det_native.master.flow.output import OutputStore
from det_native.master.launch.base import Output
from det_native.master.launch.output import punch_hole, read_output
from det_native.master.store import log_limits, logs, runs
from det_native.master.store.database import Database
from det_native.schema.rest import LogLine

LIMIT = 512 << 10
LINE = "x" * 100


class Writer:
    """A worker's file of output, and what a launcher does with it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, first: int, last: int, line: str = LINE) -> None:
        """Write numbered lines."""
        with self.path.open("a") as stream:
            stream.writelines(f"{number} {line}\n" for number in range(first, last))

    def logs(self, run_id: str, offset: int, rank: int = 0) -> Output:
        return read_output(self.path, offset, ended=False)

    def release_output(self, run_id: str, rank: int, start: int, end: int) -> None:
        punch_hole(self.path, start, end)

    @property
    def on_disk(self) -> int:
        return self.path.stat().st_blocks * 512


class Stored:
    """A trial whose output is stored."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.made = Fixture(database)
        self.run = self.made.run()
        self.writer = Writer(folder / "output.log")
        places = SimpleNamespace(output_bytes=LIMIT)
        self.context = cast(Context, SimpleNamespace(database=database, runner_of=lambda _: self.writer, places=places))
        self.output = OutputStore(self.context)
        self.offsets = [0]

    def take(self) -> None:
        self.offsets = self.output.store(self.made.trial_id, self.run.run_id, self.offsets)

    def lines(self) -> list[LogLine]:
        with self.database.read() as connection:
            return logs.after(connection, self.made.trial_id, limit=1_000_000)

    def numbers(self) -> list[int]:
        return [int(line.text.split()[0]) for line in self.lines() if line.stream == "stdout"]

    @property
    def marker(self) -> Any:
        [found] = [line.text for line in self.lines() if line.stream == "system"]
        return found

    @property
    def size(self) -> int:
        return sum(len(line.text.encode()) + log_limits.ROW_BYTES for line in self.lines())


def test_output_within_the_limit_is_all_there(database: Database, tmp_path: Path) -> None:
    stored = Stored(database, tmp_path)
    stored.writer.write(0, 1000)
    stored.take()
    assert stored.numbers() == list(range(1000))
    assert {line.stream for line in stored.lines()} == {"stdout"}


@pytest.mark.long
def test_a_burst_keeps_its_beginning_and_its_end(database: Database, tmp_path: Path) -> None:
    stored = Stored(database, tmp_path)
    stored.writer.write(0, 100)
    stored.take()
    stored.writer.write(100, 200_000)  # 21 MB
    whole = stored.writer.path.stat().st_size
    stored.take()
    numbers = stored.numbers()
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 0
    assert numbers[-1] == 199_999
    # One piece of a megabyte may be over it.
    assert stored.size < LIMIT + 3 * (1 << 20)
    assert stored.offsets == [whole]
    assert stored.writer.path.stat().st_size == whole
    assert stored.writer.on_disk < 2 * LIMIT
    assert stored.marker.startswith("[... Output is left out here: ")
    told = float(stored.marker.split()[6])
    assert abs(told * (1 << 20) - (whole - len(numbers) * (len(LINE) + 7))) < 1 << 18


@pytest.mark.long
def test_output_that_never_ends_stays_within_the_limit(database: Database, tmp_path: Path) -> None:
    stored = Stored(database, tmp_path)
    for part in range(60):
        stored.writer.write(part * 500, (part + 1) * 500)
        stored.take()
    numbers = stored.numbers()
    assert numbers == sorted(set(numbers))
    assert numbers[:1000] == list(range(1000))
    assert numbers[-1000:] == list(range(29_000, 30_000))
    assert stored.size < 2 * LIMIT
    assert stored.writer.on_disk < 2 * LIMIT
    before = stored.marker

    # A master that starts again knows where it was.
    stored.output = OutputStore(stored.context)
    with database.write() as transaction:
        runs.update_row(transaction, stored.run.run_id, log_offsets=stored.offsets)
    stored.writer.write(30_000, 32_000)
    stored.take()
    assert stored.numbers()[-1] == 31_999
    assert stored.size < 2 * LIMIT
    assert float(stored.marker.split()[6]) >= float(before.split()[6])


@pytest.mark.long
def test_characters_count_by_their_bytes(database: Database, tmp_path: Path) -> None:
    stored = Stored(database, tmp_path)
    for part in range(60):
        stored.writer.write(part * 100, (part + 1) * 100, "\N{SURFER}" * 250)
        stored.take()
    assert stored.size < 2 * LIMIT
    with database.write() as transaction:
        runs.update_row(transaction, stored.run.run_id, log_offsets=stored.offsets)
    before = float(stored.marker.split()[6])
    stored.output = OutputStore(stored.context)
    stored.writer.write(6000, 7000, "\N{SURFER}" * 250)
    stored.take()
    assert stored.size < 2 * LIMIT
    assert 0 < float(stored.marker.split()[6]) - before < 1.5  # a megabyte was added


@pytest.mark.long
def test_the_room_of_output_that_is_deleted_is_given_back(tmp_path: Path) -> None:
    with running_master(tmp_path / "home") as master:
        ended = master.create()
        (job,) = master.world.wait_for_jobs(1)
        master.world.output[job.run_id] = "".join(f"{number} {LINE}\n" for number in range(50_000))
        Worker(master, job).complete()
        master.until_state(ended["id"], "COMPLETED")
        master.create()
        running = master.world.wait_for_jobs(2)[-1]
        Worker(master, running).start()
        master.world.output[running.run_id] = "it goes on\n"
        master.until(f"/trials/{running.trial_id}/logs", lambda lines: any("goes on" in one["text"] for one in lines))

        untouched = master.client.post("/api/v1/master/clean", params={"days": 1}).json()
        assert untouched["lines"] == 0
        done = master.client.post("/api/v1/master/clean", params={"days": 0}).json()
        assert done["lines"] >= 50_000
        assert done["after"] < done["before"] - (5 << 20)
        assert [one["text"] for one in master.get(f"/trials/{running.trial_id}/logs")][-1] == "it goes on"
        assert len(master.get(f"/trials/{job.trial_id}/metrics", kind="training")) == 100
