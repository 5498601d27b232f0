"""A notebook of this repository, run from its first cell to its last."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
from journey_kernel import Notebook, Ran

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def run_all(name: str, notebook: Notebook) -> list[Ran]:
    """Return what each cell of code of a saved notebook has shown; one that raises fails here."""
    return [notebook.run(cell.source) for cell in _cells_of_code(name)]


def value(notebook: Notebook, expression: str) -> object:
    """Return the value that an expression has in the kernel."""
    return ast.literal_eval(notebook.run(f"print(repr({expression}))").stdout)


def assert_saved_without_outputs(name: str, ran: list[Ran]) -> None:
    """See that the file has the cells that were run, and nothing of an earlier run."""
    cells = _cells_of_code(name)
    assert len(ran) == len(cells)
    assert not any(cell.outputs or cell.execution_count for cell in cells)


def _cells_of_code(name: str) -> list[nbformat.NotebookNode]:
    cells = nbformat.read(NOTEBOOKS / name, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]
