"""The log of a local trial: what was printed while it ran, in two files of limited size.

``log.jsonl`` grows to half of the limit, becomes ``log.1.jsonl`` in the place of the one before, and begins anew. Of a
trial that prints more than the limit the last lines stay.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Literal

from det_native.schema.rest import LogLine

#: Bytes that the log of one trial takes at most.
LIMIT = 8 << 20
LONGEST_LINE = 16_384

NAME = "log.jsonl"
OLDER_NAME = "log.1.jsonl"

# Lines of all trials of an experiment in one order. A trial that its search trains on counts on from its last line.
_TRIALS_LINES = 10**9

# Colours and movements of a terminal's cursor.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")

_NUMBER = re.compile(r'\{"id": (\d+),')

Stream = Literal["stdout", "stderr", "system"]


class LogWriter:
    """Writes the log of one trial, from any thread.

    Parameters
    ----------
    folder : Path
        Of the trial.
    trial_id : int
    run_id : str
    limit : int
        Bytes.
    """

    def __init__(self, folder: Path, trial_id: int, run_id: str, *, limit: int = LIMIT) -> None:
        self._path = folder / NAME
        self._older = folder / OLDER_NAME
        self._common = {"trial_id": trial_id, "run_id": run_id}
        self._limit = limit // 2
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._last = max(trial_id * _TRIALS_LINES, _last_number(self._path, self._older))
        self._file: IO[str] | None = None
        self._size = 0

    def write(self, text: str, stream: Stream, rank: int | None = None, role: str | None = None) -> None:
        """Add a line; of one that was written over in place, what it showed last."""
        if os.getpid() != self._pid:
            return  # a fork of the process, which has not the numbers of the lines
        with self._lock:
            self._last += 1
            line = {
                "id": self._last,
                **self._common,
                "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "stream": stream,
                "text": shown_last(text),
                "rank": rank,
                "role": role,
            }
            self._add(json.dumps(line))

    def close(self) -> None:
        """Write no more."""
        with self._lock:
            self._close_file()

    def _add(self, line: str) -> None:
        if self._size > 0 and self._size + len(line) > self._limit:
            self._close_file()
            self._path.replace(self._older)
        if self._file is None:
            self._file = self._path.open("a", encoding="utf-8")
            self._size = self._file.tell()
        self._file.write(f"{line}\n")
        self._file.flush()
        self._size += len(line) + 1

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._size = None, 0


def shown_last(line: str) -> str:
    """Return a line as it looked at last: a progress bar is written over in place; an endless one is cut."""
    line = line.rstrip("\r").rpartition("\r")[2]
    line = _ESCAPES.sub("", line.rpartition("\b")[2])
    line = line.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if len(line) <= LONGEST_LINE:
        return line
    return f"{line[:LONGEST_LINE]} [... {len(line) - LONGEST_LINE} more characters]"


def read_log(folder: Path, after: int = 0, before: int | None = None) -> Iterator[LogLine]:
    """Yield the lines of a trial with an id above `after` and below `before`, oldest first.

    Parameters
    ----------
    folder : Path
        Of the trial.
    after : int
    before : int, optional
    """
    # The newer file is opened first: should it become the older one at this moment, nothing is missed.
    newer, older = _opened(folder / NAME), _opened(folder / OLDER_NAME)
    last = after
    for file in (older, newer):
        if file is None:
            continue
        with file:
            for text in file:
                if not text.endswith("\n"):
                    break
                number = _number(text)
                if number is not None and number <= last:
                    continue
                line = LogLine.model_validate_json(text)
                if before is not None and line.id >= before:
                    break
                last = line.id
                yield line


def _last_number(*paths: Path) -> int:
    """Return the id of the last line that is there, 0 if there is none; of the first file that has any."""
    for path in paths:
        try:
            with path.open("rb") as file:
                file.seek(max(path.stat().st_size - 8 * LONGEST_LINE, 0))
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            continue
        numbers = [_number(line.decode(errors="replace")) for line in lines]
        found = [number for number in numbers if number is not None]
        if found:
            return found[-1]
    return 0


def _opened(path: Path) -> IO[str] | None:
    try:
        return path.open(encoding="utf-8")
    except FileNotFoundError:
        return None


def _number(text: str) -> int | None:
    """Return the id of a line without reading all of it: who follows a log passes over most of it."""
    found = _NUMBER.match(text)
    return int(found[1]) if found else None
