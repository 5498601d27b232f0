"""Which files of tests a process gets: by folder, and what takes longest first."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import balance
import pytest
from balance import DURATIONS, next_file, note_times, part_of, read_times

TIMES = {"a/long.py": 30.0, "a/short.py": 1.0, "b/long.py": 20.0, "b/short.py": 2.0, "c/only.py": 4.0}


def test_the_folder_with_the_most_work_is_begun_with_its_longest_file() -> None:
    assert next_file(TIMES, {}, "gw0", TIMES) == "a/long.py"


def test_a_process_begins_a_folder_that_nobody_has_begun() -> None:
    assert next_file(TIMES.keys() - {"a/long.py"}, {"gw0": {"a"}}, "gw1", TIMES) == "b/long.py"


def test_a_process_stays_in_its_folder_while_there_is_work() -> None:
    begun = {"gw0": {"a"}, "gw1": {"b"}}
    assert next_file(["a/short.py", "b/short.py", "c/only.py"], begun, "gw0", TIMES) == "a/short.py"
    assert next_file(["b/short.py", "c/only.py"], begun, "gw0", TIMES) == "c/only.py"


def test_at_the_end_a_process_helps_the_others() -> None:
    assert next_file(["b/short.py", "b/new.py"], {"gw0": {"a"}, "gw1": {"b"}}, "gw0", TIMES) == "b/new.py"


def test_each_file_is_in_one_part_and_the_parts_are_alike() -> None:
    files = [f"tests/folder/test_{number}.py" for number in range(400)]
    parts = [[file for file in files if part_of(file, 4) == part] for part in (1, 2, 3, 4)]
    assert sorted(file for part in parts for file in part) == sorted(files)
    assert all(70 <= len(part) <= 130 for part in parts)


@pytest.mark.slow
def test_a_part_runs_its_files_and_says_how_many_tests_it_leaves(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"test_{number}.py").write_text("def test_it(): pass\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "balance",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        ".",
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}

    def run(part: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, "--part", part], cwd=tmp_path, env=environment, capture_output=True, text=True)

    passed = [int(re.findall(r"(\d+) passed", run(f"{part}/2").stdout)[0]) for part in (1, 2)]
    assert sum(passed) == 6
    assert f"{6 - passed[0]} deselected" in run("1/2").stdout
    assert "does not name a part" in run("3/2").stderr


def test_times_that_are_not_noted_are_none(tmp_path: Path) -> None:
    assert read_times(tmp_path / "none.json") == {}


def test_noted_times_stay_beside_those_of_other_files_and_lanes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balance, "DURATIONS", tmp_path / "tests" / "durations.json")
    for name in ("test_old.py", "test_new.py"):
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / "tests" / name).touch()
    before = {"quick": {"tests/test_old.py": 3.0, "tests/test_deleted.py": 1.0}, "long": {"tests/test_old.py": 9.0}}
    note_times(before, "quick", {"tests/test_new.py": 2.04})
    assert read_times(tmp_path / "tests" / "durations.json") == {
        "quick": {"tests/test_new.py": 2.0, "tests/test_old.py": 3.0},
        "long": {"tests/test_old.py": 9.0},
    }


def test_noted_files_are_there() -> None:
    gone = [file for lane in read_times().values() for file in lane if not (DURATIONS.parents[1] / file).exists()]
    assert not gone, f"write {DURATIONS.name} anew with --note-times"
