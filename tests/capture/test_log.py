"""The log of executions, in IPython shells as they are without a front end's cell ids."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

CHECKS = """\
from det_native.capture.log import current_log
log = current_log()
"""


def test_a_notebook_run_by_nbclient(tmp_path: Path) -> None:
    sources = [
        "early = 1",
        "import det_native",
        "x = 1\nimport time; time.sleep(0.05)",
        "x = 1\nimport time; time.sleep(0.05)",
        CHECKS,
        "ok = [e for e in log.executions if e.number in (1, 3, 4)]\n"
        "print([(e.number, e.ending.succeeded, e.ending.recorded) for e in ok])\n"
        "print(ok[1].cell == ok[2].cell, ok[1].time.duration > 0.04, log.running.number)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    client = NotebookClient(
        notebook, timeout=200, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    printed = "".join(output["text"] for output in notebook.cells[-1].outputs)
    assert printed == "[(1, True, False), (3, True, True), (4, True, True)]\nTrue True 6\n"


@pytest.mark.parametrize("first", [True, False])
def test_the_cell_that_imports_det_native_took_all_its_time_or_none_is_known(tmp_path: Path, first: bool) -> None:
    sources = [
        "import time\ntime.sleep(0.5)\nimport det_native",
        CHECKS,
        "starts = [e.source.startswith('import time') for e in log.executions]\n"
        "cell = log.executions[starts.index(True)]\nprint(cell.time.duration, cell.number)",
    ]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in (sources if first else ["early = 1", *sources])]
    )
    NotebookClient(
        notebook, timeout=200, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    duration, number = "".join(output["text"] for output in notebook.cells[-1].outputs).split()
    if first:
        assert float(duration) >= 0.5
    else:
        assert duration == "None", "it may have waited for the cell before it"
    assert number == ("1" if first else "2")


def test_functions_of_cells_before_the_import_and_of_its_own_belong_to_their_cells(tmp_path: Path) -> None:
    sources = [
        "def first(): pass\n",
        "%time 1\ndef second(): pass\n\n",
        "import det_native\ndef third(): pass\n",
        "def fourth(): pass\n",
        CHECKS,
        "print([log.owner_of(f.__code__.co_filename).number for f in (first, second, third, fourth)])",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(
        notebook, timeout=200, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    assert "".join(output["text"] for output in notebook.cells[-1].outputs) == "[1, 2, 3, 4]\n"


def test_a_terminal_shell() -> None:
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "import IPython\n"
        "assert IPython.get_ipython() is shell\n"
        "from det_native.capture.log import install\n"
        "log = install()\n"
        "assert install() is log\n"
        "shell.run_cell('x = 1', store_history=True)\n"
        "shell.run_cell('def f():\\n    raise ValueError\\n\\nf()', store_history=True)\n"
        "shell.run_cell('y = (', store_history=True)\n"
        "shell.run_cell('hidden = 1', store_history=False)\n"
        "shell.run_cell('quiet = 1', silent=True)\n"
        "ends = [(e.number, e.ending) for e in log.executions]\n"
        "print('LOG', [(n, e.succeeded, e.error_line, e.ran) for n, e in ends], log.running)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=True)
    assert (
        "LOG [(1, True, None, True), (2, False, 4, True), (3, False, None, False), (None, True, None, True)] None"
        in done.stdout
    )


def test_outside_ipython_there_is_no_log_and_nothing_is_imported() -> None:
    code = (
        "import sys\nimport det_native\nfrom det_native.capture.log import install\nassert install() is None\n"
        "print([name for name in ('IPython', 'pydantic', 'numpy', 'cloudpickle') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=True)
    assert done.stdout.strip() == "[]"


def test_an_argument_that_a_library_does_not_take_is_answered_beneath_the_traceback(tmp_path: Path) -> None:
    sources = ["import det_native, textwrap", "textwrap.dedent('x', width=3)"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=200, kernel_name="python3", allow_errors=True, resources=resources).execute()
    error, advice = notebook.cells[-1].outputs
    assert error["ename"] == "TypeError"
    assert advice["text"].startswith("dedent() of textwrap does not take width, which other versions may: leave it out")
