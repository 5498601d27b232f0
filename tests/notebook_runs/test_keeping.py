"""What is kept of a run: with its experiments, beside the notebook, on a full disk."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from run_parts import begin, ended, outputs, write_notebook
from small_disks import small_disk

from det_native.errors import DiskFullError
from det_native.notebook_runs.folders import make_folder
from det_native.notebook_runs.keeping import keep_executed
from det_native.schema.home import Home
from det_native.schema.notebook_runs import NotebookRun, RunRequest


def test_an_executed_notebook_with_a_secret_stays_on_this_machine(tmp_path: Path) -> None:
    folder = make_folder(Home.default())
    folder.write_request(RunRequest(path=str(tmp_path / "nb.ipynb")))
    write_notebook(folder.executed, "import os", "", "api_key = 'sk-abcdefghij0123456789ABCD'")
    run = NotebookRun(id=folder.id, path="", kernel="", cells=2, executed=str(folder.executed), started=0)
    assert keep_executed(folder, run) == "", "no experiment, nothing to keep"
    said = keep_executed(folder, run.model_copy(update={"experiments": ["7", "local-1"]}))
    assert "stays on this machine" in said
    assert "cell 2 holds what looks like a secret" in said


def test_a_master_that_is_gone_is_said_in_a_note(tmp_path: Path) -> None:
    folder = make_folder(Home.default())
    folder.write_request(RunRequest(path=str(tmp_path / "nb.ipynb")))
    write_notebook(folder.executed, "print(1)")
    run = NotebookRun(id=1, path="", kernel="", cells=1, executed=str(folder.executed), started=0, experiments=["7"])
    assert "could not be kept with its experiments: No master runs in" in keep_executed(folder, run)


def test_a_run_waits_for_room_on_a_full_disk_and_none_begins_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        monkeypatch.setenv("DET_HOME", str(disk.path / "home"))
        (disk.path / "home").mkdir()
        wait = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)"
        run = begin(write_notebook(tmp_path / "nb.ipynb", wait, "print('x' * 100_000)\nopen('printed', 'w').close()"))
        disk.fill()
        with pytest.raises(DiskFullError, match="cannot be written: No space left on device"):
            begin(tmp_path / "nb.ipynb")
        (tmp_path / "go").touch()
        deadline = time.monotonic() + 60
        while not (tmp_path / "printed").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        disk.empty()
        run = ended(run)
        assert (run.state, run.notes) == ("COMPLETED", [])
        assert outputs(run)[1] == "x" * 100_000 + "\n"
