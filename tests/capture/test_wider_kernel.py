"""The wider program: which cells it has beside those that are picked."""

from __future__ import annotations

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow


def _wider(kernel: Kernel, *cells: str, **options: object) -> list[int] | None:
    kernel.cells(*cells)
    written = "".join(f", {name}={value!r}" for name, value in options.items())
    kernel.run(f"fit(x, wider=True{written})")
    return kernel.found().wider


def test_all_that_ran_well_and_is_neither_training_nor_outside(kernel: Kernel) -> None:
    wider = _wider(
        kernel,
        "x = [1]",  # 2
        "y = [2]",
        "1 / 0",
        "!true",
        "import subprocess\nsubprocess.run(['true'])",
        "fit(y, local=True)",
        "# det-skip\nz = 3",
        "print(y)",  # 9
    )
    assert wider == [1, 2, 3, 9, 10]


def test_what_depends_on_a_cell_that_stays_stays(kernel: Kernel) -> None:
    wider = _wider(
        kernel,
        "x, n = [1], 1",  # 2
        "import subprocess\nn = subprocess.run(['true']).returncode",
        "m = n + 1",
        "len(x)",  # 5
        "n = 5",
        "m = n",  # 7
    )
    assert wider == [1, 2, 5, 6, 7, 8]


def test_there_is_none_that_is_no_wider(kernel: Kernel) -> None:
    assert _wider(kernel, "x = [1]", "x.append(2)") is None
    kernel.run("fit(x)")
    assert kernel.found().wider is None


def test_secrets_and_large_files_stay(kernel: Kernel) -> None:
    (kernel.folder / "small.csv").write_text("a\n1\n")
    (kernel.folder / "large.csv").write_bytes(b"1\n" * (1 << 20))
    wider = _wider(
        kernel,
        "x = [1]",  # 2
        "key = 'AKIA' + 'A' * 16\npassword = 'hunter2hunter2'",
        "text = open('small.csv').read()",  # 4
        "more = open('large.csv').read()",
        "len(more)",
    )
    assert wider == [1, 2, 4, 7]


def test_a_cell_that_ran_again_runs_again_as_often(kernel: Kernel) -> None:
    again = "count = globals().get('count', 0) + 1"
    assert _wider(kernel, "x = [1]", again, again, "print(count)") == [1, 2, 3, 4, 5, 6]


def test_a_declared_value_does_not_have_its_cell_left_out(kernel: Kernel) -> None:
    wider = _wider(kernel, "x = list(range(9))", "y = 1", values=["x"])
    assert wider == [1, 2, 3, 4]
