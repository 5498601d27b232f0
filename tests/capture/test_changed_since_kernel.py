"""Files that are not what they were when a cell read or moved them: said at the submit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]


def test_data_that_only_a_cell_has_read_of_which_nothing_is_needed(kernel: Kernel) -> None:
    (kernel.folder / "log.csv").write_text("1\n2\n")
    kernel.cells(
        "x = 1",
        "print(open('log.csv').read())",
        "import time; time.sleep(0.1)",
        "open('log.csv', 'w').write('3')",
        "fit(x)",
    )
    assert [one for one in kernel.found().warnings if "log.csv" in one] == []


def test_data_that_were_written_again_after_they_were_read(kernel: Kernel) -> None:
    (kernel.folder / "rows.csv").write_text("1\n2\n")
    kernel.cells(
        "rows = open('rows.csv').read()",
        "import time; time.sleep(0.1)",
        "with open('rows.csv', 'w') as file: print('3', file=file)",
        "fit(rows)",
    )
    [warning] = [one for one in kernel.found().warnings if "rows.csv" in one]
    assert "was changed after cell [2] had begun to use it" in warning


def test_a_cell_that_moved_files_stays_behind(kernel: Kernel, replayed: Replayed) -> None:
    (kernel.folder / "raw").mkdir()
    for name in "abcd":
        (kernel.folder / "raw" / name).write_text(name)
    kernel.cells(
        "import os, shutil",
        "os.mkdir('train')\nfor name in sorted(os.listdir('raw')): shutil.move(f'raw/{name}', f'train/{name}')\n"
        "count = len(os.listdir('train'))",
        "fit(count)",
    )
    found = kernel.found()
    assert found.needs_none_of(3)
    assert found.row("cell [3]").note == "stays behind: moved (raw/a)"
    assert replayed(found, "count") == {"count": "4"}
