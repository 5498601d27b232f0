"""Which call of a notebook is captured, and where it stands: loops, functions, magics, and what comes after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]


def test_a_loop_of_experiments_in_one_cell(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "found_rates = []",
        "for rate in (0.1, 0.2, 0.3):\n    m = Model()\n    m.add(rate)\n    found_rates.append(m.fit(rate))",
    )
    for occurrence, rate in ((3, "0.3"), (2, "0.2"), (1, "0.1")):
        found = kernel.found()
        assert found.program is not None
        assert found.program.call is not None
        assert found.program.call.occurrence == occurrence
        if occurrence == 2:
            assert replayed(found, "rate", "m.layers") == {"rate": rate, "m.layers": f"[{rate}]"}


def test_a_loop_of_experiments_by_running_a_cell_again(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("results = []")
    for rate in (1, 2, 3):
        kernel.run(f"rate = {rate}", cell="rate")
        kernel.run("model = Model()\nmodel.add(rate)", cell="model")
        kernel.run("results.append(model.fit(rate))", cell="fit")
    found = kernel.found()
    assert found.needs_none_of(3, 4, 5, 6, 7, 8)
    assert replayed(found, "model.layers") == {"model.layers": "[3]"}


def test_what_a_cell_made_that_trains_travels_or_a_warning_says_so(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("size = [1]\nrest = (n for n in size)\nbefore = Model().fit(1)", "start = size + [2]", "fit(start)")
    found = kernel.found()
    assert found.warnings == []
    assert found.needs_none_of(2)
    assert replayed(found, "start") == {"start": "[1, 2]"}
    kernel.run("fit(rest)")
    [warning] = kernel.found().warnings
    assert warning.startswith("Cell [2] is sent for what it defines, but its fit() will not train on the worker")
    kernel.run("fit(7)")
    assert kernel.found().warnings == []


def test_a_loop_variable_that_lives_at_the_call(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("for width in (8, 16, 32):\n    str(width)", "fit(width)")
    assert replayed(kernel.found(), "width") == {"width": "32"}


def test_local_calls_at_the_same_place_are_counted(kernel: Kernel) -> None:
    kernel.run("for here in (True, False):\n    fit(local=here)")
    found = kernel.found()
    assert found.program is not None
    assert found.program.call is not None
    assert found.program.call.occurrence == 2


def test_calls_under_time_and_capture_magics_are_found_again(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("x = 1", "\n\n%%time\n\ny = x\nfit(y)")
    assert replayed(kernel.found(), "y") == {"y": "1"}


@pytest.mark.parametrize(
    "cell",
    [
        "%time fit(x)",
        "if x:\n    z = %time fit(x)",
        "%%capture out\n\ny = x\n\nfit(y)",
        "\n\ny = x\nfit(y)",
        "!echo \\\n  there\nfit(\n  x)",
        "import asyncio\nawait asyncio.sleep(0)\nfit(x)",
        "def go(v):\n    return fit(v)\ngo(x)",
        ">>> y = x\n>>> fit(y)",
        "[fit(v) for v in (x,)]",
    ],
)
def test_the_place_of_the_call_survives_the_transformation(kernel: Kernel, replayed: Replayed, cell: str) -> None:
    kernel.cells("x = 1", cell)
    assert replayed(kernel.found(), "x") == {"x": "1"}


def test_a_call_inside_a_function_of_an_earlier_cell(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "def train(v):\n    m = Model()\n    m.add(v)\n    return m.fit(v)", "first = train(1)", "second = train(2)"
    )
    found = kernel.found()
    assert found.needs_none_of(3)
    assert found.program is not None
    assert found.program.call is not None
    assert (found.program.call.cell, found.program.call.line, found.program.call.occurrence) == (1, 4, 1)
    replayed(found)


def test_a_model_trained_by_a_submitted_call_is_not_pulled_in(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("x = [1]", "model = Model()\nmodel.fit(x)", "model.fit(x)")
    assert replayed(kernel.found(), "x", "model.layers") == {"x": "[1]", "model.layers": "[]"}


@pytest.mark.parametrize(
    ("cell", "plots"),
    [
        ("e = fit(x)\nplt.plot(e)", False),
        ("def show(e):\n    plt.plot(e)\ne = fit(x)\nshow(e)", False),
        ("class Show:\n    def draw(self, e):\n        plt.plot(e)\nm = Model()\ne = m.fit(x)\nShow().draw(e)", False),
        ("def train(v):\n    return fit(v)\ne = train(x)\nplt.plot(e)", False),
        ("for i in range(2):\n    e = fit(x)\n    plt.plot(e)", True),
        ("with open('there.txt') as f:\n    e = fit(x)\n    plt.plot(e)", True),
        ("try:\n    e = fit(x)\n    plt.plot(e)\nfinally:\n    pass", True),
        ("def show():\n    plt.plot(1)\nshow()\ne = fit(x)", True),
    ],
)
def test_what_runs_after_the_call_needs_no_cells_and_is_not_missed(
    kernel: Kernel, replayed: Replayed, cell: str, plots: bool
) -> None:
    (kernel.folder / "there.txt").write_text("")
    kernel.cells("class plt:\n    plot = staticmethod(print)", "x = [1]", cell)
    found = kernel.found()
    if cell.startswith("for"):
        found = kernel.found()
    assert plots or found.needs_none_of(2)
    assert replayed(found, "x") == {"x": "[1]"}


def test_the_init_of_a_call_is_told_apart(kernel: Kernel) -> None:
    kernel.cells(
        "from det_stand_in import init\ndef begin(n):\n    return init(n)",
        "import random\nrandom.seed(1)\ncontexts = [begin(1), begin(2)]",
        "contexts[1].fit(1)",
    )
    found = kernel.found()
    assert found.program is not None
    assert found.program.init is not None
    site = found.program.init
    begin, calls = found.cells.index(2), found.cells.index(3)
    assert (site.kind, site.cell, site.line, site.running, site.running_line) == ("init", begin, 3, calls, 3)
    assert site.occurrence == 2
