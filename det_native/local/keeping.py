"""Which local runs stay beyond the last ones, and which number the next run gets."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

from det_native.local.described import described_by_people

#: The highest number that a run ever had: numbers of deleted runs are not given again.
_LAST = "last-number"


def stays(folder: Path) -> bool:
    """Whether people have written something of a run, archived it, or noted or pinned a checkpoint of it."""
    return described_by_people(folder) or any(_is_marked(path) for path in folder.glob("trials/*/marks.json"))


def make_folder(root: Path) -> Path:
    """Make the folder of a new run, with a number that no run had before."""
    with _lock(root):
        number = max(_last(root), _highest(root)) + 1
        _write(root, number)  # before the folder: if this process dies in between, a number is left out
        folder = root / str(number)
        folder.mkdir(mode=0o700)
    return folder


def keep_number(root: Path, number: int) -> None:
    """Keep that a number was given, before its run is deleted: a home of an earlier version has not written it."""
    with _lock(root):
        if number > _last(root):
            _write(root, number)


def _lock(root: Path) -> FileLock:
    return FileLock(root / "number.lock")


def _last(root: Path) -> int:
    try:
        return int((root / _LAST).read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return 0


def _highest(root: Path) -> int:
    return max((int(each.name) for each in root.iterdir() if each.name.isdigit()), default=0)


def _write(root: Path, number: int) -> None:
    temporary = root / f".{_LAST}.{os.getpid()}"
    temporary.write_text(str(number), encoding="ascii")
    temporary.replace(root / _LAST)


def _is_marked(path: Path) -> bool:
    marks: Any = None
    with suppress(FileNotFoundError, ValueError):
        marks = json.loads(path.read_bytes())
    values = marks.values() if isinstance(marks, dict) else ()
    return any(isinstance(mark, dict) and (mark.get("pinned") or mark.get("metadata")) for mark in values)
