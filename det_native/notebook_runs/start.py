"""Begins a run of a notebook in a process that outlives this one, and stops it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from det_native.errors import ArgumentError, DiskFullError, MasterError
from det_native.notebook_runs.folders import RunFolder, find_run, make_folder, remove_old_runs, run_of_key, starting
from det_native.notebook_runs.keeping import stop_experiments
from det_native.notebook_runs.parameters import put_parameters
from det_native.notebook_runs.reading import check_kernel, code_cells, read_notebook
from det_native.schema.home import Home
from det_native.schema.notebook_runs import NotebookRun, RunRequest
from det_native.schema.processes import start_mark, wait_until_gone

#: Of the process of a run to stop its kernel by itself.
STOP_SECONDS = 60.0
# What belongs to the kernel or Jupyter server that begins the run, not to the run's own kernel.
_DROPPED_PREFIXES = ("JPY_", "JUPYTER_TOKEN", "JUPYTERHUB_API", "PYDEVD_")
_DROPPED = {"MPLBACKEND", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT", "DET_WORKER", "DET_NOTEBOOK_RUN"}
_POLL_SECONDS = 0.2

Say = Callable[[NotebookRun], None]


def check_request(request: RunRequest) -> tuple[Any, str]:
    """Return the notebook with its parameters, and the name of its kernel; nothing runs.

    Raises
    ------
    ArgumentError
        If the notebook, its kernel or a parameter cannot be used.
    """
    path = Path(request.path)
    if not path.is_absolute() or not path.parent.is_dir():
        raise ArgumentError(f"path must be the absolute path of a notebook in a folder of this machine: {path}.")
    notebook = read_notebook(path, request.content)
    put_parameters(notebook, request.parameters)
    kernel = request.kernel or notebook.metadata.get("kernelspec", {}).get("name") or "python3"
    if request.spec is None:
        check_kernel(kernel)
    return notebook, kernel


def start_run(request: RunRequest, home: Home) -> NotebookRun:
    """Begin a run and return it at once; a request whose key has begun a run gives that run.

    The notebook is taken as its file is now: what changes in it afterwards does not change the run.

    Raises
    ------
    ArgumentError
        If the notebook, its kernel or a parameter cannot be used.
    StorageError
        If the home cannot be written.
    """
    import nbformat

    notebook, kernel = check_request(request)
    try:
        with starting(home):
            begun = run_of_key(home, request.key)
            if begun is not None:
                return begun.run()
            folder = make_folder(home)
            folder.write_request(request.model_copy(update={"kernel": kernel, "content": ""}))
            for cell in notebook.cells:
                if cell.cell_type == "code":  # what the run does not reach has nothing to show
                    cell.outputs, cell.execution_count = [], None
            nbformat.write(notebook, folder.executed)
            folder.write(
                NotebookRun(
                    id=folder.id,
                    path=request.path,
                    kernel=kernel,
                    cells=len(code_cells(notebook)),
                    executed=str(folder.executed),
                    started=time.time(),
                    schedule=request.schedule,
                )
            )
            _spawn(folder, request, home)
    except OSError as error:
        raise DiskFullError(
            f"The run cannot begin: {home.path} cannot be written: {error.strerror or error}."
        ) from error
    remove_old_runs(home, request.path)
    return folder.run()


def _spawn(folder: RunFolder, request: RunRequest, home: Home) -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in _DROPPED and not name.startswith(_DROPPED_PREFIXES)
    }
    environment["DET_HOME"] = str(home.path)
    if request.master:
        environment["DET_MASTER"] = request.master
    with open(os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "det_native.notebook_runs.execute", str(folder.path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=Path(request.path).parent,
            env=environment,
            start_new_session=True,
        )
    folder.note_process(process.pid)
    _detach(process)


def _detach(process: subprocess.Popen[bytes]) -> None:
    """Reap the process when it ends, and never wait for it when this interpreter does."""
    import threading

    threading.Thread(target=process.wait, name="det-notebook-run", daemon=True).start()


def stop_run(home: Home, number: int) -> NotebookRun:
    """Stop a run and the experiments that it waits for; return how it stands then.

    Raises
    ------
    NotFoundError
        If it is not there.
    MasterError
        If it does not end.
    """
    folder = find_run(home, number)
    pid = folder.process()
    if pid is not None:
        mark = start_mark(pid) or ""
        folder.ask_to_stop()
        os.kill(pid, signal.SIGTERM)
        if not wait_until_gone(pid, mark, STOP_SECONDS):
            raise MasterError(f"Notebook run {number} has not ended after {STOP_SECONDS:.0f} s; its log: {folder.log}.")
    else:
        stop_experiments(folder)
    return folder.run()


def follow_run(home: Home, number: int, say: Say) -> NotebookRun:
    """Return a run once it has ended; `say` takes each new state of it."""
    folder, last = find_run(home, number), None
    while True:
        run = folder.run()
        if run != last:
            say(run)
            last = run
        if run.is_ended:
            return run
        time.sleep(_POLL_SECONDS)
