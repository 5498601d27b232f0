"""Training on two slots, in two processes: equal weights, and those of one process with the same global batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import rank_trials
import torch
from rank_program import CaseRun, trial_of
from rank_rig import BACKENDS, NEEDS_HOROVOD, Ended, equal_on_both, largest_difference, run_ranks
from torch import nn

from det_native.pytorch import PyTorchTrialContext

pytestmark = pytest.mark.slow

_AGGREGATED = {"aggregation_frequency": 3}
CASES: dict[str, dict[str, Any]] = {
    "plain": {"trial": "PlainTrial"},
    "by_torch": {"trial": "ByHand"},
    "ddp": {"trial": "PlainTrial", "kind": "by_hand"},
    "overlapping": {"trial": "Overlapping"},
    "two_losses": {"trial": "TwoLosses"},
    "declared": {"trial": "TwoLossesDeclared"},
    "clipped": {"trial": "Clipped"},
    "aggregated": {"trial": "Clipped", "made": {"optimizations": _AGGREGATED, "batches": 9}},
    "summed": {
        "trial": "Clipped",
        "made": {"optimizations": {**_AGGREGATED, "average_aggregated_gradients": False}, "batches": 9},
    },
    "gan": {"trial": "Gan"},
    "uneven": {"trial": "Uneven", "made": {"batches": 13}},
    "unused": {"trial": "Unused"},
    "thawing": {"trial": "Thawing"},
    "shared": {"trial": "Shared"},
    "scaled": {"trial": "Scaled"},
    "normalised": {"trial": "Normalised", "made": {"min_validation_period": {"batches": 4}}},
    "normalised_ddp": {"trial": "Normalised", "kind": "by_hand"},
    "half": {"trial": "Half"},
    "compressed": {"trial": "PlainTrial", "made": {"optimizations": {"gradient_compression": True}}},
    "measured": {
        "trial": "Measured",
        "module": "measured_trials",
        "made": {
            "batches": 12,
            "min_validation_period": {"batches": 4},
            "min_checkpoint_period": {"batches": 6},
            "optimizations": {"average_training_metrics": True},
        },
    },
    "whole_set": {"trial": "WholeSet", "module": "measured_trials"},
    "stopping": {"trial": "Stopping"},
    "random": {"trial": "Random"},
    "sparse": {"trial": "Sparse", "fails": True},
    "unlike": {"trial": "Unlike", "fails": True},
}


@pytest.fixture(scope="module")
def pair_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ended]:
    """Run all cases in one pair of processes for each backend."""
    return cache(lambda backend: run_ranks(tmp_path_factory.mktemp(backend), CASES, backend=backend))


@pytest.fixture(scope="module", params=BACKENDS)
def pair(request: pytest.FixtureRequest, pair_of: Callable[[str], Ended]) -> Ended:
    """Return how all cases ended over a backend."""
    return pair_of(request.param)


@pytest.fixture
def alone(tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Run a case in this process, with the same global batches."""

    def run(name: str) -> dict[str, Any]:
        made = CaseRun(tmp_path / name, **CASES[name].get("made", {}))
        made.run(trial_of(CASES[name]))
        return made.result()

    return run


def test_both_processes_ended_well(pair: Ended) -> None:
    assert pair.codes == [0, 0], "\n".join(pair.outputs)


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "aggregated",
        "gan",
        "scaled",
        "whole_set",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("two_losses", "declared", "clipped", "summed", "thawing", "shared")
        ),
    ],
)
def test_two_slots_train_as_one_with_the_same_batches(
    pair: Ended, alone: Callable[[str], dict[str, Any]], name: str
) -> None:
    found, expected = equal_on_both(pair, name), alone(name)
    start = CaseRun(Path(), **CASES[name].get("made", {})).environment
    torch.manual_seed(start.trial_seed)
    fresh = trial_of(CASES[name])(PyTorchTrialContext(start)).context.models
    moved = largest_difference([dict(model.state_dict()) for model in fresh], expected["models"])
    difference = largest_difference(found["models"], expected["models"])
    assert difference < 2e-6
    assert moved > 1000 * difference  # the comparison can tell trained from untrained


def test_it_is_what_ddp_does(pair: Ended) -> None:
    for ours, theirs in (("plain", "ddp"), ("normalised", "normalised_ddp")):
        by_hand, _ = pair.results(theirs)
        found = pair.results(ours)[0]
        assert largest_difference(found["models"], by_hand["models"]) == 0


@NEEDS_HOROVOD
def test_horovod_trains_some_cases_as_torch_does(pair_of: Callable[[str], Ended], tmp_path: Path) -> None:
    names = ["plain", "aggregated", "gan", "uneven", "unused", "scaled", "measured"]
    by_horovod = run_ranks(tmp_path, {name: CASES[name] for name in names}, backend="horovod")
    assert by_horovod.codes == [0, 0], "\n".join(by_horovod.outputs)
    assert_same_models(by_horovod, pair_of("torch"), names)


@pytest.mark.long
@NEEDS_HOROVOD
def test_horovod_trains_as_torch_does(pair_of: Callable[[str], Ended]) -> None:
    names = [name for name, case in CASES.items() if not case.get("fails")]
    assert len(names) > 20
    assert_same_models(pair_of("horovod"), pair_of("torch"), names)


def assert_same_models(by_horovod: Ended, by_torch: Ended, names: list[str]) -> None:
    for name in names:
        ours, theirs = (ended.results(name)[0]["models"] for ended in (by_horovod, by_torch))
        assert largest_difference(ours, theirs) <= 2e-6, name


@pytest.mark.long
@NEEDS_HOROVOD
def test_three_slots_over_horovod_train_as_one_with_the_same_batches(tmp_path: Path) -> None:
    made = {"batch_size": 33}  # 11 records for each, and no epoch ends
    ended = run_ranks(tmp_path, {"gan": {"trial": "Gan", "made": made}}, size=3, backend="horovod")
    assert ended.codes == [0, 0, 0], "\n".join(ended.outputs)
    first, *others = (rank["models"] for rank in ended.results("gan"))
    assert [largest_difference(first, other) for other in others] == [0, 0]
    alone = CaseRun(tmp_path / "alone", **made)
    alone.run(rank_trials.Gan)
    assert largest_difference(first, alone.result()["models"]) < 2e-6


def test_calls_of_torch_train_as_those_of_the_context_do(pair: Ended) -> None:
    plain, by_torch = equal_on_both(pair, "plain"), equal_on_both(pair, "by_torch")
    assert largest_difference(plain["models"], by_torch["models"]) == 0


def test_the_exchange_begins_during_backward(pair: Ended) -> None:
    for rank in pair.results("overlapping"):
        assert rank["facts"]["begun"] == [1] * 8


def test_one_backward_or_two_declared_or_not(pair: Ended) -> None:
    once, declared = pair.results("two_losses")[0], pair.results("declared")[0]
    assert largest_difference(once["models"], declared["models"]) < 1e-6  # sums of the same in another order


def mean_of_two(
    trial: Any, batches: int, loss_of: Callable[[int, int, torch.Tensor, torch.Tensor], torch.Tensor]
) -> None:
    """Train as two slots do, in a loop by hand: batches dealt in turn, the mean of the two slots' gradients."""
    stream = iter(trial.build_training_data_loader().get_data_loader(repeat=True, seed=5))
    for step in range(batches):
        for slot in range(2):
            images, labels = next(stream)
            (loss_of(slot, step, images, labels) / 2).backward()  # type: ignore[no-untyped-call]
        trial.optimizer.step()
        trial.optimizer.zero_grad()


def by_hand(name: str) -> Any:
    environment = CaseRun(Path(), batch_size=16).environment
    torch.manual_seed(5)
    return trial_of(CASES[name])(PyTorchTrialContext(environment))


def test_uneven_batches_are_dealt_in_turn(pair: Ended) -> None:
    trial = by_hand("uneven")
    mean_of_two(trial, 13, lambda slot, step, images, labels: rank_trials.classified(trial.model(images), labels))
    found = equal_on_both(pair, "uneven")
    assert found["batches"] == 13
    assert largest_difference(found["models"], [dict(trial.model.state_dict())]) < 2e-6


def test_gradients_in_bfloat16(pair: Ended) -> None:
    trial = by_hand("half")
    mean_of_two(trial, 8, lambda slot, step, images, labels: trial.loss(images, labels))
    found = equal_on_both(pair, "half")
    assert {value.dtype for value in found["models"][0].values()} == {torch.bfloat16}
    # The sum of two is rounded once in any case.
    assert largest_difference(found["models"], [dict(trial.model.state_dict())]) == 0


def test_what_a_slot_does_not_use_counts_as_zero(pair: Ended) -> None:
    trial = by_hand("unused")

    def loss_of(slot: int, step: int, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        output = trial.model(images)
        return rank_trials.classified(trial.some(output) if slot == 1 and step % 2 else output, labels)

    never = {name: value.clone() for name, value in trial.never.state_dict().items()}
    mean_of_two(trial, 8, loss_of)
    found = equal_on_both(pair, "unused")
    models = [dict(model.state_dict()) for model in trial.context.models]
    assert largest_difference(found["models"], models) < 2e-6
    # What no slot uses has no gradient, so that not even its weights decay.
    assert all(bool((found["models"][1][f"1.{name}"] == value).all()) for name, value in never.items())


def test_an_overflow_on_one_slot_skips_the_step_on_both(pair: Ended) -> None:
    first, second = pair.results("scaled")
    scales = [[metrics["scale"] for _, metrics in rank["training"]] for rank in (first, second)]
    assert scales[0] == scales[1] == [1024, 1024, 2048, 1024, 1024, 1024, 2048, 2048]


def test_buffers_are_those_of_the_first_slot(pair: Ended) -> None:
    equal_on_both(pair, "normalised")  # also what batch norm has gathered
    assert [batch for batch, _ in pair.results("normalised")[0]["validation"]] == [4, 8]


def test_compressed_gradients_are_nearly_the_same(pair: Ended) -> None:
    plain, compressed = equal_on_both(pair, "plain"), equal_on_both(pair, "compressed")
    assert 0 < largest_difference(plain["models"], compressed["models"]) < 1e-3


def test_validation_and_reducers_see_all_slots(pair: Ended, alone: Callable[[str], dict[str, Any]]) -> None:
    first, second = pair.results("measured")
    assert first["validation"] == second["validation"]
    for batch, metrics in first["validation"]:
        assert {"loss", "spread", "seen", "slots", "mean_label"} == metrics.keys()
        assert (metrics["seen"], metrics["slots"]) == (75, 2)
        assert batch in (4, 8, 12)
    labels = torch.cat([batch[1] for batch in by_hand("measured").build_validation_data_loader()])
    assert first["validation"][0][1]["mean_label"] == pytest.approx(float(labels.double().mean()))
    whole, plain = pair.results("whole_set")[0], pair.results("plain")[0]
    assert plain["validation"][0][1]["loss"] == pytest.approx(whole["validation"][0][1]["loss"], rel=1e-5)
    assert plain["validation"][0][1]["loss"] == pytest.approx(alone("plain")["validation"][0][1]["loss"], rel=1e-5)
    reduced = [metrics for _, metrics in first["training"] if "seen" in metrics]
    assert [metrics["seen"] for metrics in reduced] == [116, 116, 64, 52]


def test_training_metrics_are_averaged_where_asked(pair: Ended) -> None:
    first, second = pair.results("measured")
    assert [batch for batch, _ in first["training"]] == list(range(1, 13))
    assert [metrics["loss"] for _, metrics in first["training"]] == [
        metrics["loss"] for _, metrics in second["training"]
    ]
    uneven = pair.results("uneven")
    means = [(one[1]["loss"] + two[1]["loss"]) / 2 for one, two in zip(*(r["training"] for r in uneven), strict=True)]
    assert [metrics["loss"] for _, metrics in first["training"][:4]] == pytest.approx(means[:4])
    assert uneven[0]["training"] != uneven[1]["training"]


def test_callbacks_run_where_the_document_says(pair: Ended) -> None:
    first, second = (rank["facts"]["events"] for rank in pair.results("measured"))
    everywhere = [
        "on_training_epoch_start",
        "on_validation_start",
        "on_checkpoint_write_end",
        "on_checkpoint_upload_end",
    ]
    for hook in everywhere:
        assert first.count(hook) == second.count(hook) > 0
    for hook in ("on_validation_end", "on_checkpoint_end"):
        assert (first.count(hook) > 0, second.count(hook)) == (True, 0)


def test_a_learning_rate_that_the_first_slot_changes_changes_everywhere(pair: Ended) -> None:
    equal_on_both(pair, "measured")
    rates = [rank["optimizers"][0]["param_groups"][0]["lr"] for rank in pair.results("measured")]
    assert rates[0] == rates[1] < 0.1


def test_the_whole_data_set_is_evaluated_on_the_first_slot_only(pair: Ended) -> None:
    first, second = pair.results("whole_set")
    assert (first["facts"].get("evaluated"), second["facts"].get("evaluated")) == (1, None)
    assert first["validation"] == second["validation"]


def test_a_stop_that_one_slot_asks_for_ends_both_at_the_same_batch(pair: Ended) -> None:
    first = equal_on_both(pair, "stopping")
    assert first["batches"] in (5, 6)
    assert first["checkpoints"] == [first["batches"]]
    assert pair.results("stopping")[1]["checkpoints"] == []  # the first slot alone writes


def test_slots_draw_alike_in_training_and_apart_in_loading(pair: Ended) -> None:
    first, second = pair.results("random")
    assert first["facts"]["drawn"] == second["facts"]["drawn"]
    assert len(set(first["facts"]["drawn"])) == 8
    equal_on_both(pair, "random")


def test_the_place_of_a_process(pair: Ended) -> None:
    places = [rank["place"] for rank in pair.results("plain")]
    common = {"size": 2, "agents": 1, "per_slot": 16, "global": 32}
    assert places == [{"rank": rank, "local_rank": rank, **common} for rank in range(2)]


def test_what_cannot_be_exchanged_is_refused_in_words(pair: Ended) -> None:
    for rank in pair.results("sparse"):
        assert rank["error"] == "TrialDefinitionError"
        assert "(64, 10) has a sparse gradient" in rank["text"]
        assert "sparse=True" in rank["text"]
    for rank in pair.results("unlike"):
        assert (rank["error"], rank["batches"]) == ("TrialDefinitionError", 0)
        assert "Unlike.__init__() made other models on slot 1 than on slot 0" in rank["text"]


def test_modules_stay_as_they_were_made(pair: Ended) -> None:
    names = pair.results("plain")[0]["models"][0].keys()
    assert names == nn.Sequential(*[nn.Linear(1, 1) if n % 2 == 0 else nn.ReLU() for n in range(5)]).state_dict().keys()
