"""Whatever a training changes on the worker is so in the notebook: programs run in two processes, value by value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from heap_programs import CASES, parts, run_all

pytestmark = pytest.mark.slow

PROGRAMS = sorted(path for path in CASES.glob("*.py") if "#! train\n" in path.read_text())


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_all(PROGRAMS, tmp_path_factory.mktemp("programs"))


@pytest.mark.parametrize(
    ("program", "place"),
    [
        pytest.param(path, place, id=f"{path.stem}: {check[:60]}")
        for path in PROGRAMS
        for place, check in enumerate(parts(path.read_text())[2])
    ],
)
def test_a_value_is_the_same_in_the_notebook_as_on_the_worker(
    results: dict[str, Any], program: Path, place: int
) -> None:
    worker, notebook = (results[program.stem][role] for role in ("worker", "notebook"))
    assert "failed" not in worker, worker["failed"]
    assert "failed" not in notebook, notebook["failed"]
    assert not worker["values"][place].startswith("Failed:")
    assert notebook["values"][place] == worker["values"][place]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_what_stays_is_named_and_nothing_else(results: dict[str, Any], program: Path) -> None:
    said = results[program.stem]
    assert said["worker"]["sentences"] == parts(program.read_text())[3]
    assert said["notebook"]["sentences"] == []
