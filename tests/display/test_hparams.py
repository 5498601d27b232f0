"""Hyperparameters in words: those by which trials differ beside each, those of all once."""

from __future__ import annotations

from typing import Any

import pytest
from made_experiments import make_experiment, source_of

from det_native.client.handles import Experiment
from det_native.display.hparams import format_hparams, hparam_texts
from det_native.display.html import experiment_html
from det_native.display.text import experiment_text


def search(*hparams: dict[str, Any]) -> Experiment:
    """Write a search with a trial for each of these."""
    experiment = make_experiment(trials=len(hparams))
    store = source_of(experiment)
    for trial, changed in zip(store.trials(), hparams, strict=True):
        store.write_trial(trial.model_copy(update={"hparams": changed}))
    return experiment


def test_those_of_a_group_have_whole_names() -> None:
    assert format_hparams({"z": [1, 2], "a": {"rate": 0.1, "b": {"c": 2}}}) == "a.b.c=2, a.rate=0.1, z=[1, 2]"
    assert format_hparams({}) == ""


def test_numbers_in_names_are_in_the_order_of_numbers() -> None:
    assert format_hparams({"h10": 1, "h2": 2, "h1": 3, "b": 4}) == "b=4, h1=3, h2=2, h10=1"


@pytest.mark.parametrize(
    ("hparams", "own", "common"),
    [
        ([{"a": 1, "rate": 0.1, "b": "x"}, {"a": 1, "rate": 0.2, "b": "x"}], ["rate=0.1", "rate=0.2"], "a=1, b=x"),
        ([{"a": 1}, {"a": 1}], ["", ""], "a=1"),
        ([{"a": 1, "b": 2}], ["a=1, b=2"], ""),
        ([{"a": 1}, {"a": 1, "b": 2}], ["", "b=2"], "a=1"),
        ([{"o": {"rate": 1, "c": 3}}, {"o": {"rate": 2, "c": 3}}], ["o.rate=1", "o.rate=2"], "o.c=3"),
        ([{"a": 0.10001, "b": 1}, {"a": 0.10002, "b": True}], ["a=0.1, b=1", "a=0.1, b=True"], ""),
    ],
)
def test_those_that_differ_are_told_for_each_trial(hparams: list[dict[str, Any]], own: list[str], common: str) -> None:
    texts = hparam_texts(search(*hparams).trials)
    assert (list(texts.own.values()), texts.common) == (own, common)


def test_a_search_says_once_what_is_the_same_in_all_trials_listed_or_not() -> None:
    constants = {f"constant_{number:02}": number for number in range(30)}
    changed = {"constant_07": "other"}
    experiment = search(*({**constants, "rate": number} for number in range(14)), {**constants, **changed, "rate": 14})
    for shown in (experiment_html(experiment), experiment_text(experiment)):
        assert shown.count("constant_29=29") == 1
        assert shown.lower().count("in all trials: constant_00=0, ") == 1
        assert shown.count("constant_07=7, rate=") == 11  # the last trial is the best one, and listed first
        assert "rate=3" in shown


def test_a_single_trial_has_no_such_line() -> None:
    experiment = make_experiment(hparams={"units": 3})
    assert "In all trials" not in experiment_html(experiment)
    assert "in all trials" not in experiment_text(experiment)
    assert "lr=0.1, units=3" in experiment_text(experiment)
