"""``distributed.strategy: fsdp`` on two slots, in two processes: each has half of the models, trained as one would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rank_program import CaseRun, trial_of
from rank_rig import Ended, equal_on_both, largest_difference, run_ranks

from det_native.pytorch import PyTorchTrialContext

pytestmark = pytest.mark.slow

FSDP: dict[str, Any] = {"distributed": {"strategy": "fsdp"}}
BY_BLOCK: dict[str, Any] = {"distributed": {"strategy": "fsdp", "fsdp_layers": ["Block"]}}
_AGGREGATED = {"aggregation_frequency": 3}


def _case(trial: str, *, fails: bool = False, **made: Any) -> dict[str, Any]:
    return {"trial": trial, "module": "sharded_trials", "made": FSDP | made, "fails": fails}


CASES: dict[str, dict[str, Any]] = {
    "plain": _case("PlainTrial"),
    "blocks": _case("Sharded", **BY_BLOCK, min_validation_period={"batches": 4}),
    "one_batch": _case("OneBatch"),
    "aggregated": _case("Sharded", **BY_BLOCK, optimizations=_AGGREGATED, batches=9),
    "two_losses": _case("TwoLosses"),
    "looks_twice": _case("LooksTwice", **BY_BLOCK),
    "scaled": _case("Scaled"),
    "whole_set": _case("WholeSet"),
    "measured": _case("EvenMeasured", batches=8, min_validation_period={"batches": 4}),
    "half": _case("HalfBatches"),
    "compressed": _case("PlainTrial", optimizations={"gradient_compression": True}),
    "too_early": _case("TooEarly", fails=True),
    "older_torch": _case("OlderTorch", fails=True),
    "scalar": _case("ScalarParameter", fails=True),
    "unlike": _case("Unlike", fails=True),
    "half_models": _case("HalfModels", fails=True),
    "misnamed": _case("Sharded", distributed={"strategy": "fsdp", "fsdp_layers": ["Bloc"]}, fails=True),
    "untied": _case("Sharded", distributed={"strategy": "fsdp", "fsdp_layers": ["Linear"]}, fails=True),
    "common": _case("CommonWeights", fails=True),
}


# Trained in `make lanes` only.
MORE = ("plain", "one_batch", "two_losses", "looks_twice", "whole_set", "half", "compressed")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Run the cases of every run of the tests in one pair of processes."""
    cases = {name: case for name, case in CASES.items() if name not in MORE}
    return run_ranks(tmp_path_factory.mktemp("sharded"), cases)


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Run the other ones."""
    return run_ranks(tmp_path_factory.mktemp("more"), {name: CASES[name] for name in MORE})


@pytest.fixture
def alone(tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Run a case in this process, with the same global batches."""

    def run(name: str) -> dict[str, Any]:
        made = CaseRun(tmp_path / name, **CASES[name]["made"])
        made.run(trial_of(CASES[name]))
        return made.result()

    return run


def test_both_processes_ended_well(pair: Ended) -> None:
    assert pair.codes == [0, 0], "\n".join(pair.outputs)


@pytest.mark.parametrize("name", ["blocks", "aggregated", "scaled"])
def test_it_trains_as_one_slot_does_with_the_same_batches(
    pair: Ended, alone: Callable[[str], dict[str, Any]], name: str
) -> None:
    assert_as_one_slot(equal_on_both(pair, name), alone(name), name)


@pytest.mark.long
@pytest.mark.parametrize("name", ["plain", "one_batch", "two_losses", "looks_twice", "whole_set"])
def test_further_trials_train_as_on_one_slot(more: Ended, alone: Callable[[str], dict[str, Any]], name: str) -> None:
    assert more.codes == [0, 0], "\n".join(more.outputs)
    assert_as_one_slot(equal_on_both(more, name), alone(name), name)


def assert_as_one_slot(found: dict[str, Any], expected: dict[str, Any], name: str) -> None:
    start = CaseRun(Path(), **CASES[name]["made"]).environment
    torch.manual_seed(start.trial_seed)
    fresh = trial_of(CASES[name])(PyTorchTrialContext(start)).context.models
    moved = largest_difference([dict(model.state_dict()) for model in fresh], expected["models"])
    difference = largest_difference(found["models"], expected["models"])
    assert difference < 5e-6
    assert moved > 1000 * difference  # the comparison can tell trained from untrained
    assert found["validation"] == [
        (batch, pytest.approx(metrics, rel=1e-4)) for batch, metrics in expected["validation"]
    ]


def test_each_slot_holds_a_part(pair: Ended, alone: Callable[[str], dict[str, Any]]) -> None:
    shares = [rank["facts"]["held"] for rank in pair.results("blocks")]
    every = alone("blocks")["facts"]["held"]
    assert sum(shares) == every
    assert all(0.45 * every < share < 0.55 * every for share in shares)


def test_slots_with_fewer_validation_batches_keep_step(pair: Ended) -> None:
    ranks = pair.results("blocks")
    assert [rank["facts"]["evaluations"] for rank in ranks] == [4, 4]  # two validations, of two batches and one
    assert ranks[0]["validation"] == ranks[1]["validation"]
    assert [metrics["records"] for _, metrics in ranks[0]["validation"]] == [pytest.approx(27)] * 2


@pytest.mark.long
def test_a_slot_without_a_validation_batch_keeps_step(more: Ended) -> None:
    assert [rank["facts"]["evaluations"] for rank in more.results("one_batch")] == [1, 1]


def test_reducers_count_every_record_once(pair: Ended, alone: Callable[[str], dict[str, Any]]) -> None:
    first, second = pair.results("measured")
    assert first["validation"] == second["validation"]
    assert [(metrics["seen"], metrics["slots"]) for _, metrics in first["validation"]] == [(75, 2)] * 2
    expected = alone("measured")["validation"]
    assert [row["mean_label"] for _, row in first["validation"]] == pytest.approx(
        [row["mean_label"] for _, row in expected]
    )


def test_an_overflow_on_one_slot_skips_the_step_on_both(pair: Ended) -> None:
    scales = [[metrics["scale"] for _, metrics in rank["training"]] for rank in pair.results("scaled")]
    assert scales[0] == scales[1] == [1024, 1024, 2048, 1024, 1024, 1024, 2048, 2048]


@pytest.mark.long
def test_half_precision_is_nearly_the_same(more: Ended, alone: Callable[[str], dict[str, Any]]) -> None:
    half = equal_on_both(more, "half")
    difference = largest_difference(half["models"], alone("half")["models"])
    assert 0 < difference < 5e-3
    assert half["training"][0][1]["loss"] > half["training"][-1][1]["loss"]
    plain, compressed = equal_on_both(more, "plain"), equal_on_both(more, "compressed")
    assert 0 < largest_difference(plain["models"], compressed["models"]) < 1e-3


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("too_early", "ArgumentError", "so make the optimizer after it"),
        ("older_torch", "UnsupportedFeatureError", "fsdp needs a newer PyTorch than"),
        ("scalar", "TrialDefinitionError", "The parameter temperature of the Linear that ScalarParameter"),
        ("unlike", "TrialDefinitionError", "Unlike.__init__() made other models on slot 1 than on slot 0"),
        ("half_models", "UnsupportedFeatureError", 'use opt_level="O1"'),
        ("misnamed", "TrialDefinitionError", "fsdp_layers names Bloc, but"),
        (
            "untied",
            "TrialDefinitionError",
            "tied.weight and back.weight of the Blocks that Sharded.__init__() wraps are",
        ),
        (
            "common",
            "TrialDefinitionError",
            "The Sequential that CommonWeights.__init__() wraps has its parameter 0.weight",
        ),
    ],
)
def test_what_cannot_be_sharded_is_refused_before_training(pair: Ended, name: str, error: str, said: str) -> None:
    for rank in pair.results(name):
        assert (rank["error"], rank["batches"]) == (error, 0)
        assert said in rank["text"]
