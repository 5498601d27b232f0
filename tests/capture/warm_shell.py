"""A process that has imported IPython, `det_native` and what notebooks use, and forks one notebook after the other.

Each notebook is a process of its own, so nothing of one is left for the next: names, modules, settings, random numbers.
Run by ``in_process.py``. A request is a line of JSON with cells to execute, its answer one with what they printed; the
next request comes after the answer only. One without cells ends the notebook.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from typing import Any, TextIO

from forking.server import HiddenLibraries
from ipykernel.compiler import XCachingCompiler
from IPython.core import page
from IPython.core.interactiveshell import InteractiveShell

from det_native.imports import freeze

#: What cells of the tests import most.
LIBRARIES = ("numpy", "pandas", "torch", "torch.utils.data", "sklearn.ensemble", "ipywidgets")
OURS = ("det_native.capture.cells", "det_native.capture.call", "det_native.capture.script", "det_native.errors")


class Shell(InteractiveShell):  # type: ignore[misc]
    """IPython's shell; what a front end says with a cell, and the names of code objects, are as in ipykernel."""

    request: dict[str, Any] = {}

    def get_parent(self) -> dict[str, Any]:
        """Return the message that had the running cell executed, as ipykernel's shell does."""
        return self.request

    def init_hooks(self) -> None:
        """Print help, as nobody is here to turn its pages."""
        super().init_hooks()
        self.set_hook("show_in_pager", page.as_hook(lambda text, *_: print(text)), 99)


def serve() -> None:
    """Fork a notebook for each request to begin one, until there are no more requests."""
    requests, answers = _own_channels()
    for name in (*OURS, *LIBRARIES):
        importlib.import_module(name)
    from IPython.core.history import HistoryManager

    HistoryManager.enabled = False  # nothing is kept in the user's profile, and no thread is started
    shell = Shell.instance(compiler_class=XCachingCompiler)
    shell.InteractiveTB.set_mode("Plain")  # the colours of others take most of the time of a failed cell
    for prepared in ("det_native.frameworks.registry", "det_native.capture.log"):
        importlib.import_module(prepared)
    sys.modules["det_native.frameworks.registry"].read_frameworks()
    HiddenLibraries().load(("tensorflow",))  # capture looks into the libraries that a notebook has imported
    freeze()  # what is there is not looked through again, which would copy its memory into each fork
    for line in requests:
        notebook = os.fork()
        if not notebook:
            _notebook(shell, json.loads(line), requests, answers)
        _, status = os.waitpid(notebook, 0)
        _answer(answers, {"ended": os.waitstatus_to_exitcode(status)})


def _own_channels() -> tuple[TextIO, TextIO]:
    """Return standard input and output, and give nothing and nowhere to the code of cells in their place."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nowhere, standard)
    os.close(nowhere)
    return requests, answers


def _answer(answers: TextIO, content: dict[str, Any]) -> None:
    answers.write(json.dumps(content) + "\n")
    answers.flush()


def _notebook(shell: Shell, begin: dict[str, Any], requests: TextIO, answers: TextIO) -> None:
    """Execute cells until the notebook is to end; does not return."""
    status = 1
    try:
        os.chdir(begin["folder"])
        sys.path[:] = [*(path for path in sys.path if path), "", begin["shared"]]
        importlib.invalidate_caches()
        shell.user_ns["__session__"] = None
        shell.user_ns["_dh"][:] = [begin["folder"]]
        _answer(answers, {"printed": [_run(shell, cell) for cell in begin["cells"]]})
        for line in requests:
            cells = json.loads(line)["cells"]
            if not cells:
                status = 0
                break
            _answer(answers, {"printed": [_run(shell, cell) for cell in cells]})
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(status)


def _run(shell: Shell, cell: dict[str, Any]) -> str:
    metadata = {"cellId": cell["id"], "tags": cell["tags"], "deletedCells": []}
    shell.request = {"metadata": metadata, "header": {"date": datetime.now(UTC)}}
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        shell.run_cell(
            cell["code"],
            store_history=not cell["silent"],
            silent=cell["silent"],
            cell_id=cell["id"],
            cell_meta=metadata,
        )
    return printed.getvalue()
