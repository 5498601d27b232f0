"""How much each hyperparameter explains of a metric: pure."""

from __future__ import annotations

import importlib.util
import math
import random
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

from det_native.search.importance import MOST_TRIALS, importance

# At once: what it sets in the environment when it is imported stays.
pytest.importorskip("sklearn.ensemble")


def rows(count: int, **more: Any) -> list[tuple[dict[str, Any], float | None]]:
    """Return trials of which the rate says most, the kind a little, and the width nothing."""
    draw = random.Random(3)
    found: list[tuple[dict[str, Any], float | None]] = []
    for _ in range(count):
        hparams: dict[str, Any] = {
            "rate": 10 ** draw.uniform(-4, 0),
            "width": draw.randint(8, 64),
            "kind": draw.choice(["a", "b"]),
        }
        value = abs(math.log10(hparams["rate"]) + 2) + 0.6 * (hparams["kind"] == "b")
        found.append(({**hparams, **more}, value))
    return found


def test_what_decides_comes_first() -> None:
    found = importance("loss", rows(120), frozenset({"rate"}))
    assert [each.name for each in found.importances][:2] == ["rate", "kind"]
    assert found.importances[0].importance > 0.6
    assert sum(each.importance for each in found.importances) == pytest.approx(1)
    assert (found.trials, found.total, found.notes) == (120, 120, [])


def test_too_few_trials_and_values_that_are_no_numbers_are_said() -> None:
    found = importance("loss", [*rows(3), ({"rate": 1.0}, math.nan), ({"rate": 1.0}, math.inf), ({"rate": 1.0}, None)])
    assert found.importances == []
    assert "at least 4 trials with a value of this metric; there are 3." in found.notes[0]


def test_what_is_the_same_in_all_trials_explains_nothing() -> None:
    same = [({"rate": 0.1}, float(value)) for value in range(9)]
    assert "No hyperparameter differs between the trials." in importance("loss", same).notes
    equal = [({"rate": float(value)}, 0.5) for value in range(9)]
    assert importance("loss", equal).notes == [
        "All trials have the same value of this metric: nothing explains a difference."
    ]


def test_hyperparameters_that_cannot_be_weighed_are_named() -> None:
    found = rows(60, layers=[1, 2])
    for at, (hparams, _) in enumerate(found):
        hparams["name"] = f"run {at}"
        hparams["mixed"] = at if at % 2 else str(at % 3)
        hparams["huge"] = 10**400
        if at % 2:
            hparams["momentum"] = 0.9
        hparams["x" * 10_000] = {"deep": at % 2}
    told = importance("loss", found)
    assert "rate" in {each.name for each in told.importances}
    assert {"layers", "huge", "momentum", "name"}.isdisjoint(each.name for each in told.importances)
    assert any("momentum, which not all trials have" in note for note in told.notes)
    assert any("name" in note and "more than 50 values" in note for note in told.notes)
    assert all(len(note) < 500 for note in told.notes)


def test_a_single_hyperparameter_explains_all() -> None:
    found = importance("loss", [({"rate": float(value)}, float(value)) for value in range(9)])
    assert [(each.name, each.importance) for each in found.importances] == [("rate", 1.0)]
    assert "Of 9 trials the numbers are rough; from 20 on they are of use." in found.notes


def test_of_very_many_trials_some_are_drawn() -> None:
    found = importance("loss", rows(MOST_TRIALS + 500))
    assert (found.trials, found.total) == (MOST_TRIALS, MOST_TRIALS + 500)
    assert "Worked out from 1,000 of the 1,500 trials, drawn at random." in found.notes


def test_what_is_not_installed_is_said_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "sklearn" else real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    found = importance("loss", rows(30))
    assert found.importances == []
    assert "pip install scikit-learn" in found.notes[0]
