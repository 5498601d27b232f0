"""Trials whose code says that their hyperparameters are invalid: other ones are trained instead of them."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_search import SPACE, configuration, run

from det_native.schema.config import ExperimentConfig
from det_native.search import (
    Action,
    CreateTrial,
    Searcher,
    Shutdown,
    Started,
    TrialCompleted,
    TrialFailed,
    TrialRefused,
    make_searcher,
)

RANDOM = {"name": "random", "max_length": 10, "max_trials": 3, "max_concurrent_trials": 2}
OPTUNA = {"name": "optuna", "max_length": 10, "max_trials": 3, "max_concurrent_trials": 1, "sampler": "tpe"}
ASHA = {"name": "async_halving", "num_rungs": 3, "max_length": 900, "max_trials": 12, "divisor": 3}
REPLACED: list[dict[str, Any]] = [
    ASHA,
    ASHA | {"stop_once": True},
    ASHA | {"max_concurrent_trials": 2},
    {"name": "adaptive_asha", "max_length": 900, "max_trials": 20, "divisor": 3, "mode": "conservative"},
]
NOT_REPLACED: list[dict[str, Any]] = [
    {"name": "sync_halving", "num_rungs": 4, "max_length": 800, "budget": {"batches": 4_800}},
    {"name": "pbt", "population_size": 5, "num_rounds": 3, "length_per_round": 200,
     "replace_function": {"truncate_fraction": 0.4},
     "explore_function": {"resample_probability": 0.5, "perturb_factor": 0.1}},
]  # fmt: skip


def created(actions: list[Action]) -> list[int]:
    return [action.request for action in actions if isinstance(action, CreateTrial)]


def again(config: ExperimentConfig, searcher: Searcher) -> Searcher:
    return make_searcher(config, json.loads(json.dumps(searcher.snapshot())))


def ended_by(config: ExperimentConfig, refused: set[int]) -> tuple[list[CreateTrial], bool]:
    """Run a search whose trials end in their order; return them, and whether it has failed."""
    if config.searcher.name == "optuna":
        pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    searcher = make_searcher(config)
    made: list[CreateTrial] = []
    waiting = searcher.handle(Started())
    while waiting:
        match waiting.pop(0):
            case CreateTrial() as action:
                made.append(action)
                event = TrialRefused if action.request in refused else lambda request: TrialCompleted(request, 0.5)
                searcher = again(config, searcher)
                waiting += searcher.handle(event(action.request))
                assert searcher.handle(event(action.request)) == [], "told twice"
            case Shutdown(failed):
                assert not waiting
                assert searcher.progress({}) == 1.0
                return made, failed
    raise AssertionError("it has no end")


@pytest.mark.parametrize("searcher", [RANDOM, OPTUNA], ids=["random", "optuna"])
def test_a_search_at_random_trains_another_one_instead(searcher: dict[str, Any]) -> None:
    config = configuration(**searcher)
    made, failed = ended_by(config, {0, 2})
    assert [each.request for each in made] == [0, 1, 2, 3, 4]
    assert not failed
    assert len({each.hparams["x"] for each in made}) == 5
    assert len({each.seed for each in made}) == 5
    assert made[0] == ended_by(config, set())[0][0], "what is drawn first does not hang on what comes later"


@pytest.mark.parametrize("searcher", [RANDOM, OPTUNA, *REPLACED], ids=lambda each: str(each["name"]))
def test_a_search_in_which_nothing_fits_comes_to_an_end_as_failed(searcher: dict[str, Any]) -> None:
    config = configuration(**searcher)
    made, failed = ended_by(config, set(range(10_000)))
    assert failed
    assert len(made) == 11 * searcher["max_trials"]


def test_a_single_trial_and_a_grid_have_nothing_to_train_instead() -> None:
    assert ended_by(configuration(name="single", max_length=10), {0})[1]
    grid = {"global_batch_size": 32, "x": {"type": "categorical", "vals": [1, 2, 3]}}
    made, failed = ended_by(configuration(space=grid, name="grid", max_length=10), {0, 1})
    assert [each.hparams["x"] for each in made] == [1, 2, 3]
    assert not failed
    assert ended_by(configuration(space=grid, name="grid", max_length=10), {0, 1, 2})[1]


def test_what_is_refused_is_no_failure_and_no_progress() -> None:
    searcher = make_searcher(configuration(**RANDOM))
    assert created(searcher.handle(Started())) == [0, 1]
    assert created(searcher.handle(TrialRefused(0))) == [2]
    assert searcher.progress({}) == pytest.approx(1 / 4)
    assert created(searcher.handle(TrialFailed(1))) == [3]
    assert searcher.handle(TrialRefused(0)) == []
    searcher.handle(TrialCompleted(2, 0.5))
    assert searcher.handle(TrialCompleted(3, 0.5)) == [Shutdown(failed=False)]


def test_a_refused_trial_leaves_the_rungs_and_who_comes_after_it_is_promoted() -> None:
    config = configuration(**ASHA | {"max_trials": 6, "max_concurrent_trials": 6})
    searcher = make_searcher(config)
    searcher.handle(Started())
    units = ASHA["max_length"] // 9
    actions: list[Action] = []
    for request in range(5):
        actions += searcher.handle(TrialCompleted(request, float(request), units))
    assert "TrainTo(request=0" in str(actions)
    assert "TrainTo(request=1" not in str(actions)
    told = searcher.handle(TrialRefused(0))
    assert "TrainTo(request=1" in str(told), "the best of the four that are left"
    assert created(told) == []
    assert created(again(config, searcher).handle(TrialCompleted(1, 1.0, 3 * units))) == [6], "instead of trial 0"


@pytest.mark.parametrize("number", range(len(REPLACED)))
@given(seed=st.integers(0, 10**6), refusing=st.floats(0, 0.6))
def test_a_search_in_rungs_has_as_many_valid_trials_as_it_was_to(number: int, seed: int, refusing: float) -> None:
    config = configuration(seed, **REPLACED[number])

    def drawn(name: str, request: int, units: int) -> float:
        return random.Random(f"{seed} {name} {request} {units}").random()

    def value(request: int, units: int) -> float:
        return drawn("value", request, units)

    def refuses(request: int, units: int) -> bool:
        return drawn("refuses", request, units) < refusing

    def order() -> random.Random:
        return random.Random(f"{seed} order")

    ran = run(config, value, refuses=refuses, order=order())
    again = run(config, value, refuses=refuses, order=order(), restarts=random.Random(seed))
    assert ran.actions == again.actions
    assert isinstance(ran.actions[-1], Shutdown)
    refused = {request for request, lengths in ran.lengths.items() if refuses(request, lengths[-1])}
    assert len(ran.created) - len(refused) == REPLACED[number]["max_trials"] or len(refused) > 100
    assert ran.closed == set(ran.lengths) - refused
    if "max_concurrent_trials" in REPLACED[number]:
        assert ran.most_open <= REPLACED[number]["max_concurrent_trials"] + len(refused)


@pytest.mark.parametrize("number", range(len(NOT_REPLACED)))
def test_where_the_number_of_trials_is_fixed_a_refused_one_is_the_worst(number: int) -> None:
    config = configuration(**NOT_REPLACED[number])
    ran = run(config, lambda request, units: float(request), refuses=lambda request, units: request == 0)
    failed = run(config, lambda request, units: float(request), fails=lambda request, units: request == 0)
    assert ran.actions == failed.actions
    assert set(SPACE) == set(ran.created[0].hparams)
