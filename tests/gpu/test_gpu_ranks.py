"""Two processes of one trial, with their tensors on the GPU: on GPUs of their own by NCCL, on one by gloo."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from rank_program import CaseRun, trial_of
from rank_rig import Ended, equal_on_both, largest_difference, run_ranks

pytestmark = [pytest.mark.slow, pytest.mark.cuda]

NCCL_PROGRAM = Path(__file__).with_name("nccl_program.py")
FSDP: dict[str, Any] = {"distributed": {"strategy": "fsdp"}}
CASES: dict[str, dict[str, Any]] = {
    "plain": {"trial": "PlainTrial"},
    "ddp": {"trial": "PlainTrial", "kind": "by_hand"},
    "two_losses": {"trial": "TwoLosses"},
    "gan": {"trial": "Gan"},
    "clipped": {"trial": "Clipped", "made": {"optimizations": {"aggregation_frequency": 3}, "batches": 9}},
    "normalised": {"trial": "Normalised", "made": {"min_validation_period": {"batches": 4}}},
    "sharded": {"trial": "PlainTrial", "module": "sharded_trials", "made": FSDP, "fails": True},
}
ALIKE = [name for name in CASES if name not in ("ddp", "normalised", "sharded")]
SHARED = pytest.mark.skipif(torch.cuda.device_count() > 1, reason="every process has a GPU of its own here")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """All cases, run by two processes."""
    ended = run_ranks(tmp_path_factory.mktemp("ranks"), CASES)
    assert ended.codes == [0, 0], "\n".join(ended.outputs)
    return ended


def _on_host(states: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value.cpu() for name, value in state.items()} for state in states]


@pytest.mark.parametrize("name", ALIKE)
def test_the_weights_are_those_of_one_process(name: str, pair: Ended, tmp_path: Path) -> None:
    two = equal_on_both(pair, name)
    run = CaseRun(tmp_path, **CASES[name].get("made", {}))
    run.run(trial_of(CASES[name]))
    one = run.result()
    assert {value.device.type for state in two["models"] for value in state.values()} == {"cuda"}
    assert largest_difference(_on_host(two["models"]), _on_host(one["models"])) < 1e-4


def test_the_weights_are_those_of_torchs_own_wrapper(pair: Ended) -> None:
    [ours, theirs] = [equal_on_both(pair, "plain")["models"], pair.results("ddp")[0]["models"]]
    assert largest_difference(_on_host(ours), _on_host(theirs)) < 1e-5


def test_running_means_are_those_of_the_first(pair: Ended) -> None:
    assert equal_on_both(pair, "normalised")["batches"] == 8


@SHARED
def test_a_gpu_for_two_is_said(pair: Ended) -> None:
    assert "share 1 GPU(s)" in pair.outputs[0]
    for found in pair.results("sharded"):
        assert found["error"] == "UnsupportedFeatureError"
        assert "slots of this trial share one GPU" in found["text"]


def test_slots_that_would_wait_for_each_other_for_ever_say_where(tmp_path: Path) -> None:
    case = {"trial": "LeavesOut", "made": {"batches": 8, "hparams": {"left_out": 7}}}
    ended = run_ranks(tmp_path, {"leaves_out": case}, long_seconds=1.0)
    assert ended.codes == [3, 3], "\n".join(ended.outputs)
    errors = [ended.error(rank) for rank in range(2)]
    assert any("rank 0: in backward() of rank_trials.py" in text for _, text in errors), errors


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_nccl_leaves_the_gradients_of_one_process_as_they_are(strategy: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(NCCL_PROGRAM), str(tmp_path), strategy],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, sys.path)]), "PYTHONFAULTHANDLER": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    by_nccl, alone = torch.load(tmp_path / "models.pt")
    assert {value.device.type for state in by_nccl for value in state.values()} == {"cuda"}
    assert largest_difference(_on_host(by_nccl), _on_host(alone)) < 1e-6
