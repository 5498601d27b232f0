"""``tools/lane.py``: what failed in a lane runs once more, alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

# Nothing here needs other plugins, which take seconds to import.
ALONE = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
LANE = Path(__file__).resolve().parents[1] / "tools" / "lane.py"
TESTS = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range({unstable}))
def test_unstable(number):
    mark = Path(__file__).with_name(f"tried-{{number}}")
    tried = mark.exists()
    mark.touch()
    assert tried

@pytest.mark.parametrize("number", range({broken}))
def test_broken(number):
    assert number < 0

def test_sound():
    with Path(__file__).with_name("sound").open("a") as file:
        file.write("x")
"""


@pytest.mark.parametrize(
    ("unstable", "broken", "code", "again"),
    [(0, 0, 0, False), (1, 0, 0, True), (2, 0, 0, True), (3, 0, 1, False), (0, 1, 1, True), (1, 1, 1, True)],
)
def test_one_or_two_failed_tests_run_again(tmp_path: Path, unstable: int, broken: int, code: int, again: bool) -> None:
    (tmp_path / "test_toy.py").write_text(TESTS.format(unstable=unstable, broken=broken))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, str(LANE), "test_toy.py", "-n", "1", f"--basetemp={tmp_path}/base"]
    lane = subprocess.run(command, cwd=tmp_path, env=ALONE, capture_output=True, text=True, check=False)
    assert lane.returncode == code, lane.stdout
    assert ("Once more, alone: " in lane.stdout) is again
    assert ("UNSTABLE" in lane.stdout) is (again and code == 0)
    assert (tmp_path / "sound").read_text() == "x", "what has passed does not run again"
    if code == 0 and again:
        assert lane.stdout.rstrip().endswith(f"test_toy.py::test_unstable[{unstable - 1}]")


def test_a_lane_that_cannot_run_fails(tmp_path: Path) -> None:
    (tmp_path / "test_toy.py").write_text("import nowhere\n")
    lane = subprocess.run(
        [sys.executable, str(LANE), "test_toy.py"], cwd=tmp_path, env=ALONE, capture_output=True, check=False
    )
    assert lane.returncode == 2


def test_a_part_without_tests_is_through(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("def pytest_addoption(parser):\n    parser.addoption('--part')\n")
    for arguments, code in (("--part", "1/4"), 0), ((), 5):
        command = [sys.executable, str(LANE), *arguments]
        assert subprocess.run(command, cwd=tmp_path, env=ALONE, capture_output=True, check=False).returncode == code
