"""Loops in plain PyTorch are moved by a few lines, as the documents say."""

from __future__ import annotations

import pytest
from loop_changes import BEGIN, DOCUMENT, END, LOOPS, TITLES, changed_lines, section


@pytest.mark.parametrize("name", TITLES)
def test_few_lines_are_changed(name: str) -> None:
    assert 0 < changed_lines(name) <= (6 if name == "gan" else 4)


def test_no_line_is_longer_than_people_write_them() -> None:
    lines = [line for name in TITLES for line in (LOOPS / "moved" / f"{name}.py").read_text().splitlines()]
    assert max(len(line) for line in lines if not line.startswith("# ")) <= 120


def test_the_documents_show_these_loops() -> None:
    text = DOCUMENT.read_text()
    written = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    assert written == section(), "run: python tests/notebooks/loop_changes.py"
    assert {path.stem for path in (LOOPS / "moved").glob("*.py")} == TITLES.keys()
