"""What the tests of a soak note comes into the table of ``docs/reliability.md``."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from figures import note
from test_test_rules import outcome
from tries import counted

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from reliability import BEGIN, COLUMNS, DOCUMENT, END, rows, written  # noqa: E402

SOAK = """
import pytest

@pytest.mark.soak
def test_good():
    pass

@pytest.mark.soak
def test_bad():
    assert False

def test_of_another_lane():
    pass
"""


@pytest.fixture
def figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DET_FIGURES", str(tmp_path / "figures.jsonl"))
    return tmp_path / "figures.jsonl"


def cells(figures: Path, name: str) -> dict[str, str]:
    with figures.open() as lines:
        return dict(zip(COLUMNS, rows(lines)[name], strict=True))


def test_tries_and_seconds_of_several_runs_are_one_row(figures: Path) -> None:
    for seed, seconds in ((7, [1.0, 2.0]), (8, [9.0])):
        with counted("kills", seed) as tries:
            tries.tried = tries.survived = 600
            tries.seconds = seconds
    row = cells(figures, "kills")
    assert row.pop("date")
    assert list(row.values()) == ["kills", "1,200", "1,200", "0", "2.0", "9.0", "7, 8", ""]


def test_a_try_that_fails_is_lost_and_said(figures: Path) -> None:
    def stops() -> None:
        with counted("stops", 3) as tries:
            for divisor in (1, 0):
                with tries.attempt():
                    assert 1 / divisor

    with pytest.raises(ZeroDivisionError):
        stops()
    row = cells(figures, "stops")
    assert (row["tries"], row["survived"], row["lost"], row["besides"]) == ("2", "1", "1", "**failed**")


def test_what_was_under_way_when_a_run_is_stopped_is_not_lost_and_what_had_failed_is(figures: Path) -> None:
    def kills() -> None:
        with counted("kills", 3) as tries:
            tries.tried, tries.survived = 5, 4
            with suppress(AssertionError), tries.attempt():
                raise AssertionError
            with tries.attempt():
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kills()
    row = cells(figures, "kills")
    assert (row["tries"], row["survived"], row["lost"], row["besides"]) == ("5", "4", "1", "**stopped early**")


def test_what_ends_with_its_process_is_said(figures: Path) -> None:
    note("kills", begun=True, seed=5)
    row = cells(figures, "kills")
    assert (row["tries"], row["seed"], row["besides"]) == ("", "5", "**did not end**")


def test_cases_that_are_not_tried_and_other_figures_stand_besides(figures: Path) -> None:
    with counted("programs") as tries:
        tries.drawn, tries.tried, tries.survived = 10_000, 9_000, 9_000
    note("workers", p99_ms=23)
    assert cells(figures, "programs")["besides"] == "of 10,000 drawn"
    assert cells(figures, "workers")["besides"] == "p99_ms 23"


def test_rows_of_what_was_not_tried_stay() -> None:
    document = f"above\n{BEGIN}\n{END}\nbelow\n"
    before = written(document, {name: [name, *["1"] * 8] for name in ("kills", "stops")})
    after = written(before, {"stops": ["stops", *["2"] * 8], "programs": ["programs", *["3"] * 8]})
    assert after == before.replace("| stops | 1" + " | 1" * 7, "| stops | 2" + " | 2" * 7).replace(
        f"\n\n{END}", f"\n| programs{' | 3' * 8} |\n\n{END}"
    )
    assert after.startswith("above\n")
    assert after.endswith(f"{END}\nbelow\n")
    with pytest.raises(ValueError, match="has no part between"):
        written("above\n", {})


def test_the_document_has_the_table() -> None:
    document = DOCUMENT.read_text()
    assert written(document, {}) == document


def test_tests_that_count_nothing_are_noted_by_their_file(figures: Path, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    printed = outcome(tmp_path / "tests", SOAK)
    assert "1 failed, 2 passed" in printed
    [name] = {json.loads(line)["name"] for line in figures.read_text().splitlines()}
    row = cells(figures, name)
    assert name == "tests in `test_given.py`"
    assert (row["tries"], row["survived"], row["lost"], row["besides"]) == ("2", "1", "1", "**failed**")
