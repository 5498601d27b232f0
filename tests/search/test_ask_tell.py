"""Optuna's samplers choose trials: the same seed and the same events give the same ones, also from a snapshot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from det_native.errors import ConfigurationError, MissingDependencyError
from det_native.schema.config import ExperimentConfig
from det_native.schema.helpers import Categorical, Double, Integer, Log
from det_native.schema.loading import load_config
from det_native.search import CreateTrial, Shutdown, Started, TrialCompleted, TrialFailed, make_searcher
from det_native.search.ask_tell import check_installed

SPACE = {
    "global_batch_size": 32,
    "x": Double(-2, 2),
    "group": {"rate": Log(-4, 0), "units": Integer(1, 8)},
    "kind": Categorical([[1, 2], "b"]),
}


def configuration(**searcher: Any) -> ExperimentConfig:
    searcher = {"name": "optuna", "metric": "m", "max_length": 5, "max_trials": 12, **searcher}
    return load_config({"searcher": searcher, "hyperparameters": SPACE}).with_seed(7)


def run(config: ExperimentConfig, *, restarts: bool) -> tuple[list[dict[str, Any]], bool]:
    """Run a search; every third trial fails, each second one overtakes. Return its trials, and whether it failed."""
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    searcher = make_searcher(config)
    actions = searcher.handle(Started())
    made, open_trials = [], []
    while True:
        for action in actions:
            if isinstance(action, Shutdown):
                return made, action.failed
            assert isinstance(action, CreateTrial)
            made.append({"seed": action.seed, **action.hparams})
            open_trials.append(action)
        assert len(open_trials) <= 4
        ended = open_trials.pop(len(open_trials) // 2)
        if restarts:
            searcher = make_searcher(config, json.loads(json.dumps(searcher.snapshot())))
            assert searcher.handle(Started()) == []
        value = ended.hparams["x"] ** 2
        event = TrialFailed(ended.request) if ended.request % 3 == 2 else TrialCompleted(ended.request, value)
        actions = searcher.handle(event)
        assert searcher.handle(event) == []


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["tpe", "cmaes", "nsga2", "random"])
def test_a_restart_changes_nothing(sampler: str) -> None:
    config = configuration(sampler=sampler)
    trials, failed = run(config, restarts=False)
    assert not failed
    assert len(trials) == 12
    assert run(config, restarts=True)[0] == trials
    for trial in trials:
        assert -2 <= trial["x"] <= 2
        assert 1e-4 <= trial["group"]["rate"] <= 1
        assert trial["group"]["units"] in range(1, 9)
        assert trial["kind"] in ([1, 2], "b")
        assert trial["global_batch_size"] == 32


@pytest.mark.slow
def test_tpe_comes_closer_than_chance() -> None:
    def mean_of_last(sampler: str) -> float:
        trials, _ = run(configuration(sampler=sampler, max_trials=60), restarts=False)
        return sum(abs(trial["x"]) for trial in trials[40:]) / 20

    assert mean_of_last("tpe") < 0.6 * mean_of_last("random")


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"cmaes needs optuna and cmaes.*det-native\[optuna\]"):
        check_installed("cmaes")


def test_an_unknown_sampler_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="sampler"):
        configuration(sampler="magic")
