"""What is kept of a run: with its experiments, beside the notebook, on a full disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from run_parts import begin, ended, outputs, until, write_notebook
from small_disks import small_disk

from det_native.errors import DiskFullError
from det_native.experimental.choice import Choice
from det_native.notebook_runs.folders import make_folder
from det_native.notebook_runs.keeping import executed_name, keep_executed
from det_native.schema.home import Home
from det_native.schema.notebook_runs import NotebookRun, RunRequest

KEY = "sk-abcdefghij0123456789ABCD"


@pytest.mark.parametrize(
    ("source", "output", "place"),
    [
        (f"api_key = '{KEY}'", None, "cell 2 holds"),
        ("login()", ("stream", {"text": f"using {KEY}\n"}), "the output of cell 2 holds"),
        ("login()", ("stream", {"text": "{'user': 'me', 'password': 'Tr0ub4dor'}\n"}), "the output of cell 2 holds"),
        ("login()", ("stream", {"text": "welcome, correct-horse\n"}), "the output of cell 2 holds"),
        (
            "login()",
            ("error", {"ename": "E", "evalue": "no", "traceback": [f"\x1b[0;32m----> 1\x1b[0m \x1b[33m{KEY}\x1b[39m"]}),
            "the output of cell 2 holds",
        ),
        ("login()", ("display_data", {"data": {"text/html": f"<b>{KEY}</b>"}}), "the output of cell 2 holds"),
        ("login()", ("display_data", {"data": {"image/png": f"{KEY}"}}), ""),
        ("login()", ("stream", {"text": "pad_token: '[PAD]', tokens: 'a b', sk-learn, /keys/mine.json\n"}), ""),
    ],
)
def test_an_executed_notebook_with_a_secret_stays_on_this_machine(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    output: tuple[str, dict[str, Any]] | None,
    place: str,
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "correct-horse")
    folder = make_folder(Home.default())
    folder.write_request(RunRequest(path=str(tmp_path / "nb.ipynb")))
    write_notebook(folder.executed, "import os", "", source)
    if output is not None:
        notebook = nbformat.read(folder.executed, as_version=4)
        notebook.cells[2].outputs = [nbformat.v4.new_output(output[0], **output[1])]
        nbformat.write(notebook, folder.executed)
    folder.experiments.write_text("7\n")
    said = keep_executed(folder)
    assert ("stays on this machine" in said) == bool(place), said
    assert f"{place} what looks like a secret" in said or not place
    assert KEY not in said


def test_the_code_of_a_widget_is_no_secret_and_what_it_shows_may_be(tmp_path: Path) -> None:
    for state, stays in (({"_esm": f"const api_key = '{KEY}'"}, False), ({"value": f"key {KEY}"}, True)):
        folder = make_folder(Home.default())
        folder.write_request(RunRequest(path=str(tmp_path / "nb.ipynb")))
        write_notebook(folder.executed, "show()")
        notebook = nbformat.read(folder.executed, as_version=4)
        notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {"1": {"state": state}}}}
        nbformat.write(notebook, folder.executed)
        folder.experiments.write_text("7\n")
        assert ("a widget holds what looks like a secret" in keep_executed(folder)) == stays


def test_a_master_that_is_gone_is_said_in_a_note(tmp_path: Path) -> None:
    folder = make_folder(Home.default())
    folder.write_request(RunRequest(path=str(tmp_path / "nb.ipynb")))
    write_notebook(folder.executed, "print(1)")
    folder.experiments.write_text("7\n")
    assert "could not be kept with its experiments: No master runs in" in keep_executed(folder)


def test_experiments_belong_to_the_master_that_their_call_named(tmp_path: Path) -> None:
    folder = make_folder(Home.default())
    request = RunRequest(path=str(tmp_path / "nb.ipynb"), master="ssh://gpu-box")
    folder.write_request(request)
    choice = Choice(folder, request)
    for number, master in ((1, "ssh://gpu-box"), (1, "https://other:8080"), (2, "https://other:8080"), (3, "")):
        choice.note(number, master)
    choice.note(4)
    assert folder.experiment_names() == [
        "1", "1 at https://other:8080", "2 at https://other:8080", "3 at this machine", "4",
    ]  # fmt: skip
    assert folder.experiments_by_master() == {
        "ssh://gpu-box": [1, 4],
        "https://other:8080": [1, 2],
        "this machine": [3],
    }


def test_a_run_waits_for_room_on_a_full_disk_and_none_begins_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        monkeypatch.setenv("DET_HOME", str(disk.path / "home"))
        (disk.path / "home").mkdir()
        wait = "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.05)"
        run = begin(write_notebook(tmp_path / "nb.ipynb", wait, "print('x' * 100_000)\nopen('printed', 'w').close()"))
        until(tmp_path / "begun")
        disk.fill()
        with pytest.raises(DiskFullError, match="cannot be written: No space left on device"):
            begin(tmp_path / "nb.ipynb")
        (tmp_path / "go").touch()
        until(tmp_path / "printed")
        disk.empty()
        run = ended(run)
        assert (run.state, run.notes) == ("COMPLETED", [])
        assert outputs(run)[1] == "x" * 100_000 + "\n"


def test_the_copy_of_a_run_with_many_experiments_has_a_name_that_a_disk_takes() -> None:
    run = NotebookRun(id=1, path="/data/nb.ipynb", kernel="", cells=1, executed="", started=0)
    many = run.model_copy(update={"experiments": [f"{number} at https://other" for number in range(100, 160)]})
    assert executed_name(many) == "nb (experiments 100 to 159).ipynb"
    assert executed_name(run.model_copy(update={"experiments": ["7"]})) == "nb (experiment 7).ipynb"
