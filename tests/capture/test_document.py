"""``python -m det_native.experimental.document inspect``: what a document would send. Nothing of it runs."""

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
from det_native.frameworks import get_framework

INIT = "import det_native as det\ncontext = det.experimental.keras.init(config)"
CONFIG = """config = {
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 4}},
    "hyperparameters": {"global_batch_size": 8}, "records_per_epoch": 64,
}"""
TRAIN = "model = context.wrap_model(build())\nmodel.compile('adam', 'mse')\nmodel.fit(x, y, validation_data=(x, y))"
DATA = "import numpy as np\nx, y = np.ones((64, 1)), np.ones(64)"
BUILD = "import tensorflow as tf\ndef build():\n    return tf.keras.Sequential([tf.keras.layers.Dense(1)])"
SECRET = "api_key = 'sk-abcdefghijklmnopqrstuvwxyz123456'"
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


def sent(answer: dict[str, Any]) -> list[str]:
    """Return the cells that are sent, as the table names them."""
    return [row["what"] for row in answer["rows"] if row["how"] == "runs again"]


def ids(cells: list[dict[str, Any]]) -> list[str]:
    return [one["id"] for one in cells]


def test_a_document_with_literals_needs_no_run(ask: Ask) -> None:
    answer = ask(BUILD, "print('shown')", CONFIG, INIT, DATA, "unused = 1", TRAIN, "model.predict(x)")
    assert answer["problems"] == []
    assert answer["must_run"] == []
    assert answer["call"] == {"cell": 7, "id": "id-6", "line": 3, "kind": "fit", "framework": "keras"}
    assert answer["here"]["cells"] == [f"id-{index}" for index in range(7)]
    assert answer["config"]["searcher"]["metric"] == "val_loss"
    assert answer["slots"] == 1
    assert (answer["master"], answer["master_problem"]) == (None, "")
    assert answer["total"] == answer["new"] > 0


def test_a_master_that_cannot_be_used_is_told_from_none(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_MASTER", "https://master.example:8080")
    monkeypatch.delenv("DET_TOKEN", raising=False)
    answer = ask(BUILD, CONFIG, INIT, DATA, TRAIN)
    assert (answer["master"], answer["problems"]) == (None, [])
    assert answer["master_problem"].startswith("There is no token for the master at https://master.example:8080")
    assert answer["total"] == answer["new"] > 0


def test_what_fit_is_given_is_not_guessed_from_its_text(ask: Ask) -> None:
    fit = "model = context.wrap_model(build())\nmodel.fit(x, y, 16, epochs=3, steps_per_epoch=5)"
    slots = 1 if get_framework("keras").one_slot else 2
    answer = ask(BUILD, DATA, f"config = {{'name': 'n', 'resources': {{'slots_per_trial': {slots}}}}}", INIT, fit)
    assert answer["config"] is None
    assert answer["slots"] == slots
    assert ids(answer["must_run"]) == ["id-0", "id-1", "id-2", "id-3", "id-4"]
    assert (
        "searcher.max_length and searcher.metric are not in the configuration: what fit() is given"
        in (answer["must_run"][-1]["why"])
    )


@pytest.mark.parametrize(
    ("config", "train", "why"),
    [
        (CONFIG.replace("64", "len(x)"), TRAIN, "config depends on `len(x)` (code cell 3, line 3)"),
        ("config = None", TRAIN, "hyperparameters.global_batch_size and records_per_epoch and"),
        (
            CONFIG,
            f"config['name'] = str(len(x))\n{TRAIN}",
            "config depends on `config['name'] = str(len(x))` (code cell 5",
        ),
        (
            CONFIG,
            f"def go():\n    {TRAIN.replace(chr(10), chr(10) + '    ')}\ngo()",
            "fit() in code cell 5, line 4 stands in a f",
        ),
        (f"{CONFIG}\n{INIT}", TRAIN, "which of 2 calls of init() above it is meant"),
        (
            CONFIG,
            f"if np.mean(x) > 0:\n    {TRAIN.replace(chr(10), chr(10) + '    ')}",
            "`if np.mean(x) > 0:`, in line 1",
        ),
        (CONFIG, "def go(model):\n    model.fit(x)\nfrom elsewhere import wrapped\ngo(wrapped)", "whether its model"),
        (
            "import os\nconfig = os.environ['CONFIG']",
            TRAIN,
            "config depends on `os.environ",
        ),
    ],
)
def test_what_only_running_tells_is_told_with_its_reason(
    ask: Ask, tmp_path: Path, config: str, train: str, why: str
) -> None:
    (tmp_path / "elsewhere.py").write_text("def wrapped(): ...\n")
    answer = ask(BUILD, DATA, config, INIT, train)
    assert answer["config"] is None
    assert ids(answer["must_run"]) == answer["here"]["cells"]
    assert why in answer["must_run"][-1]["why"]


@pytest.mark.parametrize("asks", ["init(config, lokal=True)", "init(config, local=True, vales=['x'])"])
def test_an_argument_that_there_is_not_is_found_without_a_run(ask: Ask, asks: str) -> None:
    [problem] = ask(BUILD, CONFIG, INIT.replace("init(config)", asks), DATA, TRAIN)["problems"]
    assert (problem["where"], problem["what"]) == (
        "Code cell 3, line 2",
        "init() takes no argument 'lokal'. Did you mean local?"
        if "lokal" in asks
        else "init() takes no argument 'vales'. Did you mean values?",
    )


def test_declared_values_are_made_by_running_their_cells(ask: Ask) -> None:
    data = ("import numpy as np", "x = np.ones((64, 1))", "y = np.ones(64)")
    init = INIT.replace("(config)", "(config, values=['x', 'y'])")
    answer = ask(BUILD, *data, CONFIG, init, TRAIN)
    assert "values=x, y" in answer["must_run"][-1]["why"]
    assert [row["what"] for row in answer["rows"] if row["how"] == "value"] == ["x", "y"]
    assert sent(answer) == ["code cell 1", "code cell 2", "code cell 5", "code cell 6", "code cell 7"]
    assert answer["here"]["cells"] == [f"id-{index}" for index in range(7)]
    seeded = ("import numpy as np\nnp.random.seed(1)\nx = np.random.rand(64, 1)", "y = np.ones(64)")
    assert "code cell 2" in sent(ask(BUILD, *seeded, CONFIG, init, TRAIN)), "it does more than make the value"


def test_a_trial_class_and_the_last_of_several_calls(ask: Ask) -> None:
    second = CONFIG.replace("config = {", 'other = {"name": "second",')
    answer = ask(TRIAL, CONFIG, "first = det.experimental.create(Line, config)", f"{second}\n{CREATE}")
    assert (answer["call"]["kind"], answer["call"]["framework"]) == ("create", "torch")
    assert answer["config"]["name"] == "second"
    assert answer["here"]["cells"] == ["id-0", "id-1", "id-2", "id-3"]
    [warning] = answer["warnings"]
    assert "not sent: code cell 3 (create). Those above it do not train on the worker" in warning


def test_ranges_that_nothing_searches_are_warned_of_before_a_submit(ask: Ask) -> None:
    ranges = CONFIG.replace(
        '"global_batch_size": 8', '"global_batch_size": 8, "lr": {"type": "log", "minval": -3, "maxval": -1}'
    )
    answer = ask(TRIAL, ranges, "det.experimental.create(Line, config)")
    [warning] = answer["warnings"]
    assert "hyperparameters.lr gets a random value of its range. To search, set searcher.name: random" in warning


def test_a_trial_class_of_a_module_tells_its_framework_by_its_text_or_when_it_runs(ask: Ask, tmp_path: Path) -> None:
    cells = TRIAL.replace("class Line(PyTorchTrial):\n    pass", "from models import Line")
    answer = ask(cells, CONFIG, "det.experimental.create(Line, config)")
    assert "which framework its trial class is of" in answer["must_run"][-1]["why"]
    (tmp_path / "models.py").write_text("from det_native import pytorch\nclass Line(pytorch.PyTorchTrial):\n    pass\n")
    known = ask(cells, CONFIG, "det.experimental.create(Line, config)")
    assert (known["call"]["framework"], known["must_run"]) == ("torch", [])


def test_another_call_than_the_last_can_be_chosen(ask: Ask) -> None:
    create = "det.experimental.create(Line, config)"
    cells = (TRIAL, CONFIG, create, f"def again():\n    {create}", "again()")
    last = ask(*cells)
    assert [(each["cell"], each["line"], each["running"]) for each in last["calls"]] == [(3, 1, None), (4, 2, 5)]
    assert last["chosen"] == 1
    assert "stands in a function" in last["must_run"][-1]["why"]
    chosen = ask(*cells, call=0)
    assert (chosen["chosen"], chosen["call"]["cell"], chosen["must_run"]) == (0, 3, [])
    assert chosen["here"]["cells"] == ["id-0", "id-1", "id-2"]
    [warning] = chosen["warnings"]
    assert warning == "Only one training call is sent, create() in code cell 3, line 1; not sent: code cell 5 (create)."


def test_cells_are_numbered_as_the_notebook_shows_them(ask: Ask) -> None:
    cells = [cell(BUILD, 11), cell(DATA, 12), cell(CONFIG, 3), cell(INIT, 14), cell(TRAIN, 15), cell("later", None)]
    shown = ask(*cells)
    assert (shown["call"]["cell"], shown["prompts"]) == (15, True)
    assert "[11], [12], [3], [14], [15]" in [row["cell"] for row in shown["rows"]]
    assert "cell [15]" in [row["what"] for row in shown["rows"]]


def test_cells_are_numbered_by_their_places_without_brackets(ask: Ask) -> None:
    cells = [cell(BUILD, None), cell(DATA, 12), cell(CONFIG, 3), cell(INIT, 14), cell(TRAIN, 15)]
    placed = ask(*cells)
    assert (placed["call"]["cell"], placed["prompts"]) == (5, False)
    assert "1, 2, 3, 4, 5" in [row["cell"] for row in placed["rows"]]
    assert "code cell 5" in [row["what"] for row in placed["rows"]]


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
        ("id-1", "last ran before a cell above; what is sent runs from top to bottom"),
        ("id-3", "not run yet"),
    ], "what ran in an earlier session, as the last, is not known to be of another order"


def test_tags_leave_out_and_force_in(ask: Ask) -> None:
    answer = ask(cell("1 + 1", None, None, "det-include"), BUILD, DATA, "# det-skip\nx = 2", CONFIG, INIT, TRAIN)
    assert answer["here"]["cells"] == ["id-0", "id-1", "id-2", "id-4", "id-5", "id-6"]


def test_magics_are_transformed_and_requirements_reported(ask: Ask) -> None:
    answer = ask("%pip install einops\n%matplotlib inline", BUILD, f"%%time\n{DATA}", CONFIG, INIT, f"%%time\n{TRAIN}")
    assert answer["problems"] == []
    assert answer["call"]["line"] == 4
    assert [row["what"] for row in answer["rows"] if row["how"] == "requirement"] == ["einops"]
    assert "id-0" not in answer["here"]["cells"]


def test_what_a_shell_line_sets_and_cells_in_other_languages_are_told(ask: Ask) -> None:
    answer = ask(BUILD, "files = !ls | wc -l", "%%bash\necho hi", DATA, CONFIG, INIT, TRAIN)
    [set_by_shell] = [one for one in answer["warnings"] if "files" in one]
    assert "`files = !ls | wc -l` in code cell 2" in set_by_shell
    assert "values=['files']" in set_by_shell
    assert "Cells in other languages than Python are not sent: code cell 3 (%%bash)." in answer["warnings"]


def test_cells_that_only_show_and_those_that_write_files_are_told(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "kept.py").write_text("size = 1\n")
    (tmp_path / "edited.py").write_text("size = 1\n")
    (tmp_path / "longer.txt").write_text("a\nb\n")
    answer = ask(
        BUILD,
        "%%html\n<b>Results</b>",
        "%%writefile kept.py\nsize = 1",
        "%%writefile edited.py\nsize = 2",
        "%%writefile gone.py\nsize = 3",
        "%%writefile -a longer.txt\nb",
        DATA,
        CONFIG,
        INIT,
        TRAIN,
    )
    assert answer["problems"] == []
    assert "Cells in other languages than Python are not sent: code cell 2 (%%html)." in answer["warnings"]
    writes = [one for one in answer["warnings"] if "writes" in one]
    assert len(writes) == 2
    assert writes[0].startswith("Code cell 4 writes edited.py")
    assert "another content" in writes[0]
    assert "Code cell 5 writes gone.py" in writes[1]
    assert "no such file" in writes[1]


def test_local_modules_and_data_travel_without_being_imported(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit('imported')\nfrom other import z\n")
    (tmp_path / "other.py").write_text("z = 1\n")
    (tmp_path / "rows.csv").write_text("1,2\n")
    data = "import mine, pandas as pd\nx = y = pd.read_csv('rows.csv')"
    answer = ask(BUILD, data, CONFIG, INIT, TRAIN)
    assert {row["what"] for row in answer["rows"] if row["how"] == "file"} == {"mine.py", "other.py", "rows.csv"}
    assert "mine" not in sys.modules


def test_what_a_star_import_binds_is_learnt_by_running_the_cells(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "names.py").write_text("import os\nx = y = 1\n_hidden = 2\n")
    answer = ask(BUILD, "from names import *", CONFIG, INIT, TRAIN)
    assert "config depends on `from names import *` (code cell 2" in answer["must_run"][-1]["why"]
    assert answer["problems"] == [], "which names it binds is not known"


@pytest.mark.parametrize(
    ("cells", "where", "what"),
    [
        ([BUILD, CONFIG, INIT, TRAIN, DATA], "Code cell 4, line 3", "only code cell 5, further down, defines it"),
        ([BUILD, CONFIG, INIT, TRAIN], "Code cell 4, line 3", "`x` is used, but no cell above defines it"),
        ([BUILD, f"# det-skip\n{DATA}", CONFIG, INIT, TRAIN], "Code cell 5, line 3", "is tagged det-skip"),
        ([BUILD, f"{DATA}\nx = (", CONFIG, INIT, TRAIN], "Code cell 5, line 3", "code cell 2 is not valid Python"),
        ([BUILD, DATA, CONFIG, INIT, f"for i in range(3):\n    {TRAIN.splitlines()[2]}"], "Code cell 5", "in a loop"),
        ([BUILD, DATA, CONFIG.replace("val_loss", 'val_loss", "nmae": "x'), INIT, TRAIN], "searcher.nmae", ""),
        ([BUILD, DATA, CONFIG, INIT.replace("(config)", "(config, context_dir='nowhere')"), TRAIN], "", "nowhere"),
        ([BUILD, f"{DATA}\n{SECRET}\nx = f(api_key)", CONFIG, INIT, TRAIN], "Code cell 2, line 3", "secret"),
        ([BUILD, "%%bash\nx=1", "x = y = shell", "%%bash --out shell\nls", CONFIG, INIT, TRAIN], "", "shell"),
    ],
)
def test_what_stands_in_the_way_is_listed_with_its_cell(ask: Ask, cells: list[str], where: str, what: str) -> None:
    answer = ask(*cells)
    assert answer["ok"]
    texts = [f"{one['where']}: {one['what']}" for one in answer["problems"]]
    assert any(where in text and what in text for text in texts), texts


def test_names_that_functions_look_up_are_resolved(ask: Ask) -> None:
    answer = ask(BUILD.replace("import tensorflow as tf\n", ""), DATA, CONFIG, INIT, TRAIN)
    assert "`tf` is used" in answer["problems"][0]["what"]


@pytest.mark.parametrize(
    "data",
    [
        "def make():\n    global x, y\n    x = y = 1\nmake()",
        "exec('x = y = 1')",
        "try:\n    x, y = tpu\nexcept NameError:\n    x = y = 1",
        "y = 1\nif (x := y):\n    scale = lambda: x",
        "x = y = 1\ndef f():\n    return nobody_asks_for_it",
        "x = y = 1\ndef count():\n    return model.steps\nlosses, count = [], 0\ndef f():\n    return count\nf()",
        "import os.path as p\nx = y = p.join('a')\n[z for z in range(3)]",
        "class A:\n    b = 1\n    c = b\nx = y = A",
        "from math import *\nx = y = sqrt(2)",
        "for x in range(3):\n    pass\nwith open('y') as y:\n    y",
        "display(get_ipython(), __name__)\nx = y = 1\nz: 'Unknown' = 1",
        "import asyncio\nawait asyncio.sleep(0)\nx = y = lambda a, *b, c=1, **d: (a, b, c, d)",
        "match 1:\n    case x:\n        y = x",
    ],
)
def test_names_that_may_be_there_are_no_problem(ask: Ask, data: str) -> None:
    assert ask(BUILD, data, CONFIG, INIT, TRAIN)["problems"] == []


def test_a_cell_that_asks_somebody_is_told_where_it_is_needed(ask: Ask) -> None:
    assert ask(BUILD, DATA, "input()", CONFIG, INIT, TRAIN)["problems"] == []
    problems = ask(BUILD, "x = y = input()", CONFIG, INIT, TRAIN)["problems"]
    assert "code cell 2, which makes it, cannot run there: it asks for input()" in problems[0]["what"]


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


def test_what_the_document_says_and_what_the_dialog_says(ask: Ask) -> None:
    local = INIT.replace("(config)", "(config, local=True, test=True)")
    answer = ask(BUILD, DATA, CONFIG, local, TRAIN)
    assert answer["written"] == {"place": "here", "test": True}
    assert ask(BUILD, DATA, CONFIG, local, TRAIN, slots=3)["ok"]


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
