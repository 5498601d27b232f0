"""What is said of why an input is another one: what fits the value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from det_harness.program.inputs import InputCheck

from det_native.errors import InputDiffersError
from det_native.proof.call import facts_of
from det_native.schema.manifests import Cell, Program
from det_native.schema.proof import CallProof


class _Call:
    def __init__(self, parts: dict[str, Any]) -> None:
        self._parts = parts

    def inputs(self) -> dict[str, Any]:
        return self._parts

    def code(self) -> dict[str, Any]:
        return {}


def _told(there: dict[str, Any], here: dict[str, Any], *cells: str, name: str = "") -> str:
    proof = CallProof(facts=facts_of(there, lambda value: name), seed=1)
    program = Program(
        kind="cells",
        framework="torch",
        cells=tuple(Cell(source=source, cell_id="", number=place + 1, reason="") for place, source in enumerate(cells)),
    )
    with pytest.raises(InputDiffersError) as raised:
        InputCheck(proof, program, "error", program.title).compare(_Call(here))
    return str(raised.value)


def test_weights_name_the_cells_of_the_model_and_a_seed() -> None:
    part = "the model's weights"
    told = _told({part: [np.ones(3)]}, {part: [np.zeros(3)]}, "x = {1}", "model = Net()", name="model")
    assert "model (the model's weights): " in told
    assert "Made in cell [2]." in told
    assert "Why: weights that were drawn without a seed" in told
    assert "order of a set" not in told


def test_order_of_a_set_is_named_with_its_cell_where_one_is_made_without_order() -> None:
    there, here = {"y": np.array([0, 1, 2])}, {"y": np.array([2, 1, 0])}
    told = _told(there, here, "y = [1]", "classes = list(set(names))", name="y")
    assert "the order of a set, which each process has its own of: write sorted(set(...)) in cell [2]" in told
    assert "init(values=['y'])" in told
    assert "order of a set" not in _told(there, here, "classes = sorted(set(names))")


def test_a_function_names_its_cell() -> None:
    there, here = {"the function loss": lambda x: x * 2}, {"the function loss": lambda x: x * 3}
    told = _told(there, here, "def loss(x):\n    return x * 2", name="loss")
    assert "the function loss: " in told
    assert "Made in cell [1]." in told
    assert "a function of the notebook that was made anew" in told
    assert "seed" not in told


def test_others_are_told_as_before() -> None:
    told = _told({"x": 1}, {"x": 2})
    assert "x: 2 here, 1 in the notebook." in told
    assert "Why: data that have changed since" in told
