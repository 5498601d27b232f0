"""Keeps the executed notebook of a run with its experiments, and beside the notebook."""

from __future__ import annotations

import shutil
from pathlib import Path

from det_native.client.connect import connect
from det_native.errors import DetError
from det_native.notebook_runs.folders import RunFolder
from det_native.schema import routes
from det_native.schema.notebook_runs import NotebookRun

_MOST_NAMED = 4


def keep_executed(folder: RunFolder) -> str:
    """Give the executed notebook to the experiments of a run; return why that failed, empty if it did not.

    A notebook whose cells hold what looks like a secret stays on this machine.
    """
    experiments = folder.experiments_by_master()
    if not experiments:
        return ""
    try:
        content = folder.executed.read_bytes()
        cell = _cell_with_secret(folder.executed)
        if cell is not None:
            return (
                f"The executed notebook stays on this machine ({folder.executed}), and is not kept with its "
                f"experiments: cell {cell} holds what looks like a secret."
            )
        for master, numbers in experiments.items():
            session = connect(master or None, start=False)
            for number in numbers:
                session.call(routes.KEEP_NOTEBOOK, content, experiment_id=number)
    except (DetError, OSError) as error:
        return f"The executed notebook ({folder.executed}) could not be kept with its experiments: {error}"
    return ""


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


def _cell_with_secret(executed: Path) -> int | None:
    """Return the number of the first code cell that holds what looks like a secret."""
    import nbformat

    from det_native.capture.secrets import find_secrets
    from det_native.notebook_runs.reading import code_cells

    notebook = nbformat.read(executed, as_version=4)
    for number, place in enumerate(code_cells(notebook), 1):
        if find_secrets(notebook.cells[place].source):
            return number
    return None
