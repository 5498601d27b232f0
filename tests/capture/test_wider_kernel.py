"""The second program: the slow cells too, for a worker to which the first one gives other inputs."""

from __future__ import annotations

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow


def _wider(kernel: Kernel, *cells: str, slow: str = "y = [2]", **options: object) -> list[int] | None:
    """Capture a call that uses `x` and what a slow cell, number 2, has made."""
    kernel.slowly(slow)
    kernel.cells(*cells)
    written = "".join(f", {name}={value!r}" for name, value in options.items())
    kernel.run(f"fit(x, y, wider=True{written})")
    return kernel.found().wider


def test_all_that_ran_and_is_neither_training_nor_outside(kernel: Kernel) -> None:
    wider = _wider(
        kernel,
        "x = [1]",  # 3
        "1 / 0",
        "!true",
        "import subprocess\nran = subprocess.run(['true']).returncode",
        "fit(x, local=True)",
        "# det-skip\nz = 3",
        "print(y)",  # 9
    )
    assert wider == [1, 2, 3, 4, 6, 9, 10]


def test_what_depends_on_a_cell_that_stays_stays(kernel: Kernel) -> None:
    wider = _wider(
        kernel,
        "import subprocess",
        "x, n = [1], 1",  # 4
        "n = subprocess.run(['true']).returncode",
        "m = n + 1",
        "len(x)",  # 7
        "n = 5",
        "m = n",  # 9
    )
    assert wider == [1, 2, 3, 4, 7, 8, 9, 10]


def test_there_is_none_that_is_no_wider(kernel: Kernel) -> None:
    kernel.cells("x = [1]", "x.append(2)", "fit(x, wider=True)")
    assert kernel.found().wider is None
    assert _wider(kernel, "z = 1") == [1, 2, 3, 5, 6, 7]
    kernel.run("fit(x, y)")
    assert kernel.found().wider is None


def test_secrets_and_cells_that_took_over_a_minute_stay(kernel: Kernel) -> None:
    kernel.slowly("w = [5]", 75.0)
    wider = _wider(kernel, "x = [1]", "key = 'AKIA' + 'A' * 16\npassword = 'hunter2hunter2'", "print(w)")
    assert wider == [1, 3, 4, 5, 7]


def test_a_cell_that_ran_again_runs_again_as_often(kernel: Kernel) -> None:
    again = "count = globals().get('count', 0) + 1"
    assert _wider(kernel, "x = [1]", again, again, "print(count)") == [1, 2, 3, 4, 5, 6, 7]


def test_a_declared_value_stays_declared(kernel: Kernel) -> None:
    assert _wider(kernel, "x = list(range(9))", values=["x"]) == [1, 2, 4]
