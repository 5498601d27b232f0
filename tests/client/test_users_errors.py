"""What ``det experiment create`` shows of an exception of the directory's code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from det_native.client.command import cli

CONFIG = """
entrypoint: {module}:MyTrial
hyperparameters: {{global_batch_size: 4}}
searcher: {{name: single, metric: loss, max_length: 4}}
"""


def create(folder: Path, module: str, code: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Create an experiment of a module's code; return what was printed on standard error."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    directory = folder / "dir"
    directory.mkdir()
    (directory / f"{module}.py").write_text(code)
    (folder / "const.yaml").write_text(CONFIG.format(module=module))
    result = CliRunner().invoke(cli, ["experiment", "create", str(folder / "const.yaml"), str(directory)])
    assert result.exit_code == 1, result.exception
    return result.stderr.splitlines()


def test_an_import_that_fails_is_shown_from_the_directorys_own_line_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = create(tmp_path, "lacking_def", "import json\nimport not_there_at_all\n", monkeypatch)
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].endswith('lacking_def.py", line 2, in <module>')
    assert lines[-1] == "ModuleNotFoundError: No module named 'not_there_at_all'"
    assert not any("/det_native/" in line or "importlib" in line for line in lines)


def test_what_is_no_python_is_shown_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = create(tmp_path, "broken_def", "class MyTrial(:\n", monkeypatch)
    assert lines[0].endswith('broken_def.py", line 1')
    assert lines[-1] == "SyntaxError: invalid syntax"
