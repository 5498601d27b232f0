"""`make bench` writes each row when it is measured, and a row that hangs ends after its limit and says so."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

ROWS = """
import threading
from pathlib import Path
import pytest

def test_first(figure):
    figure("the first", "1 s", "≤ 2 s", True)

@pytest.mark.timeout(2, method="signal")
def test_that_hangs(figure):
    written = "| the first | 1 s |" in Path("docs/performance.md").read_text()
    figure("written before the second", str(written), "none", True)
    threading.Event().wait()

def test_that_fails():
    assert False, "the experiment has failed"

def test_last(figure):
    figure("the last", "3 s", "≤ 2 s", False)
"""

SOME_ROWS = """
def test_first(figure):
    figure("the first", "{first}", "none", True)

def test_second(figure):
    figure("the second" + "{second}"[3:], "{second}", "none", True)

def test_new(figure):
    if "9 s" in "{second}":
        figure("the new", "5 s", "none", True)
"""

HANGS = """
from notebook_kernel import running_kernel
import notebook_kernel

notebook_kernel._LIMIT = 2
with running_kernel(".") as kernel:
    try:
        kernel.run("state = 'polls'\\nwhile True: pass")
    except TimeoutError:
        notebook_kernel._LIMIT = 100
        print(kernel.run("other = 1", "state"))
"""


@pytest.mark.long
def test_a_row_that_hangs_costs_no_other_row(tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (tmp_path / "docs").mkdir()
    for name in ("conftest.py", "notebook_kernel.py"):
        shutil.copy(BENCHMARKS / name, folder)
    (folder / "test_rows.py").write_text(ROWS)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 240\ntimeout_method = thread\n")
    command = [sys.executable, "-m", "pytest", "benchmarks", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert "2 failed, 2 passed" in ran.stdout
    table = (tmp_path / "docs" / "performance.md").read_text().splitlines()
    rows = [line for line in table if line.startswith("| ")][1:]
    assert rows == [
        "| the first | 1 s | - | - | - | ≤ 2 s | met |",
        "| written before the second | True | - | - | - | none | - |",
        "| test_rows.py::test_that_hangs | not measured: Failed: Timeout (>2.0s) from pytest-timeout. | - | - | - "
        "| none | **not met** |",
        "| test_rows.py::test_that_fails | not measured: AssertionError: the experiment has failed | - | - | - | none "
        "| **not met** |",
        "| the last | 3 s | - | - | - | ≤ 2 s | **not met** |",
    ]


@pytest.mark.slow
def test_some_rows_measured_again_leave_the_others_and_what_is_written_below(tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (tmp_path / "docs").mkdir()
    for name in ("conftest.py", "notebook_kernel.py"):
        shutil.copy(BENCHMARKS / name, folder)
    (folder / "test_rows.py").write_text(SOME_ROWS.format(first="1 s", second="2 s [1..3 s]; quiet"))
    command = [sys.executable, "-m", "pytest", "benchmarks", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    table = tmp_path / "docs" / "performance.md"
    below = "\nIn the browser:\n\n| what | seen |\n|---|---|\n| a frame | 18 ms |\n"
    table.write_text(table.read_text() + below)
    (folder / "test_rows.py").write_text(SOME_ROWS.format(first="9 s", second="8 s [7..9 s]; busy"))
    subprocess.run([*command, "-k", "second or new"], cwd=tmp_path, check=True, capture_output=True, timeout=300)
    assert table.read_text().endswith(below)
    rows = [line for line in table.read_text().splitlines() if line.startswith("| ")][1:]
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert [row.split(" | ")[:2] for row in rows[:3]] == [
        ["| the first", "1 s"],
        [f"| the second [7..9 s]; busy; {today}", "8 s [7..9 s]; busy"],
        [f"| the new; {today}", "5 s"],
    ]


@pytest.mark.long
def test_a_cell_that_hangs_is_interrupted_for_the_next_one(tmp_path: Path) -> None:
    environment_path = f"import sys; sys.path.insert(0, {str(BENCHMARKS)!r})\n"
    command = [sys.executable, "-c", environment_path + HANGS]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.stdout.strip() == "'polls'", ran.stderr
