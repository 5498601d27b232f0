"""The guards of ``conftest.py``: a test that leaves something behind fails, and one that hangs ends."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

pytestmark = pytest.mark.slow

LEAVING = "_LEAVING_SECONDS = 5.0"
LEAKING = """
import os, socket, subprocess, tempfile, threading

kept = []

def test_port():
    kept.append(socket.create_server(("127.0.0.1", 0)))

def test_closed_port():
    socket.create_server(("127.0.0.1", 0)).close()

def test_process():
    kept.append(subprocess.Popen(["sleep", "60"]))

def test_ended_process():
    subprocess.run(["true"], check=True)

def test_thread():
    kept.append(threading.Event())
    threading.Thread(target=kept[-1].wait, name="left", daemon=True).start()

def test_variable():
    os.environ["LEFT"] = "1"

def test_file():
    kept.append(tempfile.mkdtemp())

def test_last():
    for each in kept:
        if isinstance(each, subprocess.Popen):
            each.kill()
            each.wait()
"""

HANGING = """
import threading
import pytest

@pytest.fixture
def hanging_end():
    yield
    threading.Event().wait()

def test_call():
    threading.Event().wait()

def test_teardown(hanging_end):
    assert False

def test_other():
    pass
"""

LANES = """
import pytest

def test_quick():
    pass

@pytest.mark.slow
def test_slow():
    pass

@pytest.mark.long
def test_long():
    pass

@pytest.mark.soak
def test_soak():
    pass
"""


def outcome(folder: Path, source: str, *arguments: str) -> str:
    """Run tests under the rules of this folder's ``conftest.py``; return what pytest printed."""
    here = Path(__file__).parent
    for name in ("balance.py", "soak_notes.py", "figures.py", "forked_programs.py", "recording.py"):
        shutil.copy(here / name, folder)
    shutil.copytree(here / "forking", folder / "forking", ignore=shutil.ignore_patterns("__pycache__"))
    rules = (here / "conftest.py").read_text()
    assert LEAVING in rules
    (folder / "conftest.py").write_text(rules.replace(LEAVING, "_LEAVING_SECONDS = 1.0"))
    shutil.copy(here.parent / "pyproject.toml", folder)
    (folder / "test_given.py").write_text(source)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    # Nothing here needs the other plugins that are installed, which take a second or two to import.
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    (folder / "temporary").mkdir()
    environment["TMPDIR"] = str(folder / "temporary")  # a process that is killed clears nothing away
    own = ["-p", "pytest_timeout", "-p", "xdist", f"--basetemp={folder / 'base'}", "-p", "no:cacheprovider"]
    run = [sys.executable, "-m", "pytest", ".", *own, *arguments]
    return subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, timeout=200).stdout


def test_what_is_left_behind_fails_the_test_that_left_it(tmp_path: Path) -> None:
    printed = outcome(tmp_path, LEAKING)
    found = dict(re.findall(r"ERROR at teardown of test_(\w+) _+\nThe test left behind: (.+)", printed))
    assert found.keys() == {"port", "process", "thread", "variable", "file"}, printed
    assert re.fullmatch(r"listening port \d+", found["port"])
    assert found["process"].endswith("sleep 60")
    assert found["thread"] == "thread left"
    assert found["variable"] == "environment variable LEFT"
    assert found["file"].endswith("in the temporary folder")


@pytest.mark.long
def test_a_test_and_a_teardown_have_a_time_limit(tmp_path: Path) -> None:
    printed = outcome(tmp_path, HANGING, "-n", "1", "--dist", "loadfile", "--timeout", "3")
    assert "crashed while running 'test_given.py::test_call'" in printed
    assert "crashed while running 'test_given.py::test_teardown'" in printed
    assert re.search(r"\b1 passed", printed), "the others are run"


def test_the_lanes_divide_the_tests_among_them() -> None:
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    lanes = dict(re.findall(r'^([A-Z]+) := -m "(.+?)"', makefile, re.MULTILINE))
    found = {
        name: [marks for marks in ("", "slow", "slow long", "slow soak", "slow long soak") if _fits(expression, marks)]
        for name, expression in lanes.items()
    }
    assert found == {
        "CHECK": [""],
        "QUICK": ["", "slow"],
        "LANES": ["slow long"],
        "SOAK": ["slow soak", "slow long soak"],
    }


def _fits(expression: str, marks: str) -> bool:
    return Expression.compile(expression).evaluate(lambda name, **_: name in marks.split())


def test_what_is_long_is_slow_and_a_file_that_is_left_out_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("import pytest\npytestmark = [pytest.mark.soak]\nraise ValueError\n")
    printed = outcome(tmp_path, LANES, "-m", "slow and not soak", "-v")
    assert set(re.findall(r"::test_(\w+) PASSED", printed)) == {"slow", "long"}, printed
