"""Hyperparameters that are valid and hardly what was meant: refused with what would be right, or warned of."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from det_native.errors import ConfigurationError
from det_native.schema.config import ExperimentConfig
from det_native.schema.helpers import Log
from det_native.schema.loading import ConfigurationWarning, load_config


def load(**hyperparameters: Any) -> ExperimentConfig:
    return load_config({"hyperparameters": hyperparameters, "searcher": SEARCH}, local=True)


SEARCH = {"name": "random", "max_trials": 2, "metric": "loss"}


@pytest.mark.parametrize(
    "written",
    [
        {"type": "log", "minval": 1e-4, "maxval": 1e-1},
        Log(1e-4, 1e-1),
        {"type": "log", "minval": 0.0001, "maxval": 0.1, "count": 4},
    ],
)
def test_bounds_that_can_hardly_be_exponents_are_refused_with_both_spellings(written: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(optimizer={"lr": written})
    [problem] = caught.value.problems
    assert problem.where == "hyperparameters.optimizer.lr"
    assert "bounds are exponents: 0.0001 to 0.1 are the values 1 to 1.259" in problem.what
    assert "For 0.0001 to 0.1 write minval: -4, maxval: -1;" in problem.remedy
    assert "for 1 to 1.259, type: double with minval: 1, maxval: 1.259." in problem.remedy
    load(lr={"type": "log", "minval": -4, "maxval": -1})


@pytest.mark.parametrize(
    "bounds",
    [
        {"minval": -4, "maxval": -1},
        {"minval": -1.5, "maxval": 0.5},
        {"minval": 0, "maxval": 1},
        {"minval": 0.1, "maxval": 0.9, "base": 2},
        {"minval": 0.5, "maxval": 8, "base": 2},
        {"minval": 1, "maxval": 12},
    ],
)
def test_bounds_that_may_be_exponents_are_taken(bounds: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(lr={"type": "log", **bounds})


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        (Log(16, 256), "16 to 256 are the values 1e+16 to 1e+256. For 16 to 256 write minval: 1.204, maxval: 2.408;"),
        (Log(0.001, 10), "are the values 1.002 to 1e+10. For 0.001 to 10 write minval: -3, maxval: 1;"),
        (Log(-3, 16), "are the values 0.001 to 1e+16. For -3 to 16 write type: double; 0.001 to 1e+16 need no change."),
        (Log(8, 64, base=2), "are the values 256 to 1.845e+19. For 8 to 64 write minval: 3, maxval: 6;"),
    ],
)
def test_bounds_that_were_probably_meant_as_values_are_warned_of(bounds: dict[str, Any], told: str) -> None:
    with pytest.warns(ConfigurationWarning) as caught:
        load(net={"width": bounds})
    [warning] = caught
    assert str(warning.message).startswith("hyperparameters.net.width is of type log, whose bounds are exponents: ")
    assert told in str(warning.message)


def test_values_up_to_one_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"For 1e-05 to 1 write minval: -5, maxval: 0; for 1 to 10, type: dou"):
        load(lr={"type": "log", "minval": 1e-5, "maxval": 1})


def test_what_is_stored_is_taken_as_it_is() -> None:
    stored = {"hyperparameters": {"lr": {"type": "log", "minval": 0.1, "maxval": 0.5}, "a": {"vals": [1]}}}
    assert ExperimentConfig.model_validate(stored).hyperparameters["lr"]


@pytest.mark.parametrize(
    ("written", "remedy"),
    [
        ({"minval": 1, "maxval": 2}, "Write int, double, or log"),
        ({"minval": 1, "maxval": 2, "count": 3}, "Write int, double, or log"),
        ({"minval": 1, "maxval": 2, "when": {"a": 1}}, "Write int, double, or log"),
        ({"vals": [1, 2]}, "Write categorical."),
    ],
)
def test_a_range_without_its_type_is_no_group(written: dict[str, Any], remedy: str) -> None:
    for space, where in (({"lr": written}, "lr"), ({"optimizer": {"lr": written}}, "optimizer.lr")):
        with pytest.raises(ConfigurationError) as caught:
            load(a=1, **space)
        [problem] = caught.value.problems
        assert problem.where == f"hyperparameters.{where}.type"
        assert "is missing" in problem.what
        assert problem.remedy.startswith(remedy)


def test_groups_stay_groups() -> None:
    load(split={"train": 0.8, "val": 0.2}, limits={"minval": 1, "other": 2}, vals=[1, 2], sizes={"vals": 3})


def test_a_value_that_stands_twice_is_told() -> None:
    with pytest.warns(ConfigurationWarning, match=r"more than once in vals of hyperparameters.net.width \(16\):"):
        load(net={"width": {"type": "categorical", "vals": [16, 32, 16]}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(width={"type": "categorical", "vals": [1, 1.0, True, "1", [1], None]})
