"""Two slots that are stopped at any batch and continued end with the same bits on both."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from digits_trials import same
from rank_program import CaseRun
from rank_rig import BACKENDS, Ended, run_ranks

from det_native.storage.checkpoints import CheckpointStorage

pytestmark = pytest.mark.slow

BATCHES = 16
_PLACES = random.Random(7).sample(range(1, BATCHES - 1), 3)
# Each with another kind of data and aggregation.
_MADE: list[dict[str, Any]] = [
    {"optimizations": {"aggregation_frequency": 3}},
    {"hparams": {"workers": 1}, "min_validation_period": {"batches": 5}},
    {"checkpoint_policy": "all", "min_validation_period": {"batches": 4}},
]
CASES: dict[str, dict[str, Any]] = {
    f"stopped_{stop}": {"kind": "resumed", "trial": "Random", "stop": stop, "made": {"batches": BATCHES, **made}}
    for stop, made in zip(_PLACES, _MADE, strict=True)
}


# Stops in the middle of a workload, for whose end the reducers gather.
_STOP = 5
CASES_OF_REDUCERS: dict[str, dict[str, Any]] = {
    "reduced": {
        "kind": "stopped",
        "trial": "Measured",
        "module": "measured_trials",
        "stop": _STOP,
        "made": {"batches": 12, "scheduling_unit": 12},
    },
}


@pytest.fixture(scope="module", params=BACKENDS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Run all cases in one pair of processes for each backend."""
    return run_ranks(tmp_path_factory.mktemp("resumed"), CASES, backend=request.param)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Stop a pair of processes in the middle of a workload."""
    return run_ranks(tmp_path_factory.mktemp("stopped"), CASES_OF_REDUCERS)


def content(folder: Path, uuid: str, into: Path) -> dict[str, Any]:
    """Return everything in a checkpoint that a continuation depends on, by file."""
    CheckpointStorage(str(folder)).fetch(uuid, into)
    found: dict[str, Any] = {}
    for path in sorted(into.rglob("*")):
        name = str(path.relative_to(into))
        if path.suffix == ".pth":
            found[name] = torch.load(path, weights_only=True)
        elif path.suffix == ".npz":
            with np.load(path) as archive:
                found[name] = {key: torch.from_numpy(archive[key]) for key in archive.files}
        elif path.is_file() and path.name not in ("state.json", "manifest.json"):
            found[name] = path.read_bytes()
    return found


@pytest.mark.parametrize("name", CASES)
def test_stopping_changes_nothing_on_any_slot(pair: Ended, tmp_path: Path, name: str) -> None:
    assert pair.codes == [0, 0], "\n".join(pair.outputs)
    ranks = pair.results(name)
    for rank in ranks:
        assert rank["stopped"] in (CASES[name]["stop"], CASES[name]["stop"] + 1)
        for what in ("models", "optimizers", "validation"):
            assert same(rank["whole"][what], rank["parts"][what]), what
        assert rank["whole"]["facts"]["drawn"] == rank["parts"]["facts"]["drawn"]
        assert rank["whole"]["training"] == rank["parts"]["training"]
    assert ranks[0]["stopped"] == ranks[1]["stopped"]
    assert [len(rank["uuids"]) for rank in ranks] == [2, 0]
    whole, parts = (
        content(pair.folder / name / part, uuid, tmp_path / part)
        for part, uuid in zip(("whole", "parts"), ranks[0]["uuids"], strict=True)
    )
    assert same(whole, parts)
    assert {"ranks/1/rng.npz", "ranks/1/callbacks.json", "ranks/1/state_dict.pth"} <= whole.keys()
    # What the slots have seen, and keep in their callbacks, is not the same.
    assert whole["callbacks.json"] != whole["ranks/1/callbacks.json"]


def test_loading_draws_differ_by_slot(pair: Ended) -> None:
    first, second = (
        [metrics["seen"] for _, metrics in rank["whole"]["training"]] for rank in pair.results(next(iter(CASES)))
    )
    assert not set(first) & set(second)


def test_a_checkpoint_of_two_slots_goes_on_on_one(
    pair: Ended, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from rank_trials import Random

    name = next(iter(CASES))
    run = CaseRun(pair.folder / name / "parts", batches=BATCHES + 4)
    first = min(run.storage.list(), key=lambda manifest: manifest.batch)
    run.run(Random, resume=first)
    assert run.batches == BATCHES + 4
    assert next(batch for batch, _ in run.result()["training"]) == first.batch + 1
    assert "was made on 2 slot(s), the trial has 1 now" in caplog.text


def test_what_reducers_had_gathered_on_a_slot_that_is_gone_counts(stopped: Ended, tmp_path: Path) -> None:
    from measured_trials import Measured

    assert stopped.codes == [0, 0], "\n".join(stopped.outputs)
    whole = CaseRun(tmp_path / "whole", batches=12, scheduling_unit=12)
    whole.run(Measured)
    parts = CaseRun(stopped.folder / "reduced", batches=12, scheduling_unit=12)
    [first] = parts.storage.list()
    assert first.batch in (_STOP, _STOP + 1)

    # Once more in the same workload: what a slot left behind goes into the next checkpoint too.
    parts.run(Measured, resume=first, stop_at=first.batch + 2)
    [second] = [manifest for manifest in parts.storage.list() if manifest.batch == first.batch + 2]
    parts.run(Measured, resume=second)
    expected, found = (run.result()["training"][-1][1] for run in (whole, parts))
    assert found["seen"] == expected["seen"]
    assert found["spread"] == expected["spread"]
    assert found["mean_label"] == pytest.approx(expected["mean_label"])
    assert (expected["slots"], found["slots"]) == (1, 2)
