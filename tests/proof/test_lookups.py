"""What functions of the notebook read beside their arguments."""

from __future__ import annotations

import functools
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from det_native.inspection.attributes import settings_in
from det_native.proof.call import Severity, differences, facts_of
from det_native.proof.lookups import read_by
from det_native.schema.proof import CallProof

NOTEBOOK = """
import functools, logging, os, time
import numpy as np
import torch
from pathlib import Path

weights = torch.ones(10)
alpha = 0.5
names = {"a": 1}
classes = ["x", "y"]
options = {"made": time.strftime("%Y%m%d-%H%M%S"), "size": 3}
step, unseen = 0, 7
history, totals, best, curves = [], {"n": 0}, {"loss": 1.0}, {"loss": []}
bank = np.zeros(4)
logger = logging.getLogger("notebook")
began = time.time()
folder = Path("/tmp") / str(os.getpid())
teacher = torch.nn.Linear(2, 2)
torch.nn.init.ones_(teacher.weight), torch.nn.init.ones_(teacher.bias)

class Settings:
    def __init__(self):
        self.rate = 0.1
        self.calls = 0
    def __call__(self, x):
        self.calls += 1
        return x * self.rate

settings = Settings()

class Mean:
    def __init__(self, decay):
        self.decay = decay
        self.reset()
    def reset(self):
        self.total = 0
    def take_in(self, value):
        self.total += value * self.decay

smooth = Mean(0.9)

def scaled(x):
    return x * alpha

def focal(gamma):
    def loss(x):
        return x ** gamma
    return loss

loss = focal(2)

def train_batch(batch):
    global step
    step += 1
    history.append(batch)
    totals["n"] += len(classes)
    curves["loss"].append(1)
    smooth.take_in(1)
    bank[step % 4] = batch
    if best["loss"] > 1:
        best.update(loss=0)
    logger.info("%s %s %s %s", began, folder, options, settings(1))
    return loss(scaled(batch)) * weights * names["a"], teacher

class Net(torch.nn.Module):
    def forward(self, x):
        return x * unseen

trains = functools.partial(train_batch)
"""


@pytest.fixture
def made() -> Iterator[Any]:
    """Gives a notebook's names, of which some are bound anew."""
    kept = sys.modules["__main__"]

    def run(**changes: Any) -> dict[str, Any]:
        module = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(NOTEBOOK, "cell", "exec"), module.__dict__)  # noqa: S102
        module.__dict__.update(changes)
        return module.__dict__

    yield run
    sys.modules["__main__"] = kept


def _proof(found: dict[str, Any]) -> CallProof:
    return CallProof(facts=facts_of(read_by({"train_batch": found["trains"], "model": found["Net"]()})), seed=1)


def _differing(proof: CallProof, found: dict[str, Any]) -> list[str]:
    here = read_by({"train_batch": found["trains"], "model": found["Net"]()})
    found = [difference for difference in differences(proof, here) if difference.severity is not Severity.ROUNDING]
    return list(dict.fromkeys(difference.fact.name for difference in found))


def test_the_same_notebook_reads_the_same(made: Any) -> None:
    proof = _proof(made())
    names = {fact.name for fact in proof.facts if fact.role != "state"}
    read = {"weights", "alpha", "names", "classes", "options", "settings", "teacher", "unseen"}
    assert read | {"train_batch", "scaled", "loss", "forward"} <= names
    assert not {"step", "history", "totals", "best", "curves", "bank"} & names
    began, options = time.time() - 0.5, {"made": time.strftime("%Y%m%d-000000"), "size": 3}
    assert _differing(proof, made(began=began, options=options, folder=Path("/tmp/other"))) == []


def test_what_functions_change_is_the_state_of_the_notebook(made: Any) -> None:
    proof, used = _proof(made()), made()
    used["trains"](1)
    [*changes] = differences(proof, read_by({"train_batch": used["trains"], "model": used["Net"]()}))
    assert {change.fact.role for change in changes} == {"state"}
    assert {change.fact.name for change in changes} == {"step", "history", "totals", "curves", "bank"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weights", torch.ones(10) * 2),
        ("alpha", 0.6),
        ("names", {"a": 2}),
        ("classes", ["y", "x"]),
        ("options", {"made": "20250101-000000", "size": 4}),
        ("unseen", 8),
        ("teacher", torch.nn.Linear(2, 2)),
    ],
)
def test_another_value_that_a_function_reads_is_told_by_name(made: Any, name: str, value: Any) -> None:
    assert _differing(_proof(made()), made(**{name: value})) == [name]


def test_closures_and_settings_of_objects_are_compared(made: Any) -> None:
    first, other = made(), made()
    proof = _proof(first)
    other["loss"] = other["focal"](3)
    assert _differing(proof, other) == ["loss"]
    other = made()
    other["settings"].calls = 9
    assert _differing(proof, other) == []
    other["smooth"].take_in(3)
    assert _differing(proof, other) == []
    other["settings"].rate = 0.2
    other["smooth"].decay = 0.1
    assert _differing(proof, other) == ["settings", "smooth"]


def test_other_code_is_another(made: Any) -> None:
    proof, other = _proof(made()), made()
    other["scaled"] = eval(compile("lambda x: x + alpha", "other cell", "eval"), other)  # noqa: S307
    assert "scaled" in _differing(proof, other)


def test_what_hooks_of_a_library_change_is_no_setting() -> None:
    class Base:
        def on_end(self) -> None: ...

    Base.__module__ = "torch"

    class Stops(Base):
        def __init__(self, patience: int) -> None:
            self.patience, self.waited, self.best = patience, 0, 0
            self.reset()

        def reset(self) -> None:
            self.rows = [1]

        def on_end(self) -> None:
            self.waited += 1
            self._note()

        def _note(self) -> None:
            self.best = functools.reduce(max, self.rows)

    assert dict(settings_in(Stops(3))) == {"patience": 3, "rows": [1]}
