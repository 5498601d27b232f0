"""What ``make lint`` checks beside ruff: marks of an unresolved merge."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import merge_marks

# Not as they stand in a file, or this file would have them.
OURS, BASE, THEIRS = "<" * 7, "|" * 7, ">" * 7


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    return tmp_path


def track(repository: Path, name: str, text: str) -> None:
    (repository / name).write_text(text)
    subprocess.run(["git", "add", name], cwd=repository, check=True)


@pytest.mark.parametrize("mark", [f"{OURS} HEAD", BASE, f"{THEIRS} topic"])
def test_a_merge_mark_is_named_with_its_line(repository: Path, mark: str, capsys: pytest.CaptureFixture[str]) -> None:
    track(repository, "page.md", f"# Title\n{mark}\n")
    assert merge_marks.main(repository) == 1
    assert "page.md:2:" in capsys.readouterr().out


def test_headings_quoted_marks_and_untracked_files_are_no_merge(repository: Path) -> None:
    track(repository, "page.rst", f"Title\n=======\n    {OURS} HEAD\n{OURS}<\n")
    (repository / "scratch.md").write_text(f"{OURS} HEAD\n")
    assert merge_marks.main(repository) == 0


def test_without_git_the_check_says_that_it_did_not_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert merge_marks.main(tmp_path) == 0
    assert "were not searched" in capsys.readouterr().out
