"""Searchers are told events and answer with actions; the same events always give the same trials."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.errors import ArgumentError
from det_native.schema.config import ExperimentConfig
from det_native.schema.helpers import Categorical, Double, Integer
from det_native.schema.loading import load_config
from det_native.schema.sampling import grid_points
from det_native.search import (
    Action,
    CreateTrial,
    Event,
    Searcher,
    Shutdown,
    Started,
    TrialCompleted,
    TrialFailed,
    make_searcher,
)

SPACE = {
    "global_batch_size": 32,
    "lr": Double(0, 1, count=3),
    "units": Integer(1, 100, count=2),
    "act": Categorical(["a", "b"]),
}


def configuration(seed: int = 1, **searcher: Any) -> ExperimentConfig:
    searcher = {"metric": "m", "max_length": 5, **searcher}
    return load_config({"searcher": searcher, "hyperparameters": SPACE}).with_seed(seed)


def created(actions: list[Action]) -> list[int]:
    return [action.request for action in actions if isinstance(action, CreateTrial)]


def test_single_makes_one_trial_and_ends_with_it() -> None:
    searcher = make_searcher(configuration(name="single"))
    (action,) = searcher.handle(Started())
    assert isinstance(action, CreateTrial)
    assert action.request == 0
    assert 0 <= action.seed < 2**31
    assert set(action.hparams) == set(SPACE)
    assert searcher.handle(TrialCompleted(0, 0.5)) == [Shutdown(failed=False)]


def test_single_fails_with_its_trial() -> None:
    searcher = make_searcher(configuration(name="single"))
    searcher.handle(Started())
    assert searcher.handle(TrialFailed(0)) == [Shutdown(failed=True)]


def test_random_makes_all_trials_up_front() -> None:
    actions = make_searcher(configuration(name="random", max_trials=7)).handle(Started())
    assert created(actions) == list(range(7))
    trials = [action for action in actions if isinstance(action, CreateTrial)]
    assert len({trial.seed for trial in trials}) == 7
    assert len({trial.hparams["lr"] for trial in trials}) == 7


def test_experiment_fails_only_if_all_trials_do() -> None:
    searcher = make_searcher(configuration(name="random", max_trials=3))
    searcher.handle(Started())
    assert searcher.handle(TrialFailed(0)) == []
    assert searcher.handle(TrialCompleted(2, None)) == []
    assert searcher.handle(TrialFailed(1)) == [Shutdown(failed=False)]
    searcher = make_searcher(configuration(name="random", max_trials=2))
    searcher.handle(Started())
    searcher.handle(TrialFailed(1))
    assert searcher.handle(TrialFailed(0)) == [Shutdown(failed=True)]


def test_grid_runs_every_point() -> None:
    actions = make_searcher(configuration(name="grid")).handle(Started())
    assert [action.hparams for action in actions if isinstance(action, CreateTrial)] == grid_points(SPACE)
    assert len(actions) == 3 * 2 * 2


@pytest.mark.parametrize("searcher", [{"name": "grid"}, {"name": "random", "max_trials": 12}])
def test_limit_of_concurrent_trials(searcher: dict[str, Any]) -> None:
    limited = make_searcher(configuration(**searcher, max_concurrent_trials=2))
    assert created(limited.handle(Started())) == [0, 1]
    assert created(limited.handle(TrialFailed(1))) == [2]
    assert created(limited.handle(TrialCompleted(0, 1.0))) == [3]
    everything = make_searcher(configuration(**searcher)).handle(Started())
    assert created(everything) == list(range(12))


def test_limit_changes_when_trials_run_but_not_which() -> None:
    limited = make_searcher(configuration(name="random", max_trials=6, max_concurrent_trials=1))
    actions = limited.handle(Started())
    for request in range(5):
        actions += limited.handle(TrialCompleted(request, 0.0))
    assert actions == make_searcher(configuration(name="random", max_trials=6)).handle(Started())


def test_seed_of_the_experiment_decides() -> None:
    def trials(seed: int) -> list[Action]:
        return make_searcher(configuration(seed, name="random", max_trials=4)).handle(Started())

    assert trials(1) == trials(1)
    assert trials(1) != trials(2)


def test_events_told_twice_or_late_change_nothing() -> None:
    searcher = make_searcher(configuration(name="random", max_trials=2, max_concurrent_trials=1))
    searcher.handle(Started())
    assert searcher.handle(Started()) == []
    assert created(searcher.handle(TrialCompleted(0, 0.0))) == [1]
    assert searcher.handle(TrialCompleted(0, 0.0)) == []
    assert searcher.handle(TrialFailed(0)) == []
    assert searcher.handle(TrialFailed(1)) == [Shutdown(failed=False)]
    assert searcher.handle(TrialFailed(1)) == []
    assert searcher.handle(Started()) == []


@pytest.mark.parametrize("request_number", [-1, 1, 99])
def test_request_never_made_is_an_error(request_number: int) -> None:
    searcher = make_searcher(configuration(name="single"))
    searcher.handle(Started())
    with pytest.raises(ValueError, match="no trial was requested"):
        searcher.handle(TrialFailed(request_number))


def test_progress() -> None:
    searcher = make_searcher(configuration(name="random", max_trials=4))
    assert searcher.progress({}) == 0.0
    searcher.handle(Started())
    assert searcher.progress({0: 0.5, 1: 2.0, 2: -1.0}) == pytest.approx(1.5 / 4)
    searcher.handle(TrialFailed(3))
    searcher.handle(TrialCompleted(0, 1.0))
    assert searcher.progress({0: 0.1, 1: 0.5}) == pytest.approx(2.5 / 4)
    searcher.handle(TrialCompleted(1, 1.0))
    searcher.handle(TrialCompleted(2, 1.0))
    assert searcher.progress({}) == 1.0


def test_seed_must_be_fixed() -> None:
    unseeded = load_config({"searcher": {"metric": "m", "max_length": 5}, "hyperparameters": {"global_batch_size": 1}})
    with pytest.raises(ArgumentError, match="experiment_seed"):
        make_searcher(unseeded)


def test_snapshot_of_another_searcher_is_refused() -> None:
    snapshot = make_searcher(configuration(name="random", max_trials=4)).snapshot()
    with pytest.raises(ValueError, match="random with 4 trials, not of single with 1"):
        make_searcher(configuration(name="single"), snapshot)


SEARCHERS = st.one_of(
    st.just({"name": "single"}),
    st.builds(
        lambda trials, at_once: {"name": "random", "max_trials": trials, "max_concurrent_trials": at_once},
        st.integers(1, 8),
        st.integers(0, 4),
    ),
    st.builds(lambda at_once: {"name": "grid", "max_concurrent_trials": at_once}, st.integers(0, 4)),
)


def through_json(config: ExperimentConfig, searcher: Searcher) -> Searcher:
    """Return the searcher that a restarted master makes."""
    stored = json.loads(json.dumps({"config": config.model_dump(mode="json"), "searcher": searcher.snapshot()}))
    return make_searcher(ExperimentConfig.model_validate(stored["config"]), stored["searcher"])


@given(SEARCHERS, st.integers(0, 2**31 - 1), st.data())
def test_replay_with_restarts_anywhere_gives_the_same_trials(
    searcher: dict[str, Any], seed: int, data: st.DataObject
) -> None:
    config = configuration(seed, **searcher)
    one, other = make_searcher(config), make_searcher(config)
    event: Event = Started()
    running: list[int] = []
    finished, completed, requests = False, 0, 0
    while not finished:
        actions = one.handle(event)
        if data.draw(st.booleans()):
            other = through_json(config, other)
        assert other.handle(event) == actions
        assert other.snapshot() == one.snapshot()
        new = created(actions)
        assert new == list(range(requests, requests + len(new)))
        requests += len(new)
        running += new
        limit = searcher.get("max_concurrent_trials")
        assert not limit or len(running) <= limit
        finished = any(isinstance(action, Shutdown) for action in actions)
        assert 0 <= one.progress({}) <= 1
        if finished:
            assert actions == [Shutdown(failed=completed == 0)]
            assert not running
        else:
            done = running.pop(data.draw(st.integers(0, len(running) - 1)))
            failed = data.draw(st.booleans())
            completed += not failed
            event = TrialFailed(done) if failed else TrialCompleted(done, data.draw(st.none() | st.floats()))
    assert requests == {"single": 1, "grid": 12}.get(searcher["name"], searcher.get("max_trials"))
    assert one.progress({}) == 1.0
