"""``python -m det_native.experimental.document inspect``: what a submit of a document would do. Nothing of it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from det_native.experimental.document import main

INIT = "import det_native as det\ncontext = det.experimental.keras.init(config)"
CONFIG = """config = {
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 4}},
    "hyperparameters": {"global_batch_size": 8}, "records_per_epoch": 64,
}"""
TRAIN = "model = context.wrap_model(build())\nmodel.compile('adam', 'mse')\nmodel.fit(x, y, validation_data=(x, y))"
DATA = "import numpy as np\nx, y = np.ones((64, 1)), np.ones(64)"
BUILD = "import tensorflow as tf\ndef build():\n    return tf.keras.Sequential([tf.keras.layers.Dense(1)])"
TRIAL = """import det_native as det
from det_native.pytorch import PyTorchTrial

class Line(PyTorchTrial):
    pass
"""

CREATE = "det.experimental.create(Line, other)"

Ask = Callable[..., dict[str, Any]]


def cell(source: str, number: int | None = None, executed: str | None = None, *tags: str) -> dict[str, Any]:
    return {"id": "", "source": source, "execution_count": number, "executed": executed, "tags": list(tags)}


def request(folder: Path, *cells: str | dict[str, Any], **more: Any) -> dict[str, Any]:
    written = [cell(one) if isinstance(one, str) else dict(one) for one in cells]
    for index, one in enumerate(written):
        one["id"] = one["id"] or f"id-{index}"
    return {"path": str(folder / "book.ipynb"), "kernelspec": "python3", "cells": written, "place": "cluster"} | more


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """Inspect a document in this process; where that is, and its paths, are put back afterwards."""
    before, path, session = os.getcwd(), list(sys.path), os.environ.get("JPY_SESSION_NAME")

    def inspect(*cells: str | dict[str, Any], **more: Any) -> dict[str, Any]:
        return main(["inspect"], json.dumps(request(tmp_path, *cells, **more)))

    yield inspect
    os.chdir(before)
    sys.path[:] = path
    os.environ.pop("JPY_SESSION_NAME", None)
    if session is not None:
        os.environ["JPY_SESSION_NAME"] = session


def ids(cells: list[dict[str, Any]]) -> list[str]:
    return [one["id"] for one in cells]


def test_the_call_and_the_cells_that_run_are_told(ask: Ask) -> None:
    answer = ask(BUILD, "print('shown')", CONFIG, INIT, DATA, "unused = 1", TRAIN, "model.predict(x)")
    assert (answer["problems"], answer["warnings"]) == ([], [])
    assert answer["call"] == {"cell": 7, "id": "id-6", "line": 3, "kind": "fit", "framework": "keras"}
    assert answer["here"]["cells"] == [f"id-{index}" for index in range(7)]
    assert (answer["cells_in_all"], answer["written"]) == (8, {"place": "cluster", "test": False})
    assert (answer["master"], answer["master_problem"]) == (None, "")


def test_a_master_that_cannot_be_used_is_told_from_none(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_MASTER", "https://master.example:8080")
    monkeypatch.delenv("DET_TOKEN", raising=False)
    answer = ask(BUILD, CONFIG, INIT, DATA, TRAIN)
    assert (answer["master"], answer["problems"]) == (None, [])
    assert answer["master_problem"].startswith("There is no token for the master at https://master.example:8080")


def test_the_last_of_several_calls_is_sent_or_the_one_that_is_chosen(ask: Ask) -> None:
    create = "det.experimental.create(Line, config)"
    cells = (TRIAL, CONFIG, create, f"def again():\n    {create}", "again()")
    last = ask(*cells)
    assert [(each["cell"], each["line"], each["running"]) for each in last["calls"]] == [(3, 1, None), (4, 2, 5)]
    assert (last["chosen"], last["call"]["kind"], last["call"]["cell"]) == (1, "create", 4)
    [warning] = last["warnings"]
    assert "not sent: code cell 3 (create). Those above it do not train" in warning
    chosen = ask(*cells, call=0)
    assert (chosen["chosen"], chosen["call"]["cell"]) == (0, 3)
    assert chosen["here"]["cells"] == ["id-0", "id-1", "id-2"]
    [warning] = chosen["warnings"]
    assert warning == "Only one training call is sent, create() in code cell 3, line 1; not sent: code cell 5 (create)."


def test_a_call_in_a_loop_is_refused(ask: Ask) -> None:
    loop = f"for i in range(3):\n    {TRAIN.splitlines()[2]}"
    [problem] = ask(BUILD, DATA, CONFIG, INIT, loop)["problems"]
    assert problem["where"] == "Code cell 5, line 2"
    assert "in a loop" in problem["what"]


@pytest.mark.parametrize(("number", "expected"), [(11, (15, True)), (None, (5, False))])
def test_cells_have_the_numbers_that_the_notebook_shows_or_their_places(
    ask: Ask, number: int | None, expected: tuple[int, bool]
) -> None:
    cells = [cell(BUILD, number), cell(DATA, 12), cell(CONFIG, 3), cell(INIT, 14), cell(TRAIN, 15), cell("later", None)]
    answer = ask(*cells)
    assert (answer["call"]["cell"], answer["prompts"]) == expected


def test_what_is_not_python_runs_as_run_all_has_it_but_for_what_cannot_run(ask: Ask) -> None:
    cells = (BUILD, "%matplotlib inline", "%%bash\necho hi", f"%%time\n{DATA}", "x = (", "%%writefile a.py\nb = 1")
    answer = ask(*cells, CONFIG, INIT, f"%%time\n{TRAIN}")
    assert answer["call"]["line"] == 4
    assert answer["here"]["cells"] == [f"id-{at}" for at in (0, 1, 2, 3, 5, 6, 7, 8)]
    [warning] = answer["warnings"]
    assert warning.startswith("Code cell 5 is not valid Python")
    assert warning.endswith("and is left out.")


def test_cells_that_changed_since_they_ran_are_listed(ask: Ask) -> None:
    answer = ask(
        cell(BUILD, 1, BUILD), cell(DATA, 2, "x = 1"), cell(CONFIG, 3, None), INIT, cell(TRAIN, 5, TRAIN), "1 + 1"
    )
    assert [(one["id"], one["why"]) for one in answer["changed"]] == [
        ("id-1", "text differs from what last ran"),
        ("id-3", "not run yet"),
    ]


def test_cells_that_ran_in_another_order_than_they_stand_are_listed(ask: Ask) -> None:
    answer = ask(cell(BUILD, 7, BUILD), cell(DATA, 2, DATA), cell(CONFIG, 8, CONFIG), INIT, cell(TRAIN, 3, None))
    assert [(one["id"], one["why"]) for one in answer["changed"]] == [
        ("id-1", "last ran before a cell above; a submit runs the cells from top to bottom"),
        ("id-3", "not run yet"),
    ], "what ran in an earlier session, as the last, is not known to be of another order"


def test_tags_leave_out_and_force_in(ask: Ask) -> None:
    answer = ask(cell("1 + 1", None, None, "det-include"), BUILD, DATA, "# det-skip\nx = 2", CONFIG, INIT, TRAIN)
    assert answer["here"]["cells"] == ["id-0", "id-1", "id-2", "id-4", "id-5", "id-6"]


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ([DATA], "There is none among its code cells"),
        ([CONFIG, INIT], "init() is called, but no model"),
        (["from sklearn.svm import SVC\nSVC().fit([[1]], [1])"], "There is none"),
        (["model.fit(x"], "Code cell 1 is not valid Python"),
        ([], "There is none"),
    ],
)
def test_a_document_without_a_call_says_what_is_looked_for(ask: Ask, cells: list[str], text: str) -> None:
    answer = ask(*cells)
    assert not answer["ok"]
    [problem] = answer["problems"]
    assert text in problem["what"]
    assert "context.wrap_model" in problem["remedy"]


def test_what_the_document_says_of_its_place(ask: Ask) -> None:
    answer = ask(BUILD, DATA, CONFIG, INIT.replace("(config)", "(config, local=True, test=True)"), TRAIN)
    assert answer["written"] == {"place": "here", "test": True}
    both = ask(BUILD, DATA, CONFIG, INIT.replace("(config)", "(config, mode='cluster', local=flag())"), TRAIN)
    assert both["written"] == {"place": "cluster", "test": False}


def test_a_request_that_cannot_be_read_is_answered(tmp_path: Path) -> None:
    assert "usage" in main(["look"], "{}")["error"]
    assert "cells" in main(["inspect"], json.dumps({"path": "/x"}))["error"]
    assert "absolute" in main(["inspect"], json.dumps({"path": "x.ipynb", "cells": []}))["error"]


@pytest.mark.slow
def test_the_command_answers_on_stdout_alone_and_imports_nothing_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')")
    body = request(tmp_path, BUILD, DATA, CONFIG, INIT, TRAIN)
    command = [sys.executable, "-P", "-X", "importtime", "-m", "det_native.experimental.document", "inspect"]
    done = subprocess.run(
        command, input=json.dumps(body), cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout)["ok"]
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not imported & {"numpy", "tensorflow", "torch", "IPython"}
    body["cells"] = []
    done = subprocess.run(
        command[:2] + command[4:], input=json.dumps(body), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (1, False)
