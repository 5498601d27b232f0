"""Notebooks to run, and waiting for the end of their runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import nbformat

from det_native.notebook_runs.start import follow_run, start_run
from det_native.schema.home import Home
from det_native.schema.notebook_runs import NotebookRun, RunRequest


def write_notebook(path: Path, *cells: str, tags: dict[int, str] | None = None) -> Path:
    """Write a notebook; `tags` has the tag of a cell by its place."""
    notebook = nbformat.v4.new_notebook()
    for place, source in enumerate(cells):
        metadata = {"tags": [tags[place]]} if tags and place in tags else {}
        notebook.cells.append(nbformat.v4.new_code_cell(source, metadata=metadata))
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


def begin(path: Path, **fields: Any) -> NotebookRun:
    """Begin a run in the home of the test."""
    return start_run(RunRequest(path=str(path), **fields), Home.default())


def ended(run: NotebookRun) -> NotebookRun:
    """Return a run once it has ended."""
    return follow_run(Home.default(), run.id, lambda _: None)


def outputs(run: NotebookRun) -> list[str]:
    """Return what the cells of an executed notebook printed."""
    notebook = nbformat.read(run.executed, as_version=4)
    return [
        "".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells if cell.source.strip()
    ]


def until(path: Path) -> None:
    """Wait until a cell has made a file."""
    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline, f"no cell made {path.name}"
        time.sleep(0.05)
