"""``tools/mutants.py``: which changes of a module are tried, and what is said of those that no test finds."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import mutants  # noqa: E402
from mutants import Copy, Mutation, Result  # noqa: E402

TOY = """\
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pair:
    value: int = 7


def larger(first: int | None, *, second: int | None = 2) -> int | None:
    number: int | None = first
    return number if number is not None and number > second * 1 else second
"""


def at(text: str) -> Mutation:
    """Return a change of the toy that begins where a text does."""
    line = next(number for number, line in enumerate(TOY.splitlines(), 1) if text in line)
    return Mutation("NumberReplacer", 0, (line, TOY.splitlines()[line - 1].index(text)))


def test_every_listed_module_and_test_is_there() -> None:
    modules = tomllib.loads(mutants.LIST.read_text())["module"]
    assert [
        path for module in modules for path in (module["path"], *module["tests"]) if not (ROOT / path).exists()
    ] == []


def test_annotations_and_stars_of_parameters_are_left_out() -> None:
    unwanted = [at("| None, *"), at("*, second"), at("| None = 2"), at("| None = first"), at("True")]
    wanted = [at("7"), at("2) ->"), at("> second"), at("* 1")]
    assert sorted(mutants.sample("toy.py", TOY, [*unwanted, *wanted], 9), key=str) == sorted(wanted, key=str)


def test_a_sample_is_the_same_each_time_and_has_a_place_once() -> None:
    source = "\n".join(f"a = {number}" for number in range(50))
    candidates = [Mutation(name, 0, (line, 4)) for line in range(1, 51) for name in ("One", "Other")]
    drawn = mutants.sample("toy.py", source, candidates, 12)
    assert drawn == mutants.sample("toy.py", source, candidates, 12)
    assert len({mutation.start for mutation in drawn}) == 12
    assert drawn != mutants.sample("other.py", source, candidates, 12)


@pytest.mark.parametrize(
    ("line", "folder"),
    [
        ("FAILED tests/master/scheduling/test_plan.py::test_a - assert 1 == 2", "master/scheduling"),
        ("ERROR tests/schema/test_retention.py - SyntaxError", "schema"),
        ("FAILED tests/test_facade.py::test_a", "tests"),
    ],
)
def test_who_found_a_mutant_is_read_from_the_summary(line: str, folder: str) -> None:
    assert mutants.folder_of_failure(f"FAILED is a word\n{line}\n1 failed") == folder


def test_the_table_counts_by_folder_and_together() -> None:
    result = Result("a.py", tried=12)
    result.folders.update({"schema": 7, "master": 2})
    assert mutants.table([result, Result("b.py", tried=3)]).splitlines()[2:] == [
        "| a.py | 12 | 9 | master 2, schema 7 |",
        "| b.py | 3 | 0 |  |",
        "| together | 15 | 9 | |",
    ]


@pytest.mark.slow
def test_a_module_is_tried_and_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "repository"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "conftest.py").write_text(
        "from hypothesis import settings\nsettings.register_profile('quick')\n"
    )
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  long\n  soak\n")
    (folder / "tests" / "test_toy.py").write_text(
        "from toy import larger\n\ndef test_it():\n    assert larger(3) == 3\n"
    )
    (folder / "toy.py").write_text(TOY)
    codes = {"not None and": "None and", "> second": ">= second"}
    changes = {at(text): TOY.replace(text, code) for text, code in codes.items()}
    monkeypatch.setattr(mutants, "mutations", lambda source: changes)
    monkeypatch.setattr(mutants, "mutated", lambda source, mutation: changes[mutation])
    with Copy(folder, Path(sys.executable)) as copy:
        result = mutants.try_module(copy, "toy.py", ["tests/test_toy.py"])
    assert (result.tried, result.folders.total()) == (2, 1)
    assert result.survivors == ["13: return number if number is not None and number >= second * 1 else second"]
    assert (folder / "toy.py").read_text() == TOY
