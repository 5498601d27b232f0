"""Searches that train in stages: which trials train how long, by the figures that Determined's own had."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_search import SPACE, Ran, configuration, run

from det_native.errors import ConfigurationError
from det_native.search import CreateTrial, Shutdown, Started, TrialCompleted, TrialFailed, make_searcher
from det_native.search.brackets import (
    at_once_by_bracket,
    rung_units,
    rungs_of_mode,
    trials_by_weight,
    trials_of_budget,
    useful_rungs,
)
from det_native.search.make import check_search

SHA = {"name": "sync_halving", "num_rungs": 4, "max_length": 80_000, "budget": {"batches": 48_000}}
ASHA = {"name": "async_halving", "num_rungs": 3, "max_length": 900, "max_trials": 12, "divisor": 3}
PBT = {
    "name": "pbt",
    "population_size": 2,
    "num_rounds": 2,
    "length_per_round": 200,
    "replace_function": {"truncate_fraction": 0.5},
    "explore_function": {"resample_probability": 0.0, "perturb_factor": 0.1},
}
STAGED: list[dict[str, Any]] = [
    SHA | {"max_length": 800, "budget": {"batches": 4_800}},
    ASHA,
    ASHA | {"stop_once": True},
    ASHA | {"max_concurrent_trials": 2},
    {"name": "adaptive", "max_length": 6_400, "budget": {"batches": 102_400}, "mode": "conservative", "max_rungs": 3},
    {"name": "adaptive_simple", "max_length": 900, "max_trials": 13, "divisor": 3},
    {"name": "adaptive_asha", "max_length": 900, "max_trials": 20, "divisor": 3, "mode": "conservative"},
    {"name": "adaptive_asha", "max_length": 64, "max_trials": 10, "max_concurrent_trials": 3, "stop_once": True},
    {"name": "adaptive", "max_length": 2, "budget": {"batches": 30}},  # most of its rungs end after 1 batch
    {"name": "async_halving", "num_rungs": 5, "max_length": 9, "max_trials": 9, "divisor": 2},
    PBT | {"population_size": 5, "num_rounds": 3},
]
NAMES = [f"{each['name']}-{number}" for number, each in enumerate(STAGED)]


def lengths(ran: Ran) -> list[list[int]]:
    return [ran.lengths[request] for request in sorted(ran.lengths)]


def by_length(ran: Ran) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    for one in lengths(ran):
        found[tuple(one)] = found.get(tuple(one), 0) + 1
    return found


def test_arithmetic_of_brackets() -> None:
    assert rung_units(5_120_050, 4, 4) == [80_000, 320_003, 1_280_012, 5_120_050]
    assert rung_units(2, 4, 4) == [1, 1, 1, 2]
    assert trials_of_budget(3_072_050, 5_120_050, 4, 4) == [11, 2, 1, 1]
    assert [rungs_of_mode(mode, 5) for mode in ("aggressive", "standard", "conservative")] == [
        [5],
        [5, 4, 3],
        [5, 4, 3, 2, 1],
    ]
    assert rungs_of_mode("standard", 4) == [4, 3, 2]
    assert trials_by_weight(20, 3, [3, 2, 1]) == [12, 5, 3]
    assert trials_by_weight(50, 3, [4, 3]) == [35, 15]
    assert trials_by_weight(50, 4, [3, 2]) == [37, 13]
    assert trials_by_weight(100, 4, [4, 3, 2]) == [70, 22, 8]
    assert at_once_by_bracket(0, 3, [9, 3, 1]) == [3, 3, 3]
    assert at_once_by_bracket(11, 3, [9, 3, 1]) == [4, 4, 3]
    assert at_once_by_bracket(0, 4, [40, 10]) == [10, 10]
    assert at_once_by_bracket(1, 4, [40, 10]) == [1, 1]
    assert useful_rungs(5, 1_000, 27, 3) == 4
    assert useful_rungs(5, 1_000, 125, 5) == 4  # whose logarithm is a hair below 3
    assert useful_rungs(5, 1, 100, 4) == 1


@given(
    max_length=st.integers(1, 10**7), divisor=st.floats(1.1, 10), rungs=st.integers(1, 8), budget=st.integers(1, 10**8)
)
def test_rungs_never_shrink_and_never_gain_trials(max_length: int, divisor: float, rungs: int, budget: int) -> None:
    units = rung_units(max_length, divisor, rungs)
    assert units[-1] == max_length
    assert units == sorted(units)
    assert units[0] >= 1
    trials = trials_of_budget(budget, max_length, divisor, rungs)
    assert trials == sorted(trials, reverse=True)
    assert trials[-1] >= 1


@given(
    max_trials=st.integers(1, 10_000),
    divisor=st.floats(1.1, 10),
    max_rungs=st.integers(1, 8),
    at_once=st.integers(0, 50),
    mode=st.sampled_from(["aggressive", "standard", "conservative"]),
)
def test_brackets_share_all_trials(max_trials: int, divisor: float, max_rungs: int, at_once: int, mode: Any) -> None:
    brackets = rungs_of_mode(mode, useful_rungs(max_rungs, 10_000, max_trials, divisor))
    assert brackets == sorted(brackets, reverse=True)
    trials = trials_by_weight(max_trials, divisor, brackets)
    assert sum(trials) == max(max_trials, sum(trials))
    assert min(trials) >= 1
    if max_trials >= 2 * len(brackets):
        assert sum(trials) <= max_trials + len(brackets)
    limits = at_once_by_bracket(at_once, divisor, trials)
    assert min(limits) >= 1
    assert at_once == 0 or sum(limits) == max(at_once, len(brackets))


def test_synchronous_halving_by_its_budget() -> None:
    ran = run(configuration(**SHA), lambda request, units: request / 100)
    assert lengths(ran) == [[1_250, 5_000, 20_000, 80_000], [1_250, 5_000]] + [[1_250]] * 9
    assert ran.closed == set(range(11))
    assert ran.failed is False


def test_greater_metrics_are_better_where_that_is_said() -> None:
    ran = run(configuration(**SHA, smaller_is_better=False), lambda request, units: request / 100)
    assert ran.lengths[10] == [1_250, 5_000, 20_000, 80_000]
    assert ran.lengths[9] == [1_250, 5_000]


def test_a_trial_that_fails_is_the_worst_of_its_rung() -> None:
    ran = run(configuration(**SHA), lambda request, units: request / 100, fails=lambda request, units: request == 0)
    assert ran.lengths[0] == [1_250]
    assert ran.lengths[1] == [1_250, 5_000, 20_000, 80_000]
    assert ran.closed == set(range(1, 11))
    assert ran.failed is False


def test_adaptive_runs_the_trials_that_determineds_did() -> None:
    config = configuration(
        name="adaptive_asha", max_length=900, max_trials=5, mode="standard", max_rungs=2, divisor=3,
        max_concurrent_trials=5,
    )  # fmt: skip
    ran = run(config, lambda request, units: (request + 1) / 10)
    assert lengths(ran) == [[300, 900], [300], [300], [900], [900]]
    adaptive = configuration(
        name="adaptive", max_length=3_200, budget={"batches": 6_400}, mode="standard", max_rungs=2
    )  # fmt: skip
    assert lengths(run(adaptive, lambda request, units: (request + 1) / 10)) == [[800, 3_200], [800], [3_200]]


def test_asynchronous_halving_promotes_whoever_is_among_the_best_now() -> None:
    searcher = make_searcher(configuration(**ASHA, max_concurrent_trials=3))
    assert [action.request for action in searcher.handle(Started()) if isinstance(action, CreateTrial)] == [0, 1, 2]
    assert [type(one).__name__ for one in searcher.handle(TrialCompleted(0, 0.5, 100))] == ["CreateTrial"]
    assert [type(one).__name__ for one in searcher.handle(TrialCompleted(1, 0.4, 100))] == ["CreateTrial"]
    [promoted] = searcher.handle(TrialCompleted(2, 0.9, 100))
    assert (type(promoted).__name__, promoted.request, promoted.units) == ("TrainTo", 1, 300)  # type: ignore[union-attr]
    # Another is better now: it is promoted though the share of a third has no room for two; the first one trains on.
    assert [one.request for one in searcher.handle(TrialCompleted(3, 0.1, 100))] == [3]  # type: ignore[union-attr]


def test_asynchronous_halving_trains_a_third_of_each_rung_on() -> None:
    ran = run(configuration(**ASHA | {"max_trials": 27}), lambda request, units: -request)  # each better than before
    assert ran.failed is False
    assert ran.closed == set(range(27))
    promoted = sum(len(one) > 1 for one in lengths(ran))
    assert promoted > 9, "values that get better and better promote more than a third"
    ran = run(configuration(**ASHA | {"max_trials": 27}), lambda request, units: request)
    assert by_length(ran) == {(100,): 18, (100, 300): 6, (100, 300, 900): 3}


def test_a_trial_is_stopped_for_good_with_stop_once() -> None:
    ran = run(configuration(**ASHA, stop_once=True, max_concurrent_trials=1), lambda request, units: request)
    assert ran.lengths[0] == [100, 300, 900], "nobody was there to compare the first one with"
    assert all(one[0] == 100 for one in lengths(ran))
    assert ran.most_open == 1


def test_population_of_two() -> None:
    ran = run(configuration(**PBT), lambda request, units: request)
    assert lengths(ran) == [[200, 400], [200], [200]]
    assert ran.created[2].parent == 0
    before, after = ran.created[0].hparams["x"], ran.created[2].hparams["x"]
    assert after in (pytest.approx(before * 1.1), pytest.approx(before * 0.9), 1.0)


def test_population_without_truncation_lives_on() -> None:
    config = configuration(
        **PBT | {"population_size": 3, "num_rounds": 4, "replace_function": {"truncate_fraction": 0}}
    )
    assert lengths(run(config, lambda request, units: request)) == [[200, 400, 600, 800]] * 3


def test_the_copies_of_copies_have_their_parents_hyperparameters_changed() -> None:
    config = configuration(**PBT | {"num_rounds": 4}, smaller_is_better=False)
    ran = run(config, lambda request, units: request)
    line = [ran.created[request] for request in (1, 2, 3, 4)]
    assert [trial.parent for trial in line] == [None, 1, 2, 3]
    for parent, child in itertools.pairwise(line):
        assert child.hparams["x"] in (
            pytest.approx(parent.hparams["x"] * 1.1),
            pytest.approx(parent.hparams["x"] * 0.9),
            1.0,
        )


@pytest.mark.parametrize(
    ("searcher", "trials"),
    [
        (SHA | {"max_length": 20, "num_rungs": 3, "budget": {"batches": 1_000_000}}, "340,425"),
        ({"name": "adaptive", "max_length": 20, "budget": {"batches": 10**12}}, "trials, more than the 10,000"),
        (PBT | {"population_size": 9_000, "num_rounds": 3}, "18,000"),
    ],
)
def test_a_search_of_too_many_trials_is_refused(searcher: dict[str, Any], trials: str) -> None:
    with pytest.raises(ConfigurationError, match=trials) as caught:
        check_search(configuration(**searcher))
    assert caught.value.problems[0].where == "searcher"


@pytest.mark.parametrize(
    ("searcher", "units"),
    [
        (ASHA | {"max_length": {"records": 100}}, "11 records"),
        (SHA | {"max_length": {"records": 100}, "budget": {"records": 900}}, "1 record"),
        ({"name": "adaptive_asha", "max_length": {"records": 500}, "max_trials": 20}, "31 records"),
        ({"name": "adaptive_simple", "max_length": {"records": 500}, "max_trials": 20}, "1 record"),
        (PBT | {"length_per_round": {"records": 31}}, "31 records"),
    ],
)
def test_stages_of_less_than_a_batch_are_refused(searcher: dict[str, Any], units: str) -> None:
    with pytest.raises(ConfigurationError, match=f"has trials train for {units} first, which is less than one batch"):
        check_search(configuration(**searcher))
    check_search(configuration(**searcher, space=SPACE | {"global_batch_size": 1}))


@pytest.mark.parametrize("searcher", [SHA, STAGED[4], PBT], ids=["sync_halving", "adaptive", "pbt"])
def test_as_many_trials_are_counted_as_there_are(searcher: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    created = len(run(configuration(**searcher), lambda request, units: request).created)
    monkeypatch.setattr("det_native.search.make.MOST_TRIALS", created)
    check_search(configuration(**searcher))
    monkeypatch.setattr("det_native.search.make.MOST_TRIALS", created - 1)
    with pytest.raises(ConfigurationError, match=f"comes to {created} trials"):
        check_search(configuration(**searcher))


def test_a_rung_that_ends_where_the_one_before_does_asks_for_no_training() -> None:
    config = configuration(name="async_halving", num_rungs=4, max_length=4, max_trials=4, divisor=2)
    assert rung_units(4, 2, 4) == [1, 1, 2, 4]
    ran = run(config, lambda request, units: request)
    assert lengths(ran) == [[1, 2], [1], [1], [1]]
    assert ran.closed == set(range(4))
    assert ran.failed is False


@pytest.mark.parametrize("searcher", STAGED, ids=NAMES)
def test_an_experiment_fails_only_if_all_trials_do(searcher: dict[str, Any]) -> None:
    config = configuration(**searcher)
    assert run(config, lambda request, units: 0.0, fails=lambda request, units: True).failed is True
    assert run(config, lambda request, units: 0.0, fails=lambda request, units: request > 0).failed is False


@pytest.mark.parametrize("searcher", STAGED, ids=NAMES)
def test_no_number_is_worse_than_any_number(searcher: dict[str, Any]) -> None:
    def value(request: int, units: int) -> float | None:
        return [None, float("nan"), float("inf"), float("-inf")][request % 4] if request != 1 else 1e300

    ran = run(configuration(**searcher), value)
    assert ran.failed is False
    assert len(ran.lengths[1]) == max(len(one) for one in lengths(ran) if one[0] == ran.lengths[1][0])


@pytest.mark.parametrize("searcher", STAGED, ids=NAMES)
def test_trials_that_end_by_themselves_keep_their_value(searcher: dict[str, Any]) -> None:
    ran = run(configuration(**searcher), lambda request, units: request, over=lambda request, units: True)
    assert all(len(one) == 1 for one in lengths(ran)), "nobody is asked to train on"
    assert ran.closed == set(ran.lengths)
    assert ran.failed is False


@given(
    st.sampled_from(STAGED), st.integers(0, 2**31), st.booleans(), st.floats(0, 0.5), st.floats(0, 0.3), st.booleans()
)
def test_whatever_happens_all_comes_to_an_end_and_a_restart_changes_nothing(
    searcher: dict[str, Any], seed: int, smaller: bool, failing: float, ending: float, coarse: bool
) -> None:
    """Trials end in any order, with equal values too, fail or end by themselves; the master restarts at any time."""
    config = configuration(seed % 97, **searcher, smaller_is_better=smaller)
    draws = {name: random.Random(f"{seed} {name}") for name in ("order", "again", "restarts")}

    def drawn(name: str, request: int, units: int) -> float:
        return random.Random(f"{seed} {name} {request} {units}").random()

    def value(request: int, units: int) -> float:
        return round(drawn("value", request, units), 1) if coarse else drawn("value", request, units)

    def fails(request: int, units: int) -> bool:
        return drawn("fails", request, units) < failing

    def over(request: int, units: int) -> bool:
        return drawn("over", request, units) < ending

    ran = run(config, value, fails=fails, over=over, order=draws["order"])
    again = random.Random(f"{seed} order")
    assert ran.actions == run(config, value, fails=fails, over=over, order=again, restarts=draws["restarts"]).actions
    assert isinstance(ran.actions[-1], Shutdown)
    limit = searcher.get("max_trials")
    assert limit is None or len(ran.created) <= max(limit, 5)
    longest = config.searcher.max_length.units
    assert all(one[-1] <= longest for one in lengths(ran))
    if searcher.get("max_concurrent_trials"):
        assert ran.most_open <= max(searcher["max_concurrent_trials"], 5)


def test_the_seed_decides_on_hyperparameters() -> None:
    def created(seed: int) -> list[CreateTrial]:
        return run(configuration(seed, **ASHA), lambda request, units: request).created

    assert created(1) == created(1)
    assert [one.hparams for one in created(1)] != [one.hparams for one in created(2)]
    assert set(created(1)[0].hparams) == set(SPACE)


def test_progress_is_the_share_of_the_training_that_is_done() -> None:
    searcher = make_searcher(configuration(**PBT))
    assert searcher.progress({}) == 0.0
    searcher.handle(Started())
    assert searcher.progress({0: 0.5}) == pytest.approx(100 / 800)
    searcher.handle(TrialCompleted(0, 1.0, 200))
    assert searcher.progress({1: 0.5}) == pytest.approx(300 / 800)
    searcher.handle(TrialCompleted(1, 2.0, 200))
    assert searcher.progress({0: 0.5}) == pytest.approx(400 / 800)
    searcher.handle(TrialCompleted(0, 1.0, 400))
    searcher.handle(TrialFailed(2))
    assert searcher.progress({}) == 1.0


def test_what_is_told_late_or_too_early_changes_nothing() -> None:
    searcher = make_searcher(configuration(**PBT))
    searcher.handle(Started())
    assert searcher.handle(Started()) == []
    assert searcher.handle(TrialCompleted(0, 1.0, 100)) == [], "it was asked for 200"
    searcher.handle(TrialCompleted(0, 1.0, 200))
    assert searcher.handle(TrialFailed(0)) == [], "it waits for the others"
    with pytest.raises(ValueError, match="no trial was requested"):
        searcher.handle(TrialFailed(2))


def test_a_snapshot_of_another_searcher_is_refused() -> None:
    snapshot = make_searcher(configuration(**PBT)).snapshot()
    with pytest.raises(ValueError, match="of pbt, not of async_halving"):
        make_searcher(configuration(**ASHA), snapshot)
