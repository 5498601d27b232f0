"""A loop over ``context.train()`` that goes another way on some slots: all end after the same batch, or in words.

Without that, one slot would wait for ever for what the other has left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import rank_rig
from rank_rig import Ended, largest_difference, run_ranks

pytestmark = pytest.mark.slow

EPOCHS = {"epochs": 3}  # of 5 batches on each of two slots
LEFT: dict[str, dict[str, Any]] = {
    "after_by_the_first": {"way": "leaves_after", "given": {"batches": [4, 99]}},
    "after_by_the_second": {"way": "leaves_after", "given": {"batches": [99, 4]}},
    "after_the_epoch": {"way": "leaves_after", "given": {"batches": [99, 5]}},
    "after_by_both": {"way": "leaves_after", "given": {"batches": [4, 4]}},
    "after_at_neighbours": {"way": "leaves_after", "given": {"batches": [4, 5]}},
    "before_by_the_first": {"way": "leaves_before", "given": {"batches": [5, 99]}},
    "before_by_the_second": {"way": "leaves_before", "given": {"batches": [99, 5]}},
    "before_with_reports": {"way": "leaves_before", "given": {"batches": [99, 5], "report": True}},
    "before_by_hand": {"way": "leaves_before_by_hand", "given": {"batches": [5, 99]}},
    "after_by_hand": {"way": "leaves_after_by_hand", "given": {"batches": [99, 4]}},
    "before_by_both": {"way": "leaves_before", "given": {"batches": [5, 5]}},
    "sliced": {"way": "sliced", "given": {"batches": [99, 4]}},
    "named": {"way": "named", "given": {"batches": [99, 4]}},
    "after_the_last": {"way": "leaves_after", "given": {"batches": [15, 99]}},
}
# The machine code is looked at elsewhere.
COMPILED = {"optimizations": {"torch_compile": {"backend": "aot_eager"}}}
WITH_COMPILER: dict[str, dict[str, Any]] = {
    "not_compiled": {"way": "goes_through", "made": EPOCHS | {"dropout": 0.0}},
    "compiled": {"way": "goes_through", "made": EPOCHS | {"dropout": 0.0} | COMPILED},
}
OTHERS: dict[str, dict[str, Any]] = {
    "whole": {"way": "goes_through"},
    "passes": {"way": "passes", "given": {"batches": [99, 4]}},
    "by_hand": {"way": "steps_by_hand"},
    "means_of_one": {
        "way": "reports_on_one",
        "given": {"rank": 0, "every": 2},
        "made": {"optimizations": {"average_training_metrics": True}},
    },
    "means_of_the_other": {
        "way": "reports_on_one",
        "given": {"rank": 1, "every": 3},
        "made": {"optimizations": {"average_training_metrics": True}},
    },
}


# Of LEFT, in `make test`.
FEW = (
    "after_by_the_second",
    "after_the_epoch",
    "before_by_the_first",
    "before_with_reports",
    "after_by_hand",
    "sliced",
    "after_the_last",
)
MORE = [name for name in LEFT if name not in FEW]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Cases on two slots."""
    return run_all(tmp_path_factory.mktemp("loops"), {name: LEFT[name] for name in FEW} | OTHERS)


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """All other ones."""
    return run_all(tmp_path_factory.mktemp("more"), {name: LEFT[name] for name in MORE})


def run_all(folder: Path, cases: dict[str, dict[str, Any]]) -> Ended:
    ended = run_loops(folder, {name: {**case, "made": EPOCHS | case.get("made", {})} for name, case in cases.items()})
    assert ended.codes == [0, 0], "\n".join(ended.outputs)
    return ended


def run_loops(folder: Path, cases: dict[str, dict[str, Any]]) -> Ended:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_rig, "PROGRAM", Path(__file__).with_name("loop_program.py"))
        return run_ranks(folder, cases)


# What each ends after, and where it validates: an epoch is 5 batches.
ENDS = {
    "after_the_epoch": (5, [5]),
    "after_the_last": (15, [5, 10, 15]),
    "before_with_reports": (5, [5]),  # the first slot has reported of the batch
}


@pytest.mark.parametrize("name", FEW)
def test_slots_that_leave_the_loop_at_different_batches_end_after_the_same(pair: Ended, name: str) -> None:
    assert_ended_together(pair, name)


@pytest.mark.long
@pytest.mark.parametrize("name", MORE)
def test_slots_that_leave_it_in_further_ways_end_after_the_same(more: Ended, name: str) -> None:
    assert_ended_together(more, name)


def assert_ended_together(pair: Ended, name: str) -> None:
    first, second = pair.results(name)
    batches, validated = ENDS.get(name, (4, [4]))
    for one in (first, second):
        assert one["outcome"] == (batches, False)
        assert [batch for batch, _ in one["validation"]] == validated
    assert [batch for batch, _ in first["training"]] == list(range(1, batches + 1))
    assert first["checkpoints"][-1] == batches
    assert first["rate"] == second["rate"] == pytest.approx([0.05 * 0.9**batches])
    assert first["validation"] == second["validation"]
    assert largest_difference([weights(first)], [weights(second)]) == 0


def weights(one: dict[str, Any]) -> dict[str, Any]:
    # Buffers are those of the first slot at the beginning of a batch: after the last forward each slot has its own.
    return {name: value for name, value in one["model"].items() if "running" not in name and "tracked" not in name}


def test_what_was_trained_before_is_that_of_a_loop_that_goes_on(pair: Ended) -> None:
    whole = pair.results("whole")[0]["training"]
    for name in ("after_by_the_second", "before_by_the_first", "sliced"):
        assert pair.results(name)[0]["training"] == whole[:4]


def test_a_slot_that_passes_a_batch_which_others_train_on_is_named(pair: Ended) -> None:
    first, second = pair.results("passes")
    assert first["error"] == second["error"] == "TrialDefinitionError"
    assert "in batch 4 of the loop over context.train(): another slot does not train on it" in first["text"]
    assert "this slot has not trained on it" in second["text"]


def test_an_optimizer_that_is_stepped_by_hand_trains_the_same(pair: Ended) -> None:
    whole = pair.results("whole")
    for one, other in zip(pair.results("by_hand"), whole, strict=True):
        assert largest_difference([weights(one)], [weights(other)]) == 0
        assert (one["validation"], one["rate"]) == (other["validation"], other["rate"])


def test_training_metrics_that_one_slot_reports_are_their_own_means(pair: Ended) -> None:
    whole = [dict(one["training"]) for one in pair.results("whole")]
    for name, rank, batches in (("means_of_one", 0, range(1, 16, 2)), ("means_of_the_other", 1, range(1, 16, 3))):
        rows = pair.results(name)[0]["training"]
        assert rows == [(batch, whole[rank][batch]) for batch in batches]


@pytest.mark.long
def test_compiled_models_train_in_a_loop_as_others_do(tmp_path: Path) -> None:
    pair = run_loops(tmp_path, WITH_COMPILER)
    assert pair.codes == [0, 0], "\n".join(pair.outputs)
    plain, (first, second) = pair.results("not_compiled")[0], pair.results("compiled")
    assert plain["graphs"] == 0
    assert min(first["graphs"], second["graphs"]) >= 2  # for training, and for validation
    assert largest_difference([weights(first)], [weights(second)]) == 0
    assert largest_difference([weights(first)], [weights(plain)]) < 1e-5
    assert first["outcome"] == plain["outcome"] == (15, False)


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.long), 1])
def test_a_disk_that_is_full_is_no_error_of_the_users_on_any_slot(tmp_path: Path, rank: int) -> None:
    made = {"min_checkpoint_period": {"batches": 4}}
    case = {"way": "finds_the_disk_full", "given": {"rank": rank}, "made": made, "fatal": True}
    ended = run_loops(tmp_path, {"full": case})
    assert ended.codes == [3, 3], "\n".join(ended.outputs)
    kind, text = ended.error(rank)
    assert kind == "StorageError", text
    assert text.startswith("The checkpoint of batch 4 cannot be written to /")
    assert ended.error(1 - rank)[0] == "RankLostError"
