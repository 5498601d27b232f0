"""Boosters of XGBoost: their trees lie outside of Python, and are seen, sent and put in place all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from det_native.heap.call import CallSnapshot
from det_native.heap.edges import kind_of

xgboost = pytest.importorskip("xgboost")

X = np.random.default_rng(0).normal(size=(60, 3))
DATA = xgboost.DMatrix(X, label=(X[:, 0] > 0).astype(int))
PARAMETERS = {"max_depth": 2, "nthread": 1}


def names() -> dict[str, Any]:
    booster = xgboost.train(PARAMETERS, DATA, 2)
    model = xgboost.XGBClassifier(n_estimators=2, n_jobs=1)
    return {"__name__": "__main__", "booster": booster, "alias": booster, "model": model}


def train(names: dict[str, Any]) -> None:
    names["booster"].update(DATA, 2)
    names["booster"].set_attr(best="3")
    names["new"] = xgboost.train(PARAMETERS, DATA, 3)
    names["model"].fit(X, X[:, 0] > 0)


def test_what_a_training_has_made_of_boosters_is_put_in_place() -> None:
    here, there = names(), names()
    before, after = CallSnapshot(here), CallSnapshot(there)
    nothing = len(before.changes().data)
    train(here)
    changes = before.changes()
    assert len(changes.data) > nothing
    assert not changes.left_out
    booster = there["booster"]
    assert after.put(changes.data) == []
    assert there["booster"] is there["alias"] is booster
    assert booster.attributes() == {"best": "3"}
    for name in ("booster", "new"):
        assert np.array_equal(here[name].predict(DATA), there[name].predict(DATA))
    assert np.array_equal(here["model"].predict_proba(X), there["model"].predict_proba(X))
    train(here), train(there)  # they can be trained on
    assert np.array_equal(here["booster"].predict(DATA), there["booster"].predict(DATA))


def test_a_look_sees_what_a_booster_has_learned() -> None:
    booster = names()["booster"]
    facts = [kind_of(booster).glance(booster, bytes)[1]]
    booster.predict(DATA)
    facts.append(kind_of(booster).glance(booster, bytes)[1])
    booster.update(DATA, 2)
    facts.append(kind_of(booster).glance(booster, bytes)[1])
    assert facts[0] == facts[1] != facts[2]


def test_data_that_were_copied_stay_and_are_named() -> None:
    here = names()
    before = CallSnapshot(here)
    here["held_out"] = xgboost.DMatrix(X)
    (sentence,) = before.changes().left_out
    assert "held_out" in sentence
    assert "data that XGBoost has copied" in sentence
