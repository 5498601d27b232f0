"""The log of a local trial: lines as they were seen, of limited size, read while it is written."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from det_native.local.log import LONGEST_LINE, NAME, OLDER_NAME, LogWriter, read_log, shown_last


def texts(folder: Path, after: int = 0, before: int | None = None) -> list[str]:
    return [line.text for line in read_log(folder, after, before)]


def test_lines_are_read_back_with_their_stream_and_process(tmp_path: Path) -> None:
    assert texts(tmp_path) == []
    with closing(LogWriter(tmp_path, 2, "local-1-2")) as log:
        log.write("out", "stdout")
        log.write("err ä 漢", "stderr", rank=1)
        first, second = read_log(tmp_path)  # each is there at once
    assert (first.trial_id, first.run_id, first.stream, first.rank) == (2, "local-1-2", "stdout", None)
    assert (second.text, second.stream, second.rank) == ("err ä 漢", "stderr", 1)
    assert second.id == first.id + 1
    assert texts(tmp_path, after=first.id) == ["err ä 漢"]
    assert texts(tmp_path, before=second.id) == ["out"]


def test_of_a_log_that_is_too_long_the_last_lines_stay(tmp_path: Path) -> None:
    with closing(LogWriter(tmp_path, 1, "run", limit=20_000)) as log:
        for number in range(1000):
            log.write(f"line {number}", "stdout")
    assert sum((tmp_path / name).stat().st_size for name in (NAME, OLDER_NAME)) <= 20_000
    kept = texts(tmp_path)
    assert kept == [f"line {number}" for number in range(1000 - len(kept), 1000)]
    assert len(kept) > 60
    newest = list(read_log(tmp_path))[-1]
    assert texts(tmp_path, after=newest.id - 2) == ["line 998", "line 999"]


def test_a_reader_misses_nothing_while_the_file_becomes_the_older_one(tmp_path: Path) -> None:
    log = LogWriter(tmp_path, 1, "run", limit=2_000)
    seen: list[str] = []
    after = 0
    for number in range(200):
        log.write(f"line {number}", "stdout")
        for line in read_log(tmp_path, after):
            seen.append(line.text)
            after = line.id
    log.close()
    assert seen == [f"line {number}" for number in range(200)]


def test_a_line_that_is_being_written_is_not_there_yet(tmp_path: Path) -> None:
    with closing(LogWriter(tmp_path, 1, "run")) as log:
        log.write("whole", "stdout")
    with (tmp_path / NAME).open("a") as file:
        file.write('{"id": 1000000002, "tria')
    assert texts(tmp_path) == ["whole"]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain", "plain"),
        ("10%\r50%\r100%", "100%"),
        ("done\r", "done"),
        ("\x1b[1m5/5\x1b[0m \x1b[32m━━\x1b[0m loss: 0.5", "5/5 ━━ loss: 0.5"),
        ("1/5" + "\b" * 3 + "2/5", "2/5"),
        ("a\x00b", "a\ufffdb"),
    ],
)
def test_a_line_is_as_it_was_seen_last(written: str, shown: str) -> None:
    assert shown_last(written) == shown


def test_an_endless_line_is_cut(tmp_path: Path) -> None:
    assert shown_last("x" * (LONGEST_LINE + 5)).endswith("x [... 5 more characters]")


def test_a_fork_writes_no_line(tmp_path: Path) -> None:
    with closing(LogWriter(tmp_path, 1, "run")) as log:
        child = os.fork()
        if child == 0:
            log.write("from the fork", "stdout")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        log.write("from here", "stdout")
    assert texts(tmp_path) == ["from here"]
