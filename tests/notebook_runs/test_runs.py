"""Notebooks run as a whole in kernels of their own, in the background, and every end of a run is one sentence."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import nbformat
import psutil
import pytest
from run_parts import begin, ended, outputs, until, write_notebook

from det_native.errors import ArgumentError, NotFoundError
from det_native.notebook_runs import folders
from det_native.notebook_runs.folders import RunFolder, list_runs, runs_folder
from det_native.notebook_runs.start import stop_run
from det_native.schema.home import Home


def folder_of(number: int) -> RunFolder:
    return RunFolder(runs_folder(Home.default()) / str(number))


def test_all_cells_run_in_the_notebooks_folder_with_their_outputs_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    path = write_notebook(
        tmp_path / "work" / "plots.ipynb",
        "import os\nprint(os.getcwd(), os.path.basename(os.environ['JPY_SESSION_NAME']), os.environ['IPYTHONDIR'])",
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()",
        "get_ipython().run_cell_magic('bash', '', 'echo from bash')",
        "",
        "1 / 0",
        tags={4: "raises-exception"},
    )
    run = ended(begin(path))
    assert (run.state, run.cell, run.cells, run.error) == ("COMPLETED", 4, 4, "")
    printed = outputs(run)
    assert printed[0] == f"{path.parent} plots.ipynb {tmp_path / 'ipython'}\n"
    assert printed[2] == "from bash\n"
    pictures = nbformat.read(run.executed, as_version=4).cells[1].outputs
    assert [output for output in pictures if "image/png" in output.get("data", {})]
    assert nbformat.read(path, as_version=4).cells[0].outputs == [], "the notebook itself stays as it was"


def test_parameters_replace_those_of_the_tagged_cell(tmp_path: Path) -> None:
    path = write_notebook(tmp_path / "nb.ipynb", "lr = 0.1\nname = 'a'", "print(lr, name)", tags={0: "parameters"})
    (tmp_path / "nb (run 1).ipynb").write_text("the user's")
    run = ended(begin(path, parameters={"lr": 1e-3}, beside=True))
    assert outputs(run)[-1] == "0.001 a\n"
    beside = nbformat.read(tmp_path / f"nb (run {run.id}) 2.ipynb", as_version=4)
    assert (tmp_path / "nb (run 1).ipynb").read_text() == "the user's"
    assert beside.cells[1].metadata.tags == ["injected-parameters"]
    with pytest.raises(ArgumentError, match="assigns lr, name, and not rl: check the spelling"):
        begin(path, parameters={"rl": 1})


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("def f():\n    raise ValueError('broken data')\nf()", "Cell 2 of 3 raised ValueError: broken data"),
        ("input('name? ')", "Cell 2 of 3 asks for input, which a run in the background cannot give: use a parameter."),
        ("import os; os._exit(9)", "The kernel ended while cell 2 of 3 ran: killed, or out of memory?"),
        ("x = (", "Cell 2 of 3 raised SyntaxError"),
    ],
)
def test_a_cell_that_fails_ends_the_run_with_a_sentence(tmp_path: Path, cell: str, sentence: str) -> None:
    path = write_notebook(tmp_path / "nb.ipynb", "print('before')", cell, "print('after')")
    stale = nbformat.read(path, as_version=4)
    stale.cells[2].outputs = [nbformat.v4.new_output("stream", text="of an earlier run")]
    nbformat.write(stale, path)
    run = ended(begin(path))
    assert run.state == "FAILED"
    assert run.error.startswith(sentence)
    assert outputs(run)[0] == "before\n"
    assert outputs(run)[2] == ""


def test_a_run_is_stopped_by_an_interrupt_so_that_its_cell_can_end(tmp_path: Path) -> None:
    path = write_notebook(
        tmp_path / "nb.ipynb",
        "import time\ntry:\n    open('begun', 'w').close()\n    while True: time.sleep(0.05)\n"
        "finally:\n    print('closed')",
        "print('after')",
    )
    run = begin(path)
    until(tmp_path / "begun")
    stopped = stop_run(Home.default(), run.id)
    assert (stopped.state, stopped.error) == ("STOPPED", "It was stopped.")
    assert outputs(stopped) == ["closed\n", ""]
    assert stop_run(Home.default(), run.id) == stopped


def test_a_run_is_stopped_before_its_kernel_is_there(tmp_path: Path) -> None:
    path = write_notebook(tmp_path / "nb.ipynb", "open('begun', 'w').close()")
    stopped = stop_run(Home.default(), begin(path).id)
    assert (stopped.state, stopped.error) == ("STOPPED", "It was stopped.")


def test_thousands_of_outputs_are_all_kept(tmp_path: Path) -> None:
    cell = "for i in range(6000): display(i)"
    run = ended(begin(write_notebook(tmp_path / "nb.ipynb", cell, "print('x')", tags={1: "skip-execution"})))
    cells = nbformat.read(run.executed, as_version=4).cells
    assert [int(output.data["text/plain"]) for output in cells[0].outputs] == list(range(6000))
    assert cells[1].outputs[0].text == "x\n"


def test_a_run_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    run = ended(begin(write_notebook(tmp_path / "nb.ipynb", "while True: pass"), limit_seconds=3))
    assert (run.state, run.error) == ("STOPPED", "It ran longer than its limit of 3 seconds.")


def test_a_run_whose_process_was_killed_has_failed(tmp_path: Path) -> None:
    path = write_notebook(
        tmp_path / "nb.ipynb", "open('begun', 'w').close()\nimport time\nwhile True: time.sleep(0.05)"
    )
    run = begin(path)
    until(tmp_path / "begun")
    run_folder = str(folder_of(run.id).path)
    pid = folder_of(run.id).process()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    run = ended(run)
    assert run.state == "FAILED"
    assert "switched off, or it was killed" in run.error
    # A kernel notices by itself that its parent is gone, in its own time.
    kernels = [
        process for process in psutil.process_iter(["cmdline"]) if run_folder in " ".join(process.info["cmdline"] or [])
    ]
    for kernel in kernels:
        with contextlib.suppress(psutil.NoSuchProcess):
            kernel.kill()
    psutil.wait_procs(kernels, timeout=60)


def test_requests_with_one_key_are_one_run_and_numbers_are_not_given_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "KEPT_RUNS", 1)
    path = write_notebook(tmp_path / "nb.ipynb", "print(1)")
    first = ended(begin(path, key="a", beside=True))
    assert begin(path, key="a").id == first.id
    second = ended(begin(path, key="b", schedule=5))
    third = ended(begin(path))
    assert [run.id for run in list_runs(Home.default())] == [third.id, second.id]
    assert ended(begin(path)).id == 4
    ended(begin(path))
    assert [run.id for run in list_runs(Home.default())] == [5, 4, 3], "only copies stay, but for those of schedules"
    with pytest.raises(NotFoundError, match="Notebook run 1 does not exist"):
        folder_of(1).run()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{}", "is not a notebook of format 4"),
        ("not json", "is not a notebook of format 4"),
        ('{"worksheets": [], "metadata": {}, "nbformat": 3, "nbformat_minor": 0}', "has no code to run"),
        ('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "has no code to run"),
    ],
)
def test_a_file_that_is_not_a_notebook_is_refused_before_anything_runs(
    tmp_path: Path, content: str, sentence: str
) -> None:
    path = tmp_path / "nb.ipynb"
    path.write_text(content)
    with pytest.raises(ArgumentError, match=sentence) as refused:
        begin(path)
    assert "\n" not in str(refused.value)
    assert list_runs(Home.default()) == []


def test_a_kernel_that_is_not_installed_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = write_notebook(tmp_path / "nb.ipynb", "print(1)")
    with pytest.raises(ArgumentError, match=r"Kernel 'nope' is not installed on this machine: use one of .*python3"):
        begin(path, kernel="nope")
    with pytest.raises(ArgumentError, match="cannot be read: No such file"):
        begin(tmp_path / "missing.ipynb")
