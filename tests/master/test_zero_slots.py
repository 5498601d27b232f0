"""Trials that need no slot, on a master whose launcher has no processes: their limit, and what they are given."""

from __future__ import annotations

from pathlib import Path

import pytest
from master_parts import Worker, running_master

from det_native.errors import ArgumentError
from det_native.master.config import parse_arguments

ZERO = {
    "resources": {"slots_per_trial": 0},
    "searcher": {"name": "grid"},
    "hyperparameters": {"global_batch_size": 32, "x": {"type": "categorical", "vals": [1, 2, 3]}},
}


def test_so_many_as_the_master_allows_run_beside_a_full_cluster(tmp_path: Path) -> None:
    with running_master(tmp_path, slots=1, without_slots=2) as master:
        master.create()
        [holder] = master.world.wait_for_jobs(1)
        assert master.create(ZERO)["config"]["resources"]["slots_per_trial"] == 0
        _, one, two = master.world.wait_for_jobs(3)
        assert [job.devices for job in (one, two)] == [[], []]
        master.create({"resources": {"slots_per_trial": 0}})
        waiting = master.until("/experiments/3", lambda found: bool(found["waits_for"]))
        assert waiting["waits_for"] == "its turn: 2 trials without slots run at a time"
        for job in (one, two):
            Worker(master, job).complete()
        for job in master.world.wait_for_jobs(5)[3:]:
            Worker(master, job).complete()
        for number in (2, 3):
            master.until_state(number, "COMPLETED")
        assert master.get("/experiments/1")["state"] == "ACTIVE"
        Worker(master, holder).complete()
        master.until_state(1, "COMPLETED")


def test_a_master_may_run_none(tmp_path: Path) -> None:
    with running_master(tmp_path, slots=1, without_slots=0) as master:
        master.create(ZERO)
        found = master.until("/experiments/1", lambda found: bool(found["waits_for"]))
        assert found["waits_for"] == "a master that runs work without slots"


def test_the_limit_is_a_setting_of_the_master() -> None:
    assert parse_arguments([], {}).without_slots == 100
    assert parse_arguments([], {"DET_TRIALS_WITHOUT_SLOTS": "3"}).without_slots == 3
    with pytest.raises(ArgumentError, match="DET_TRIALS_WITHOUT_SLOTS must be a whole number, not 'few'"):
        parse_arguments([], {"DET_TRIALS_WITHOUT_SLOTS": "few"})
