"""Optuna's samplers choose trials: the same seed and the same events give the same ones, also from a snapshot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from det_native.errors import ConfigurationError, MissingDependencyError
from det_native.schema.config import ExperimentConfig
from det_native.schema.helpers import Categorical, Double, Integer, Log
from det_native.schema.loading import load_config
from det_native.schema.sampling import first_hyperparameters, trial_seeds
from det_native.schema.searcher import OptunaSearcher
from det_native.search import (
    CreateTrial,
    Shutdown,
    Started,
    Stop,
    TrialCompleted,
    TrialFailed,
    TrialValidated,
    make_searcher,
)
from det_native.search.optuna_parts import check_installed, check_searcher

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


def test_a_snapshot_of_before_pruners_goes_on() -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    config = configuration(max_concurrent_trials=1)
    searcher = make_searcher(config)
    [first] = searcher.handle(Started())
    [second] = searcher.handle(TrialCompleted(0, 0.5))
    [third] = searcher.handle(TrialFailed(1))
    older = {"searcher": "optuna", "sampler": "tpe", "begun": True, "ended": [[0, 0.5]]}
    assert make_searcher(config, older).handle(TrialFailed(1)) == [third]
    assert (first, second) != (second, third)


@pytest.mark.parametrize(
    ("searcher", "where", "what"),
    [
        ({"sampler": "xyzzy"}, "searcher.sampler", "no sampler of Optuna. There are "),
        ({"sampler": "tpee"}, "searcher.sampler", "Did you mean tpe?"),
        ({"sampler": {"name": "tpe", "n_startup": 3}}, "searcher.sampler.n_startup", "Did you mean n_startup_trials?"),
        ({"sampler": {"name": "tpe", "seed": 3}}, "searcher.sampler.seed", "reproducibility.experiment_seed"),
        ({"sampler": {"name": "tpe", "gamma": 3}}, "searcher.sampler.gamma", "object of Python's"),
        ({"sampler": {"name": "tpe", "n_startup_trials": "3"}}, "searcher.sampler.n_startup_trials", "must be int"),
        ({"sampler": {"name": "nsga2", "population_size": 1}}, "searcher.sampler", "refused by Optuna"),
        ({"pruner": "medium"}, "searcher.pruner", "Did you mean median?"),
        ({"pruner": "percentile"}, "searcher.pruner.percentile", "is missing, which percentile needs"),
        ({"pruner": {"name": "hyperband", "min": 2}}, "searcher.pruner.min", "no option of hyperband"),
        ({"metrics": ["m", "n"], "sampler": "cmaes"}, "searcher.metrics", "the sampler cmaes looks at one"),
        ({"sampler": "bruteforce"}, "searcher.sampler", "is bruteforce, which cannot search these hyperparameters"),
    ],
)
def test_what_optuna_has_not_is_said_with_its_place(searcher: dict[str, Any], where: str, what: str) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    loaded = configuration(**searcher).searcher
    assert isinstance(loaded, OptunaSearcher)
    with pytest.raises(ConfigurationError) as caught:
        check_searcher(loaded, SPACE)
    [problem] = caught.value.problems
    assert problem.where == where
    assert what in str(problem)


@pytest.mark.parametrize(
    ("searcher", "what"),
    [
        ({"sampler": 3}, "searcher.sampler"),
        ({"pruner": {"percentile": 25}}, "needs the name of what is chosen"),
        ({"pruner": "median", "metrics": ["m", "n"]}, "compares trials by one metric"),
        ({"metrics": ["m", "m"]}, "names 'm' twice"),
        ({"metrics": ["n", "m"]}, r"metric \('m'\) must be the first of metrics"),
        ({"metrics": [{"name": "m", "smaller": True}]}, r"searcher.metrics\[0\].smaller"),
    ],
)
def test_what_contradicts_itself_is_refused(searcher: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigurationError, match=what):
        configuration(**searcher)


def curve(x: float, units: int) -> float:
    """Return what a trial has come to after so many units: the better ones are the better ones all the way."""
    return x * x + 1 / units


def run_with_pruner(config: ExperimentConfig, *, restarts: bool) -> list[tuple[dict[str, Any], int]]:
    """Run trials beside each other, one unit at a time; return each with the units at which it ended."""
    searcher = make_searcher(config)
    found: list[list[Any]] = []
    running: list[int] = []

    def take(actions: list[Any]) -> bool:
        stopped = False
        for action in actions:
            match action:
                case CreateTrial(request, hparams):
                    found.append([hparams, 0])
                    running.append(request)
                case Stop():
                    stopped = True
        return stopped

    take(searcher.handle(Started()))
    while running:
        request = running.pop(0)
        found[request][1] += 1
        units = found[request][1]
        value = curve(found[request][0]["x"], units)
        if restarts and (request + units) % 3 == 0:  # each takes as long as all events before it
            searcher = make_searcher(config, json.loads(json.dumps(searcher.snapshot())))
        stopped = False
        if units < 9:
            told = TrialValidated(request, units, value)
            stopped = take(searcher.handle(told))
            assert searcher.handle(told) == [], "told twice"
        if stopped or units == 9:
            take(searcher.handle(TrialCompleted(request, value, 9, stopped)))
        else:
            running.append(request)
    return [(hparams, units) for hparams, units in found]


PRUNERS: list[Any] = [
    {"name": "median", "n_startup_trials": 3},
    {"name": "percentile", "percentile": 40, "n_startup_trials": 2},
    "hyperband",
    {"name": "successive_halving", "min_resource": 1},
    {"name": "threshold", "upper": 1.5},
]


@pytest.mark.slow
@pytest.mark.parametrize("pruner", PRUNERS, ids=str)
def test_a_pruner_stops_the_worse_and_a_restart_changes_nothing(pruner: Any) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    config = configuration(max_trials=20, max_length=9, pruner=pruner)
    found = run_with_pruner(config, restarts=False)
    assert len(found) == 20
    assert run_with_pruner(config, restarts=True) == found
    stopped = [abs(hparams["x"]) for hparams, units in found if units < 9]
    whole = [abs(hparams["x"]) for hparams, units in found if units == 9]
    assert stopped, "nobody is stopped"
    assert min(whole) < min(stopped), "the best is not stopped"


def test_a_pruner_may_be_made_of_another_one() -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    wrapped = {"name": "median", "n_startup_trials": 2}
    config = configuration(pruner={"name": "patient", "wrapped_pruner": wrapped, "patience": 0})
    assert make_searcher(config).watches_validations
    wrapped["n_startup"] = 2
    with pytest.raises(ConfigurationError, match=r"wrapped_pruner\.n_startup: is no option of median"):
        make_searcher(configuration(pruner={"name": "patient", "wrapped_pruner": wrapped, "patience": 0}))


def test_without_a_pruner_nobody_is_stopped() -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    for pruner in (None, "none"):
        config = configuration(max_trials=4, max_length=9, pruner=pruner)
        searcher = make_searcher(config)
        assert not searcher.watches_validations
        searcher.handle(Started())
        assert searcher.handle(TrialValidated(0, 1, 1.0)) == []


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["tpe", "nsga2", "nsga3", "random"])
def test_several_metrics_are_weighed_against_each_other(sampler: str) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    metrics = ["near", {"name": "far", "smaller_is_better": False}]
    config = configuration(metric=None, metrics=metrics, sampler=sampler, max_trials=30)
    assert (config.metric, config.smaller_is_better) == ("near", True)

    def run(*, restarts: bool) -> list[dict[str, Any]]:
        searcher = make_searcher(config)
        waiting, made = searcher.handle(Started()), []
        while waiting:
            action = waiting.pop(0)
            if isinstance(action, Shutdown):
                assert not action.failed
                return made
            assert isinstance(action, CreateTrial)
            made.append(action.hparams)
            if restarts and action.request % 3 == 0:  # each takes as long as all events before it
                searcher = make_searcher(config, json.loads(json.dumps(searcher.snapshot())))
            x = action.hparams["x"]
            values = (x * x, None) if action.request == 3 else (x * x, -((x - 1) ** 2))
            waiting += searcher.handle(TrialCompleted(action.request, values[0], metrics=values))
        raise AssertionError("the search has not ended")

    found = run(restarts=False)
    assert len(found) == 30
    assert run(restarts=True) == found


def test_a_range_that_is_too_wide_for_a_sampler_is_refused() -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    space = {"global_batch_size": 32, "x": Double(-1e308, 1e308)}
    searcher = configuration().searcher
    assert isinstance(searcher, OptunaSearcher)
    with pytest.raises(ConfigurationError, match="is tpe, which cannot search these hyperparameters"):
        check_searcher(searcher, space)


@pytest.mark.parametrize("metrics", [["m"], ["m", "n"]])
def test_a_sampler_that_has_tried_all_ends_the_search(metrics: list[str]) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    named = {"name": "optuna", "sampler": "bruteforce", "metrics": metrics, "max_length": 5, "max_trials": 50}
    space = {"kind": Categorical(["a", "b"]), "units": Integer(1, 3)}
    config = load_config({"searcher": named, "hyperparameters": {"global_batch_size": 32, **space}}).with_seed(7)
    assert isinstance(config.searcher, OptunaSearcher)
    check_searcher(config.searcher, config.hyperparameters)

    def run(*, restarts: bool) -> list[dict[str, Any]]:
        searcher, made = make_searcher(config), []
        waiting = searcher.handle(Started())
        while waiting:
            action = waiting.pop(0)
            if isinstance(action, Shutdown):
                assert searcher.progress({}) == 1.0
                return made
            assert isinstance(action, CreateTrial)
            made.append(action.hparams)
            if restarts:
                searcher = make_searcher(config, json.loads(json.dumps(searcher.snapshot())))
            value = float(action.hparams["units"])
            waiting += searcher.handle(TrialCompleted(action.request, value, metrics=(value, value)))
        raise AssertionError("the search has not ended")

    found = run(restarts=False)
    assert len({(made["kind"], made["units"]) for made in found}) == 6
    assert len(found) < 12, "those that were tried are tried again only where others are not known yet"
    assert run(restarts=True) == found


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_the_first_trial_has_what_the_notebook_saw(sampler: str) -> None:
    config = configuration(sampler=sampler)
    first = run(config, restarts=False)[0][0]
    seed = next(trial_seeds(7))
    assert first == {"seed": seed, **first_hyperparameters(config.hyperparameters, "optuna", seed)}
