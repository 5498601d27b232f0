"""What a script shows of an error: the user's lines and the message."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent

WRONG = """
import det_native as det

def begin(config):
    return det.experimental.keras.init(config, local=True)

begin({"sercher": {}})
"""


def shown(folder: Path, source: str, code: int = 1) -> str:
    (folder / "train.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == code
    return done.stderr


def test_an_error_of_the_call_shows_the_users_lines_only(tmp_path: Path) -> None:
    text = shown(tmp_path, WRONG)
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0] == "Traceback (most recent call last):"
    files = [line for line in lines if line.startswith("File ")]
    assert [line.partition(", ")[2] for line in files] == ["line 7, in <module>", "line 5, in begin"]
    assert all("train.py" in line for line in files)
    assert any(line.startswith("det_native.errors.ConfigurationError: The ") for line in lines)
    assert any("sercher" in line and "searcher" in line for line in lines)
    assert "During handling" not in text
    assert "direct cause" not in text


OTHER = """
import det_native as det

det.experimental.LOCAL
try:
    1 / 0
finally:
    {}["x"]
"""


def test_other_errors_are_shown_as_ever(tmp_path: Path) -> None:
    text = shown(tmp_path, OTHER)
    assert "ZeroDivisionError: division by zero" in text
    assert "During handling of the above exception" in text
    assert text.rstrip().endswith("KeyError: 'x'")


INTERRUPTED = f"""
import sys

sys.path.insert(0, {str(TESTS)!r})
import det_native as det
from det_native.client import waiting
from det_native.schema.states import ExperimentState
from made_experiments import make_experiment

def interrupt(*_):
    raise KeyboardInterrupt

det.experimental.LOCAL
waiting._follow = interrupt
experiment = make_experiment()
experiment.source.write(state=ExperimentState.ACTIVE)
experiment.history
"""


def test_ctrl_c_while_a_script_waits_shows_the_users_lines_and_ends_it_as_ever(tmp_path: Path) -> None:
    text = shown(tmp_path, INTERRUPTED, -signal.SIGINT)
    assert "    experiment.history\n" in text
    assert "handles.py" not in text
    assert text.rstrip().endswith("KeyboardInterrupt")


def test_a_hook_of_the_users_own_stays(tmp_path: Path) -> None:
    hook = (
        "import sys\nsys.excepthook = lambda kind, error, traceback: print('mine:', kind.__name__, file=sys.stderr)\n"
    )
    assert shown(tmp_path, hook + WRONG) == "mine: ConfigurationError\n"
