"""What a training with Keras changes outside of its model comes home: programs run in two processes, value by value."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from heap_programs import parts, run_all

pytestmark = pytest.mark.slow

_CASES = Path(__file__).parent / "keras_cases"
_NAMES = (
    ("keras3_objects", "keras_kept_elsewhere")
    if int(version("keras").partition(".")[0]) > 2
    else ("keras_teacher", "keras_objects", "keras_wrapped", "keras_kept_elsewhere", "keras_older_optimizer")
)
PROGRAMS = [_CASES / f"{name}.py" for name in _NAMES]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_all(PROGRAMS, tmp_path_factory.mktemp("programs"), ("numpy", "tensorflow"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_each_value_of_a_keras_program_is_the_same_in_the_notebook_as_on_the_worker(
    results: dict[str, Any], program: Path
) -> None:
    worker, notebook = (results[program.stem][role] for role in ("worker", "notebook"))
    assert "failed" not in worker, worker["failed"]
    assert "failed" not in notebook, notebook["failed"]
    checks = parts(program.read_text())[2]
    assert not [value for value in worker["values"] if value.startswith("Failed:")]
    assert dict(zip(checks, notebook["values"], strict=True)) == dict(zip(checks, worker["values"], strict=True))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_keras_keeps_its_own_machinery_in_silence(results: dict[str, Any], program: Path) -> None:
    said = results[program.stem]
    assert said["worker"]["sentences"] == parts(program.read_text())[3]
    assert said["notebook"]["sentences"] == []
