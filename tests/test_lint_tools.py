"""What ``make lint`` checks beside ruff: marks of an unresolved merge, and how long the code is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import merge_marks
import sizes

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


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A repository whose numbers are those of its files."""
    for folder in ("det_native", "harness", "jupyter_ext/src/generated", "tests", "tools"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "det_native" / "module.py").write_text("a = 1\n" * 20)
    (tmp_path / "harness" / "module.py").write_text("a = 1\n" * 10)
    (tmp_path / "jupyter_ext" / "src" / "generated" / "rest.ts").write_text("generated\n" * 1000)
    assert sizes.main(["--write"], tmp_path) == 0
    assert "front_end = 0\n" in (tmp_path / "tools" / "sizes.toml").read_text()
    return tmp_path


def test_numbers_that_were_just_written_pass(code: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sizes.main([], code) == 0
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == len(sizes.PARTS)
    assert printed.splitlines()[0].split() == ["det_native", "20", "tools/sizes.toml:", "20", "+0"]


def test_a_longer_program_fails_with_what_to_do(code: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code / "det_native" / "other.py").write_text("a = 1\n" * 7)
    assert sizes.main([], code) == 1
    assert "det_native and harness have 7 lines more than tools/sizes.toml allows. Delete" in capsys.readouterr().out
    assert sizes.main(["--write"], code) == 0
    assert sizes.main([], code) == 0


def test_lines_that_moved_between_the_two_pass(code: Path) -> None:
    (code / "det_native" / "module.py").write_text("a = 1\n" * 15)
    (code / "harness" / "module.py").write_text("a = 1\n" * 15)
    assert sizes.main([], code) == 0


def test_a_shorter_program_passes_and_the_lower_number_is_suggested(
    code: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (code / "harness" / "module.py").unlink()
    assert sizes.main([], code) == 0
    assert "10 lines less than tools/sizes.toml says. Lower it" in capsys.readouterr().out


def test_the_front_end_and_tests_are_shown_and_not_limited(code: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code / "tests" / "test_module.py").write_text("a = 1\n" * 50)
    (code / "jupyter_ext" / "src" / "view.tsx").write_text("let a\n" * 8)
    assert sizes.main([], code) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {row[0]: row[-1] for row in rows} == {"det_native": "+0", "harness": "+0", "front_end": "+8", "tests": "+50"}
