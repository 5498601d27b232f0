"""What is said of inputs that differ: both sides, the cells, and remedies that fit what differs."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np
import pytest
import torch
from det_harness.program.inputs import InputCheck

from det_native.errors import InputDiffersError
from det_native.experimental.proof import proof_of
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import Cell, Program
from det_native.schema.proof import Input, Role


class _Call:
    models = ()

    def __init__(self, parts: dict[str, Input]) -> None:
        self._parts = parts

    def inputs(self) -> dict[str, Input]:
        return self._parts


def _message(there: Any, here: Any, *cells: str, role: Role = "data", part: str = "x", name: str = "x") -> str:
    """Return the error for an input that does not travel."""
    noted = proof_of(_Call({part: Input(there, role)}), TrialEnvironment(config={}, hparams={}))
    assert noted is not None
    table = noted.proof.table
    assert table is not None
    known = json.loads(zlib.decompress(noted.values[table.sha256]))
    blob = zlib.compress(json.dumps(known | {"names": {part: name}}).encode())
    program = Program(
        kind="cells",
        framework="torch",
        cells=tuple(Cell(source=source, cell_id="", number=place + 1, reason="") for place, source in enumerate(cells)),
    )
    proof = noted.proof.model_copy(update={"inputs": None})
    with pytest.raises(InputDiffersError) as raised:
        InputCheck(proof, program, "error", program.title, read_blob=lambda sha: blob).compare(
            _Call({part: Input(here, role)})
        )
    return str(raised.value)


def test_data_name_both_sides_the_cells_and_how_to_send_them() -> None:
    text = _message(np.zeros(3), np.ones(3), "x = 1", "y = 2", "x = 3", "fit(x)")
    assert text.splitlines()[:2] == [
        "Inputs of the training call differ from the notebook:",
        "  x: (3,) float64, mean 1 on the worker, (3,) float64, mean 0 in the notebook; made in cell [1], cell [3].",
    ]
    assert "Send the notebook's value, whatever its size: init(values=['x'])." in text
    assert "seed" not in text


def test_data_without_a_name_are_to_get_one() -> None:
    text = _message(np.zeros(3), np.ones(3), part="train_loader", name="")
    assert "Keep the arrays or tables that train_loader is made of in variables" in text


def test_what_the_training_cell_makes_is_to_get_a_cell_of_its_own() -> None:
    text = _message(np.zeros(3), np.ones(3), "x = 1\nfit(x)")
    assert "Make x in a cell of its own, before the cell that trains. Send the notebook's value" in text


def test_a_model_that_a_function_reads_is_to_be_named_or_changed_in_a_cell_of_its_own() -> None:
    nets = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    text = _message(*nets, "net = Net()", "fit()", role="variable", part="net, read by train_batch", name="net")
    assert "Put values=['net'] into init(), or change net in a cell of its own, before the cell that trains." in text
    assert "arrays or tables" not in text


def test_objects_that_do_not_travel_are_not_advised_to_be_sent() -> None:
    class Data:
        pass

    text = _message([object()], [Data()], "ds = Data()", "fit(ds)", name="ds", part="x")
    assert "values=['ds']" not in text


def test_weights_name_the_cells_of_the_model_and_a_seed() -> None:
    weights = ([np.ones(3)], [np.zeros(3)])
    text = _message(*weights, "x = {1}", "model = Net()", role="weights", part="the model's weights", name="model")
    assert "model (the model's weights): " in text
    assert "made in cell [2]." in text
    assert "Set a seed in the cell that makes the model" in text
    assert "init(values=" not in text


def _loss(body: str) -> Any:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(f"def loss({body}):\n    return 1", names)  # noqa: S102
    return names["loss"]


def test_a_function_names_its_cell() -> None:
    text = _message(_loss("x"), _loss("y"), "def loss(x):\n    return x * 2", role="code", part="loss", name="loss")
    assert "  the function loss: " in text
    assert "made in cell [1]." in text
    assert "Run the cells again that define loss" in text
    assert "seed" not in text


def test_settings_are_to_be_fixed() -> None:
    there, here = ["Dense", {"units": np.int64(3)}], ["Dense", {"units": np.int64(4)}]
    text = _message(there, here, role="layers", part="the model's layers", name="model")
    assert "a fixed value" in text


def test_every_error_says_how_to_train_anyway() -> None:
    assert "`proof: warn`" in _message(np.zeros(3), np.ones(3))
