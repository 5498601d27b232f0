"""Keeps the executed notebook of a run with its experiments and beside the notebook, and stops its experiments."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from det_native.client.connect import connect
from det_native.errors import DetError
from det_native.notebook_runs.folders import RunFolder
from det_native.schema import routes
from det_native.schema.notebook_runs import NotebookRun

_MOST_NAMED = 4


def keep_executed(folder: RunFolder) -> str:
    """Give the executed notebook to the experiments of a run; return why that failed, empty if it did not.

    A notebook whose cells or outputs hold what looks like a secret stays on this machine.
    """
    try:
        content = folder.executed.read_bytes()
        place = _place_of_secret(folder.executed)
        if place:
            return (
                f"The executed notebook stays on this machine ({folder.executed}), and is not kept with its "
                f"experiments: {place} what looks like a secret."
            )
        for master, numbers in folder.experiments_by_master().items():
            session = connect(master or None, start=False)
            for number in numbers:
                session.call(routes.KEEP_NOTEBOOK, content, experiment_id=number)
    except (DetError, OSError) as error:
        return f"The executed notebook ({folder.executed}) could not be kept with its experiments: {error}"
    return ""


def stop_experiments(folder: RunFolder) -> None:
    """Stop the experiments of a run that go on; those in its kernel end with it."""
    for master, numbers in folder.experiments_by_master().items():
        with suppress(DetError):
            session = connect(master or None, start=False)
            for number in numbers:
                with suppress(DetError):
                    if not session.call(routes.GET_EXPERIMENT, experiment_id=number).state.terminal:
                        session.call(routes.STOP_EXPERIMENT, experiment_id=number)


def save_beside(folder: RunFolder, run: NotebookRun) -> str:
    """Copy the executed notebook beside the notebook; return why that failed, empty if it did not."""
    name = Path(executed_name(run))
    target, number = Path(run.path).with_name(str(name)), 1
    while target.exists():  # it may be the user's
        number += 1
        target = target.with_name(f"{name.stem} {number}.ipynb")
    try:
        shutil.copyfile(folder.executed, target)
    except OSError as error:
        return f"The executed notebook could not be saved as {target}: {error.strerror or error}."
    return ""


def executed_name(run: NotebookRun) -> str:
    """Return the name of a copy of the executed notebook beside the notebook."""
    words = "experiment" if len(run.experiments) == 1 else "experiments"
    names = [name.partition(" at ")[0] for name in run.experiments]
    numbers = ", ".join(names) if len(names) <= _MOST_NAMED else f"{names[0]} to {names[-1]}"
    title = f"{words} {numbers}" if numbers else f"run {run.id}"
    return f"{Path(run.path).stem} ({title}).ipynb"


def _place_of_secret(executed: Path) -> str:
    """Return which cell holds or shows what looks like a secret; empty if none does."""
    import nbformat

    from det_native.capture.secrets import find_secrets, looks_secret, shows_secret

    notebook = nbformat.read(executed, as_version=4)
    # The kernel had the variables of this process.
    values = [value for name, value in os.environ.items() if looks_secret(value, name) and not os.path.exists(value)]
    number = 0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            if shows_secret(cell.source, values):
                return "a text cell holds"
            continue
        number += bool(cell.source.strip())
        if find_secrets(cell.source):
            return f"cell {number} holds"
        if any(shows_secret(text, values) for text in _texts(cell.outputs)):
            return f"the output of cell {number} holds"
    return "a widget holds" if any(shows_secret(text, values) for text in _texts(notebook.metadata)) else ""


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value as JSON has it, but for pictures, and the code of widgets (``_esm``)."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, dict):
        for kind, part in value.items():
            if not kind.startswith(("image/png", "image/jpeg", "_")):
                yield from _texts(part)
