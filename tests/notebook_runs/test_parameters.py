"""Values for the cell tagged ``parameters``."""

from __future__ import annotations

import nbformat
import pytest

from det_native.errors import ArgumentError
from det_native.notebook_runs.parameters import parameters_in, parse_parameters, put_parameters


def notebook_of(*cells: tuple[str, list[str]]) -> nbformat.NotebookNode:
    return nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source, metadata={"tags": tags}) for source, tags in cells]
    )


def test_texts_are_read_as_numbers_lists_and_words() -> None:
    texts = ["lr=1e-3", "n=3", "name=resnet", "deep=true", "sizes=[1, 2]", "path=a=b", "none=null", "bad={"]
    texts += ["empty=", "code=0123", "clock=12:30", "day=2024-01-01", "pair=(1, 2)", 'options={"a": true}', "far=inf"]
    texts += ["set={1, 2}", "quoted='a b'"]
    assert parse_parameters(texts) == {
        "lr": 0.001,
        "n": 3,
        "name": "resnet",
        "deep": True,
        "sizes": [1, 2],
        "path": "a=b",
        "none": None,
        "bad": "{",
        "empty": "",
        "code": "0123",
        "clock": "12:30",
        "day": "2024-01-01",
        "pair": (1, 2),
        "options": {"a": True},
        "far": float("inf"),
        "set": "{1, 2}",
        "quoted": "a b",
    }


@pytest.mark.parametrize("texts", [["lr"], ["=1"], ["a b=1"], ["lr=1", "lr=2"]])
def test_a_text_without_a_name_is_refused(texts: list[str]) -> None:
    with pytest.raises(ArgumentError, match="parameter"):
        parse_parameters(texts)


def test_the_values_stand_in_a_cell_below_the_tagged_one_and_replace_those_of_an_earlier_run() -> None:
    notebook = notebook_of(("import torch", []), ("lr: float = 0.1\nn = m = 2", ["parameters"]), ("print(lr)", []))
    assert parameters_in(notebook.cells[1].source) == {"lr": "0.1", "n": "2", "m": "2"}
    put_parameters(notebook, {"lr": 0.5})
    put_parameters(notebook, {"lr": float("inf"), "n": [1, float("-inf"), (2,), {"a": None}]})
    sources = [cell.source for cell in notebook.cells]
    assert sources[2] == '# Parameters\nlr = float("inf")\nn = [1, float("-inf"), (2,), {\'a\': None}]'
    assert len(sources) == 4
    nbformat.validate(notebook)


def test_a_notebook_without_a_tagged_cell_takes_no_parameters() -> None:
    notebook = notebook_of(("lr = 0.1", []))
    put_parameters(notebook, {})
    with pytest.raises(ArgumentError, match="has no cell tagged 'parameters': tag the cell that assigns lr"):
        put_parameters(notebook, {"lr": 1})
