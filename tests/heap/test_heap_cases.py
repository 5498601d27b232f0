"""Whatever a training changes on the worker is so in the notebook: programs run in two processes, value by value."""

from __future__ import annotations

from typing import Any

import pytest
from changes_everywhere import program
from heap_programs import CASES, parts, run_all

pytestmark = pytest.mark.slow

PROGRAMS = {path.stem: path.read_text() for path in sorted(CASES.glob("*.py"))} | {"everywhere": program()}
PROGRAMS = {name: text for name, text in PROGRAMS.items() if "#! train\n" in text}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("programs")
    for name, text in PROGRAMS.items():
        (folder / f"{name}.py").write_text(text)
    return run_all(sorted(folder.glob("*.py")), folder)


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_value_is_the_same_in_the_notebook_as_on_the_worker(results: dict[str, Any], program: str) -> None:
    worker, notebook = (results[program][role] for role in ("worker", "notebook"))
    assert "failed" not in worker, worker["failed"]
    assert "failed" not in notebook, notebook["failed"]
    assert not [value for value in worker["values"] if value.startswith("Failed:")]
    assert unlike(program, notebook["values"], worker["values"]) == []


def test_a_restarted_worker_has_what_the_killed_one_would_have(results: dict[str, Any]) -> None:
    killed, restarted = (results["everywhere"][role]["values"] for role in ("killed", "restarted"))
    assert unlike("everywhere", restarted, killed) == []


def unlike(program: str, values: list[str], expected: list[str]) -> list[str]:
    """Return the checks of a program that give something else."""
    rows = zip(parts(PROGRAMS[program])[2], values, expected, strict=True)
    return [f"{check}: {value} where there is {wanted}" for check, value, wanted in rows if value != wanted]


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_stays_is_named_and_nothing_else(results: dict[str, Any], program: str) -> None:
    said = results[program]
    assert said["worker"]["sentences"] == parts(PROGRAMS[program])[3]
    assert said["notebook"]["sentences"] == []
