"""Checkpoints of sharded models: every slot writes its part, and any number of slots goes on from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sharded_trials
import torch
from det_harness.frameworks.torch import sharded_state, trial_state
from digits_trials import same
from rank_program import CaseRun
from rank_rig import Ended, largest_difference, run_ranks

from det_native.pytorch import PyTorchTrialContext
from det_native.storage.checkpoints import CheckpointStorage

pytestmark = pytest.mark.slow

BATCHES = 16
STOP = 8
BY_BLOCK: dict[str, Any] = {"distributed": {"strategy": "fsdp", "fsdp_layers": ["Block"]}}
AGGREGATED: dict[str, Any] = {"optimizations": {"aggregation_frequency": 3}}  # two batches are waiting at the stop
MADE: dict[str, Any] = {"batches": BATCHES, **BY_BLOCK, **AGGREGATED}
RANDOM: dict[str, Any] = {"batches": BATCHES, "distributed": {"strategy": "fsdp"}, **AGGREGATED}
OFTEN: dict[str, Any] = {"min_checkpoint_period": {"batches": 5}}
REPLICATED: dict[str, Any] = {"batches": BATCHES, **AGGREGATED}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> CaseRun:
    """Train on one slot, undisturbed."""
    run = CaseRun(tmp_path_factory.mktemp("alone"), **REPLICATED)
    run.run(sharded_trials.Sharded)
    return run


@pytest.fixture(scope="module")
def of_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the storage with the checkpoint of a trial on one slot that was stopped."""
    folder = tmp_path_factory.mktemp("of-one")
    run = CaseRun(folder, **REPLICATED)
    run.run(sharded_trials.Sharded, stop_at=STOP)
    return folder


CASE = {"module": "sharded_trials", "trial": "Sharded"}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, of_one: Path) -> Ended:
    """Run the cases of every run of the tests in one pair of processes."""
    return run_ranks(
        tmp_path_factory.mktemp("sharded-resumed"),
        {
            "stopped": {**CASE, "kind": "resumed", "stop": STOP - 1, "made": MADE},
            "from_one": {**CASE, "kind": "continued", "made": MADE, "checkpoints": str(of_one)},
            "disk_full": {**CASE, "trial": "DiskFull", "made": {**MADE, **OFTEN}, "fails": True},
        },
    )


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory, of_one: Path) -> Ended:
    """Run the other ones."""
    return run_ranks(
        tmp_path_factory.mktemp("more"),
        {
            "random": {**CASE, "trial": "Random", "kind": "resumed", "stop": 10, "made": RANDOM},
            "replicated_from_one": {**CASE, "kind": "continued", "made": REPLICATED, "checkpoints": str(of_one)},
            "replicated": {**CASE, "kind": "resumed", "stop": STOP - 1, "made": REPLICATED},
            "late": {**CASE, "trial": "WrittenLate", "made": {**MADE, **OFTEN, "batches": 10}},
            "plainly": {**CASE, "made": {**MADE, **OFTEN, "batches": 10}},
        },
    )


def read(folder: Path, uuid: str, into: Path) -> dict[str, Any]:
    """Return the whole state in a checkpoint."""
    CheckpointStorage(str(folder)).fetch(uuid, into)
    state = trial_state.read(into)
    sharded_state.put_back(state, into)
    return state


def first_of(pair: Ended, name: str) -> tuple[Path, Any]:
    """Return the storage and the manifest of the checkpoint at which a trial was stopped."""
    folder = pair.folder / name / "parts"
    return folder, min(CheckpointStorage(str(folder)).list(), key=lambda manifest: manifest.batch)


def test_stopping_changes_nothing_on_any_slot(pair: Ended, tmp_path: Path) -> None:
    assert_nothing_changed(pair, tmp_path, "stopped")


@pytest.mark.long
def test_stopping_changes_nothing_that_a_trial_draws(more: Ended, tmp_path: Path) -> None:
    assert_nothing_changed(more, tmp_path, "random")


def assert_nothing_changed(pair: Ended, tmp_path: Path, name: str) -> None:
    assert pair.codes == [0, 0], "\n".join(pair.outputs)
    for rank in pair.results(name):
        assert 0 < rank["stopped"] < BATCHES
        for what in ("models", "optimizers", "validation", "training"):
            assert same(rank["whole"][what], rank["parts"][what]), what
        assert rank["whole"]["facts"]["drawn"] == rank["parts"]["facts"]["drawn"]
    uuids = pair.results(name)[0]["uuids"]
    whole, parts = (
        read(pair.folder / name / part, uuid, tmp_path / part)
        for part, uuid in zip(("whole", "parts"), uuids, strict=True)
    )
    assert same(whole, parts)
    assert all(one.numel() for model in whole["models_state_dict"] for one in model.values())


def test_each_slot_writes_its_part(pair: Ended) -> None:
    _, manifest = first_of(pair, "stopped")
    sizes = {file.path: file.size for file in manifest.files}
    shards = [sizes[f"sharded/__{rank}_0.distcp"] for rank in range(2)]
    assert "sharded/.metadata" in sizes
    assert 0.8 < shards[0] / shards[1] < 1.25
    assert sum(shards) > 10 * (sizes["state_dict.pth"] + sizes["ranks/1/state_dict.pth"])


@pytest.mark.long
def test_training_goes_on_while_the_parts_are_written(more: Ended, tmp_path: Path) -> None:
    for rank in more.results("late"):
        assert rank["facts"]["overtaken"] == 2
    late, plain = (
        sorted(CheckpointStorage(str(more.folder / name)).list(), key=lambda manifest: manifest.batch)
        for name in ("late", "plainly")
    )
    assert [manifest.batch for manifest in late] == [manifest.batch for manifest in plain] == [5, 10]
    for one, other in zip(late, plain, strict=True):
        what = f"what the checkpoint of batch {one.batch} holds"
        assert same(
            read(more.folder / "late", one.uuid, tmp_path / one.uuid)["models_state_dict"],
            read(more.folder / "plainly", other.uuid, tmp_path / other.uuid)["models_state_dict"],
        ), what


def test_a_part_that_cannot_be_written_fails_every_slot(pair: Ended) -> None:
    for rank in pair.results("disk_full"):
        assert rank["error"] == "DiskFullError"
        assert "No space left on device" in rank["text"]
        assert 5 <= rank["batches"] <= 10
    assert "slot 1" in pair.results("disk_full")[0]["text"]


def test_two_slots_then_one(pair: Ended, alone: CaseRun, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert_two_then_one(first_of(pair, "stopped"), alone)
    assert "was made on 2 slot(s), the trial has 1 now" in caplog.text


@pytest.mark.long
def test_two_slots_with_whole_models_then_one(more: Ended, alone: CaseRun) -> None:
    assert_two_then_one(first_of(more, "replicated"), alone)


def assert_two_then_one(checkpoint: tuple[Path, Any], alone: CaseRun) -> None:
    folder, manifest = checkpoint
    assert manifest.batch % 3  # gradients are waiting
    run = CaseRun(folder, **REPLICATED)
    run.run(sharded_trials.Sharded, resume=manifest)
    found, expected = run.result(), alone.result()
    assert found["training"][0][0] == manifest.batch + 1
    assert largest_difference(found["models"], expected["models"]) < 5e-6
    assert not any(hasattr(value, "full_tensor") for model in run.trial.context.models for value in model.parameters())


def test_one_slot_then_two(pair: Ended, alone: CaseRun) -> None:
    assert_one_then_two(pair.results("from_one"), alone)


@pytest.mark.long
def test_one_slot_then_two_with_whole_models(more: Ended, alone: CaseRun) -> None:
    assert_one_then_two(more.results("replicated_from_one"), alone)


def assert_one_then_two(ranks: list[dict[str, Any]], alone: CaseRun) -> None:
    expected = alone.result()
    for rank in ranks:
        assert rank["training"][0][0] == STOP + 1
        assert largest_difference(rank["models"], expected["models"]) < 5e-6
        assert rank["optimizers"][0]["state"].keys() == expected["optimizers"][0]["state"].keys()


def test_a_plain_process_loads_the_whole_model(pair: Ended, tmp_path: Path) -> None:
    folder, _ = first_of(pair, "stopped")
    manifest = max(CheckpointStorage(str(folder)).list(), key=lambda one: one.batch)
    CheckpointStorage(str(folder)).fetch(manifest.uuid, tmp_path / "checkpoint")
    trial = sharded_trials.Sharded(PyTorchTrialContext(CaseRun(tmp_path, **MADE).environment))
    trial_state.load_models(tmp_path / "checkpoint", trial.context)
    loaded = [dict(model.state_dict()) for model in trial.context.models]
    assert type(trial.model) is sharded_trials.Blocks
    assert all(type(value) is torch.Tensor for model in loaded for value in model.values())
    assert largest_difference(loaded, pair.results("stopped")[0]["parts"]["models"]) == 0
