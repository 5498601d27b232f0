"""What ran, runs again; of expensive cells the values travel: in kernels, with cells that count as slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Found, Kernel

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]


def found(kernel: Kernel, *names: str) -> Found:
    kernel.run(f"fit({', '.join(names)})")
    return kernel.found()


def test_quick_cells_run_again_and_of_a_slow_one_the_value_travels(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("import numpy as np", "scale = 3")
    kernel.slowly("raw = np.arange(6.0)")
    kernel.cells("print('a look')", "x = raw * scale")
    program = found(kernel, "x")
    assert program.cells == [1, 2, 3, 5, 7]
    assert program.value_names == {"x"}
    assert "stays behind: took 45.0 s" in program.row("cell [4]").note
    assert replayed(program, "x.tolist()") == kernel.live("x.tolist()")


def test_a_slow_cell_runs_again_if_what_it_made_cannot_travel(kernel: Kernel, replayed: Replayed) -> None:
    kernel.slowly("numbers = (n * n for n in range(9))\nnext(numbers)")
    kernel.run("first = next(numbers)")
    program = found(kernel, "first", "numbers")
    assert program.cells == [1, 2, 4, 5] or program.cells == [1, 2, 3, 4]
    assert program.row("cell [2]").note.startswith("`numbers` is needed and cannot travel")
    assert replayed(program, "first", "list(numbers)") == kernel.live("first", "list(numbers)")


@pytest.mark.parametrize(
    "makes",
    [
        "for step in range(3):\n    loss = step * 2",
        "exec('loss = 4')",
        "fill()",
        "def fill_here():\n    globals().update(loss=5)\nfill_here()",
    ],
)
def test_a_slow_cell_that_reads_what_it_has_made_itself_runs_again(
    kernel: Kernel, replayed: Replayed, makes: str
) -> None:
    kernel.run("def fill():\n    global loss\n    loss = 3")
    kernel.slowly(f"{makes}\nprint(loss)\nnumbers = (n for n in range(loss))")
    kernel.run("for loss in (7, 8):\n    pass")
    program = found(kernel, "numbers", "loss")
    assert program.error == ""
    assert replayed(program, "list(numbers)", "loss") == kernel.live("list(numbers)", "loss")


def test_settings_of_a_slow_cell_run_again(kernel: Kernel, replayed: Replayed) -> None:
    kernel.slowly("import math\nsize = 4\nslow = math.factorial(size)\ndef half(n):\n    return n // 2 + size")
    kernel.run("x = [half(size)]")
    program = found(kernel, "x")
    assert not program.value_names
    assert "factorial" not in program.source_of(2)
    assert program.warnings == []
    [row] = [row for row in program.rows if row.cell == "[2]"]
    assert row.note == "stays behind, but for its imports, definitions and plain settings: took 45.0 s"
    assert replayed(program, "x") == kernel.live("x")


def test_a_cell_that_trained_stays_behind_and_what_it_made_travels(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("n = 2", "fit(n, local=True)\nbest = [n * 10]", "x = [best, n]")
    program = found(kernel, "x")
    assert program.cells == [1, 2, 5]
    assert replayed(program, "x") == kernel.live("x")


def test_what_a_run_of_a_cell_adds_up_is_added_up_again(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("xs = []")
    for _ in range(3):
        kernel.run("xs.append(len(xs))", cell="again")
    program = found(kernel, "xs")
    assert program.cells == [1, 2, 3, 4, 5, 6]
    assert replayed(program, "xs") == kernel.live("xs")


def test_a_failed_cell_fails_again_where_it_failed(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("xs = [1]", "xs.append(2)\nfor n in (1, 0):\n    xs.append(1 // n)\nxs.append(3)")
    program = found(kernel, "xs")
    assert replayed(program, "xs") == kernel.live("xs") == {"xs": "[1, 2, 1]"}


def test_a_cell_that_nothing_needs_may_fail_there(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("import os\nos.environ['DET_OF_HERE'] = '1'", silent=True)
    kernel.cells("import os", "port = os.environ['DET_OF_HERE']", "x = [1]")
    program = found(kernel, "x")
    assert program.program is not None
    assert [cell.optional_from for cell in program.program.cells] == [None, 1, 1, None, None]
    assert replayed(program, "x") == {"x": "[1]"}


def test_what_cannot_run_again_is_refused_by_its_cell(kernel: Kernel) -> None:
    kernel.cells("lines = !echo hello", "import threading", "%%capture\n%run nowhere.py", "x = lines")
    kernel.run("# det-skip\nlock = threading.Lock()")
    assert found(kernel, "x").value_names == {"x"}
    refused = found(kernel, "lock").error
    assert "`lock`, used in cell [8], was made by cell [6], which cannot run again (tagged det-skip)" in refused


def test_a_cell_with_a_secret_stays_behind_and_its_other_settings_run(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("import math; size = 4\npassword = 'x7Kq-99-zzTop'", "x = [math.pi, size]")
    program = found(kernel, "x")
    assert "zzTop" not in program.source_of(2)
    assert replayed(program, "x") == kernel.live("x")
    assert "secret" in found(kernel, "x", "password").error


def test_what_a_cell_that_nothing_needs_imports_may_be_missing_there(kernel: Kernel) -> None:
    outside = kernel.folder.parent / "far_away"
    outside.mkdir(exist_ok=True)
    (outside / "plots_of_mine.py").write_text("")
    kernel.run(f"import sys; sys.path.append({str(outside)!r})", silent=True)
    kernel.cells("import plots_of_mine, tqdm", "x = 1", "fit(x)")
    assert kernel.found().error == ""
    kernel.cells("y = plots_of_mine.__name__", "fit(y)")
    assert "`plots_of_mine.py` is imported from outside the notebook's folder" in kernel.found().error
