"""A search by Optuna on a master that is restarted in its midst."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from master_parts import Master, MemoryLauncher, Worker, running_master

pytestmark = pytest.mark.slow

SEARCH = {"name": "optuna", "sampler": "tpe", "max_trials": 5, "max_concurrent_trials": 2}
CONFIG = {
    "searcher": SEARCH,
    "hyperparameters": {"global_batch_size": 32, "x": {"type": "double", "minval": 0, "maxval": 1}},
    "reproducibility": {"experiment_seed": 3},
}


def complete(master: Master, number: int) -> float:
    job = master.world.wait_for_jobs(number)[number - 1]
    x = float(job.hparams["x"])
    Worker(master, job).complete(loss=x * x)
    return x


def found(master: Master) -> list[Any]:
    return [trial["hparams"]["x"] for trial in master.get("/experiments/1/trials")]


def test_a_restarted_master_goes_on_with_the_same_trials(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    with running_master(tmp_path / "one", slots=1) as whole:
        whole.create(CONFIG)
        values = [complete(whole, number) for number in range(1, 6)]
        assert whole.until_state(1, "COMPLETED")["best_validation"] == min(values) ** 2
        expected = found(whole)
    with running_master(tmp_path / "two", slots=1) as first:
        first.create(CONFIG)
        for number in (1, 2):
            complete(first, number)
        first.world.wait_for_jobs(3)
        world = first.world
    with running_master(tmp_path / "two", slots=1, launcher=MemoryLauncher(world)) as second:
        for number in (3, 4, 5):
            complete(second, number)
        second.until_state(1, "COMPLETED")
        assert found(second) == expected
