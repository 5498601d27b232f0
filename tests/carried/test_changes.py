"""Which values a loop may change in place, told by its code: what it only reads does not make a cell wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from carried_runs import Rounds, run

PROGRAM = """
class Own:
    def __init__(self):
        self.values = []

    def __call__(self, value):
        self.values.append(value)


def change(values):
    values.append(1)


class_names, config, losses, table = ["a", "b"], {"lr": 0.1, "name": "x"}, [], {"loss": []}
weights, scores, own, given = np.ones(3), np.zeros(3), Own(), []
other = losses
for number in rounds():
"""


def changed(body: str) -> set[str]:
    rounds = Rounds(range(0))
    names = run(f"{PROGRAM}    {body}", rounds, np=np)
    assert rounds.names is not None
    ids = rounds.names.may_change()
    return {name for name, value in names.items() if id(value) in ids and name != "rounds"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("losses.append(len(class_names))", {"losses", "class_names", "other"}),
        ("print(class_names[0], config['lr'], weights.sum())", set()),
        ("value = np.dot(weights, scores) * config['lr']", set()),
        ("table['loss'].append(number)", {"table"}),
        ("scores[number] = config['lr']", {"scores", "config"}),
        ("scores += number", {"scores"}),
        ("own(number)", {"own"}),
        ("change(given)", {"given"}),
        ("other.append(1)", {"losses", "other"}),
    ],
)
def test_what_a_statement_may_change(body: str, expected: set[str]) -> None:
    assert changed(body) == expected


def test_what_an_object_holds_is_changed_with_it() -> None:
    rounds = Rounds(range(0))
    names: dict[str, Any] = run(f"{PROGRAM}    own(number)", rounds, np=np)
    assert rounds.names is not None
    assert id(names["own"].values) in rounds.names.may_change()
