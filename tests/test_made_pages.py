"""docs/api.md and docs/command_line.md are what the code says now, and every public name has a docstring."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("tool", ["command_page", pytest.param("api_page", marks=pytest.mark.long)])
def test_a_page_is_what_its_tool_writes(tool: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / f"{tool}.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert done.returncode == 0, done.stderr


def test_handles_and_functions_are_on_the_page() -> None:
    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    for heading in ("### `class det.Experiment(", "### `det.log(", "### `class Medium(", "#### `trial(number)`"):
        assert heading in text
