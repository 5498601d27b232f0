"""Cells that failed, as people's do, and what was run then: the next training can be submitted, with equal values."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kernels import INSTALL, Kernel

pytest.importorskip("torch", reason="kernels here are forked from a process with PyTorch")

Replayed = Callable[..., dict[str, Any]]

#: What refuses as det_native does.
REFUSES = "from det_native.errors import DetError\ndef refuse(*_, **__):\n    raise DetError('no')"
#: A callback in a cell of its own, that predicts with the model of whichever cell trains.
CALLBACK = "class Predicts:\n    def on_epoch_end(self):\n        return model.layers"
TRAIN = "model = Model()\nmodel.add(4)\nfit(model, Predicts())"


@dataclass(frozen=True)
class History:
    """What was run, cell by cell; the last one makes the call.

    Attributes
    ----------
    title : str
    cells : tuple of (str, str)
        Which cell, and its text then. A mended cell has the name of the one that failed.
    show : tuple of str
        Expressions that must be the same on the worker.
    out : tuple of int
        Numbers of executions that the call does not need; fit and Model are imported by the first.
    """

    title: str
    cells: tuple[tuple[str, str], ...]
    show: tuple[str, ...]
    out: tuple[int, ...] = ()


def mended(failed: str, then: str) -> tuple[tuple[str, str], ...]:
    """Return a cell that failed, and the same cell run again with another text."""
    return ("t", failed), ("t", then)


HISTORIES = [
    History(
        "a typo behind the model, and a callback that reads it",
        (("a", CALLBACK), *mended("model = Model()\nmodle.add(4)\nfit(model, Predicts())", TRAIN)),
        ("model.layers",),
        out=(3,),
    ),
    History(
        "a typo in the first line",
        (("a", CALLBACK), *mended("modle = Modell()\n" + TRAIN, TRAIN)),
        ("model.layers",),
        out=(3,),
    ),
    History(
        "no Python at first",
        (("a", CALLBACK), *mended(TRAIN + "\nfit(", TRAIN)),
        ("model.layers",),
        out=(3,),
    ),
    History(
        "failed twice, at two places",
        (
            ("a", CALLBACK),
            ("t", "model = Modell()"),
            ("t", "model = Model()\nmodel.ad(4)"),
            ("t", TRAIN),
        ),
        ("model.layers",),
        out=(3, 4),
    ),
    History(
        "a call that det_native refused, mended by another argument",
        (
            ("a", CALLBACK),
            ("b", REFUSES),
            *mended("model = Model()\nmodel.add(4)\nrefuse(model, Predicts())", TRAIN),
        ),
        ("model.layers",),
        out=(4,),
    ),
    History(
        "a callback was made in between",
        (
            ("a", CALLBACK),
            ("b", REFUSES),
            ("t", "model = Model()\nmodel.add(3)\nrefuse(model)"),
            ("c", "callback = Predicts()"),
            ("t", "model = Model()\nmodel.add(4)\nfit(model, callback)"),
        ),
        ("model.layers", "type(callback).__name__"),
    ),
    History(
        "code behind the training, and another model in a cell below",
        (
            ("t", "import math\nmodel = Model()\nfit(model, local=True)\nmodel = open('best.keras')"),
            ("u", "model = Model()\nmodel.add(math.floor(2.5))\nfit(model)"),
        ),
        ("model.layers",),
    ),
    History(
        "what was made behind the training that worked",
        (
            ("t", "fit(local=True)\nother = Model()\nother.add(7)\nopen('best.keras')"),
            ("u", "fit(other)"),
        ),
        ("other.layers",),
    ),
    History(
        "the model was changed behind the training",
        (
            ("t", "model = Model()\nfit(local=True)\nmodel.add(7)\nopen('best.keras')"),
            ("u", "fit(model)"),
        ),
        ("model.layers",),
    ),
    History(
        "code behind a loop, which needs what the loop left",
        (
            (
                "t",
                "import math\nfor rate in [1, 2]:\n    loss = fit(local=True)\n"
                "last = [rate]\nprint(last, math.missing)",
            ),
            ("u", "x = math.floor(1.5)\nfit(x)"),
        ),
        ("x",),
    ),
    History(
        "only the cells below ran again",
        (("t", "model = Model()\nmodel.add(1)\nprint(model.missing)"), ("u", "model.add(2)"), ("v", "fit(model)")),
        ("model.layers",),
    ),
    History(
        "a cell that redefines what was used before",
        (("a", "x = [1]"), ("b", "y = x + [2]"), ("t", "x = [5]\n1 / 0"), ("u", "fit(x, y)")),
        ("x", "y"),
    ),
    History(
        "a cell that failed before it redefined",
        (("a", "x = [1]"), ("t", "1 / 0\nx = [5]"), ("u", "fit(x)")),
        ("x",),
        out=(3,),
    ),
    History(
        "an import that is not there, between others",
        (
            *mended("import math\nimport no_such_module\nimport json", "import math\nimport json"),
            ("u", "x = math.floor(2.5)\nfit(x)"),
        ),
        ("x",),
        out=(2,),
    ),
    History(
        "a file that is not there, and an absolute path",
        (
            ("t", "import math\nx = math.floor(2.5)\ny = open('missing.csv').read()"),
            ("u", "import json\nz = open('/nowhere/missing.csv').read()"),
            ("v", "fit(json.dumps(x))"),
        ),
        ("x",),
    ),
    History(
        "an assertion behind a training",
        (("t", "model = Model()\nmodel.add(1)\nfit(model, local=True)\nbest = 4\nassert best > 5"), ("u", "fit(best)")),
        ("best",),
        out=(2,),
    ),
    History(
        "a file of the training, behind it, and what was made of it before",
        (
            ("t", "import math\nfit(local=True)\nscore = math.floor(2.5)\nbest = load_model('/nowhere/best.keras')"),
            ("u", "fit(score)"),
        ),
        ("score",),
        out=(2,),
    ),
    History(
        "a block whose end ran",
        (("t", "log = []\ntry:\n    a = 1\n    1 / 0\nfinally:\n    log.append(a)"), ("u", "fit(log)")),
        ("log",),
    ),
    History(
        "an import of which only the failed cell knows",
        (("t", "import math\nimport no_such_module"), ("u", "x = math.floor(2.5)\nfit(x)")),
        ("x",),
    ),
    History(
        "functions of a failed cell",
        (("t", "def double(x):\n    return x * 2\nlimit = 4\ndouble(None)"), ("u", "x = double(limit)\nfit(x)")),
        ("x",),
    ),
    History(
        "appended before it failed, and again as it was mended",
        (("a", "rows = [1]"), *mended("rows.append(2)\n1 / 0", "rows.append(2)"), ("u", "fit(rows)")),
        ("rows",),
    ),
    History(
        "a loop that failed in its third turn",
        (("a", "rows = []"), ("t", "for n in range(4):\n    rows.append(1 / (2 - n))"), ("u", "fit(rows)")),
        ("rows",),
    ),
    History(
        "a loop that failed in its third turn, over a list of its own cell",
        (("t", "rows = []\nfor n in range(4):\n    rows.append(1 / (2 - n))"), ("u", "fit(rows)")),
        ("rows",),
    ),
    History(
        "a loop that failed, mended and run again with its list",
        (
            *mended(*[f"rows = []\nfor n in range(4):\n    rows.append(1 / ({n} - n))" for n in (2, 5)]),
            ("u", "fit(rows)"),
        ),
        ("rows",),
        out=(2,),
    ),
    History(
        "interrupted in a loop that filled a list",
        (
            ("t", "rows = []\nfor n in range(9):\n    rows.append(n)\n    if n == 3:\n        raise KeyboardInterrupt"),
            ("u", "fit(rows)"),
        ),
        ("rows",),
        out=(2,),
    ),
    History(
        "interrupted in a loop that changed what cannot be sent by value",
        (
            (
                "t",
                "import threading\nmodel = Model()\nlock = threading.Lock()\n"
                "for n in range(9):\n    model.add(lock)\n    1 / 0",
            ),
            ("u", "fit(model)"),
        ),
        ("len(model.layers)",),
    ),
    History(
        "arrays and tables that the line which failed may have changed",
        (
            ("a", "import numpy as np\nimport pandas as pd"),
            ("t", "x = np.zeros(3)\ntable = pd.DataFrame({'a': [1, 2]})\nfor n in range(3):\n    x[n] = 1 / (1 - n)"),
            ("u", "table['b'] = 3\nfit(x, table)"),
        ),
        ("x.tolist()", "table.to_dict()"),
    ),
    History(
        "a loop that binds, and fails",
        (("t", "for n in range(4):\n    last = 1 / (2 - n)"), ("u", "fit(last, n)")),
        ("last", "n"),
    ),
    History(
        "names were deleted before it failed",
        (("a", "x = 1\nold = 2"), ("t", "y = x + old\ndel old\n1 / 0"), ("u", "old = 5\nfit(old, y)")),
        ("old", "y"),
    ),
    History(
        "a failed cell deleted what is made again since",
        (("a", "x = 1"), ("t", "del x\n1 / 0"), ("a", "x = 1"), ("u", "fit(x)")),
        ("x",),
        out=(3,),
    ),
    History(
        "several statements on the line that failed",
        (("t", "x = [1]\nx.append(2); 1 / 0; x.append(3)"), ("u", "fit(x)")),
        ("x",),
    ),
    History(
        "under %%time",
        (("t", "%%time\nmodel = Model()\nmodel.add(4)\n1 / 0"), ("u", "fit(model)")),
        ("model.layers",),
    ),
    History(
        "shell lines and magics around",
        (("t", "!true\nmodel = Model()\n%time model.add(4)\n1 / 0"), ("u", "fit(model)")),
        ("model.layers",),
    ),
    History(
        "a statement over several lines, with a text of several lines before it",
        (("t", 'text = """a\nb"""\nx = dict(\n    a=text,\n    b=1 / 0,\n)'), ("u", "fit(text)")),
        ("text",),
    ),
    History(
        "a decorator that is not there",
        (("t", "y = 3\n@missing\ndef f(x):\n    return x"), ("u", "fit(y)")),
        ("y",),
    ),
    History(
        "a cell with a tag that failed, and was mended",
        (*mended("# det-include\nx = missing", "# det-include\nx = 1"), ("u", "fit(x)")),
        ("x",),
        out=(2,),
    ),
    History(
        "init() in a cell that failed below it",
        (
            ("a", "from det_stand_in import init"),
            ("t", "context = init()\nmodel = Model()\nmodel.ad(1)"),
            ("u", "model.add(2)\ncontext.fit(model)"),
        ),
        ("model.layers",),
    ),
    History(
        "init() in a cell that failed below it, and was run again",
        (
            ("a", CALLBACK),
            ("b", "from det_stand_in import init"),
            *mended(
                "context = init()\nmodel = Model()\nmodel.ad(1)",
                "context = init()\nmodel = Model()\nmodel.add(2)\ncontext.fit(model, Predicts())",
            ),
        ),
        ("model.layers",),
        out=(4,),
    ),
    History(
        "a setting for the process before it failed",
        (
            ("a", "import os"),
            ("t", "os.environ['DET_SCALE'] = '3'\n1 / 0"),
            ("u", "x = int(os.environ['DET_SCALE'])\nfit(x)"),
        ),
        ("x",),
    ),
    History(
        "a setting for the process in a cell that was mended",
        (
            ("a", "import os"),
            *mended("os.environ['DET_SCALE'] = '3'\nx = missing", "os.environ['DET_SCALE'] = '3'\nx = 4"),
            ("u", "fit(x, os.environ['DET_SCALE'])"),
        ),
        ("x", "__import__('os').environ['DET_SCALE']"),
        out=(3,),
    ),
    History(
        "a look at data that failed",
        (("a", "rows = [3, 1]"), ("t", "print(sorted(rows))\nprint(rows.missing)"), ("u", "fit(rows)")),
        ("rows",),
        out=(3,),
    ),
    History(
        "drawn before and in the line that failed",
        (
            ("a", "import random\nrandom.seed(1)"),
            ("t", "x = random.random()\ny = [random.random(), 1 / 0]"),
            ("u", "z = random.random()\nfit(x, z)"),
        ),
        ("x", "z"),
    ),
    History(
        "a function with a global of its own",
        (
            ("a", "def load():\n    global rows\n    rows = [1, 2]\n    raise ValueError"),
            ("t", "size = 3\nload()"),
            ("u", "fit(rows, size)"),
        ),
        ("rows", "size"),
    ),
    History(
        "the failed cell has the function that trains",
        (
            ("t", "def train(model):\n    fit(model)\nmodel = Model()\nmodel.add(3)\ntrian(model)"),
            ("u", "train(model)"),
        ),
        ("model.layers",),
    ),
    History(
        "values that share a list are not torn apart",
        (
            ("a", "rows = [[1], [2]]\nfirst = rows[0]"),
            ("t", "first.append(5)\n1 / 0"),
            ("u", "rows[0].append(6)\nfit(rows, first)"),
        ),
        ("rows", "first"),
    ),
]


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.title)
def test_a_training_after_a_failed_cell(kernel: Kernel, replayed: Replayed, history: History) -> None:
    for cell, source in history.cells:
        kernel.run(source, cell=cell)
    found = kernel.found()
    assert found.error == ""
    assert found.needs_none_of(*history.out)
    assert found.warnings == []
    assert replayed(found, *history.show) == kernel.live(*history.show)


@pytest.mark.parametrize("used", ["model", "layers"])
def test_what_the_training_of_a_failed_cell_was_given_is_as_it_was_before(
    kernel: Kernel, replayed: Replayed, used: str
) -> None:
    kernel.cells(
        "import math as layers\nmodel = Model()\nfit(model, layers, local=True)\nopen('best.keras')",
        f"x = {used}\nfit(x)",
    )
    found = kernel.found()
    assert found.needs_none_of(2)
    assert found.warnings == []
    assert replayed(found, "type(x).__name__") == kernel.live("type(x).__name__")


def test_a_cell_that_failed_before_det_native_was_imported(kernel: Kernel, replayed: Replayed, tmp_path: Path) -> None:
    folder = tmp_path / "early"
    folder.mkdir()
    kernel.begin(folder, imported=False)
    kernel.cells("rows = [1]\nlimit = 2", "limit = 3\nrows.append(2)\n1 / 0\nlimit = 4")
    for code in INSTALL[:1]:
        kernel.run(code)
    kernel.cells("from det_stand_in import fit", "fit(rows, limit)")
    found = kernel.found()
    assert found.error == ""
    assert replayed(found, "rows", "limit") == kernel.live("rows", "limit")


def test_a_module_that_a_failed_cell_imported_and_that_was_edited_since(kernel: Kernel) -> None:
    module = kernel.folder / "scales.py"
    module.write_text("SCALE = 1\n")
    os.utime(module, (1, 1))
    kernel.run("import scales\nscale = scales.SKALE", cell="t")
    module.write_text("SCALE = 2\n")
    kernel.run("import scales\nscale = scales.SCALE\nfit(scale)", cell="t")
    assert any("scales.py was edited after the notebook imported it" in one for one in kernel.found().warnings)


@pytest.mark.parametrize(
    "cells",
    [
        (
            "model = Model()\nlock = __import__('threading').Lock()",
            "for n in range(3):\n    model.add(lock)\n    1 / (1 - n)",
            "fit(model)",
        ),
        ("if True:\n    model = Model()\n    1 / 0", "fit(model)"),
        (
            "from det_stand_in import init",
            "if True:\n    context = init()\n    1 / 0",
            "model = Model()\ncontext.fit(model)",
        ),
    ],
)
def test_what_a_statement_did_before_it_failed_is_done_again(
    kernel: Kernel, replayed: Replayed, cells: tuple[str, ...]
) -> None:
    kernel.cells(*cells)
    assert replayed(kernel.found(), "len(model.layers)") == kernel.live("len(model.layers)")


@pytest.mark.parametrize("text", ["1 / 0\n", "1 +\n"])
def test_a_module_that_cannot_be_imported(kernel: Kernel, replayed: Replayed, text: str) -> None:
    (kernel.folder / "broken.py").write_text(text)
    kernel.cells("import math\nimport broken", "x = math.floor(2.5)\nfit(x)")
    found = kernel.found()
    assert found.error == ""
    assert replayed(found, "x") == kernel.live("x")


def test_what_stands_behind_the_call_that_is_sent_needs_nothing(kernel: Kernel) -> None:
    (kernel.folder / "best.keras").write_text("of an earlier try")
    (kernel.folder / "broken.py").write_text("1 +\n")
    kernel.cells(
        "x = 1\nfit(x)\nload_model('best.keras')\nopen('/nowhere/best.keras')\nopen('missing.csv')\nimport broken"
    )
    found = kernel.found()
    assert found.error == ""
    assert found.files == []
    assert found.warnings == []


def test_the_report_says_what_of_a_failed_cell_counts(kernel: Kernel) -> None:
    kernel.cells(
        "import math\n1 / 0",
        "fit(local=True)\nx = [2]\n1 / 0",
        "def wait():\n    raise KeyboardInterrupt\ny = math.floor(1.5)\nwait()",
        "fit(",
        "fit(x, y)",
    )
    found = kernel.found()
    notes = {row.cell: row.note for row in found.rows}
    assert notes["[2]"].endswith("as far as line 2, which failed")
    assert notes["[3]"] == "stays behind: trained; failed at line 3: what it did until then counts"
    assert notes["[4]"].endswith("only what stands before line 4, which was interrupted")
    assert notes["[5]"] == "stays behind: nothing of it ran"
