"""What people write of a local run: kept beside what the run itself writes, which would replace it.

``DET_HOME/local/<n>/described.json``: name, description, labels, notes, project, archived, as far as they were set.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from filelock import FileLock

from det_native.schema import rest

_NAME = "described.json"


def with_description(folder: Path, detail: rest.ExperimentDetail) -> rest.ExperimentDetail:
    """Return an experiment with what people have written of it."""
    return detail.model_copy(update=_read(folder))


def described_by_people(folder: Path) -> bool:
    """Whether people have written something of an experiment that still stands, or archived it."""
    return any(_read(folder).values())


def describe(folder: Path, values: dict[str, Any]) -> None:
    """Keep values by name; others stay as they are."""
    with FileLock(folder / "described.lock"):
        text = json.dumps({**_read(folder), **values})
        temporary = folder / f".{_NAME}.{os.getpid()}"
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(folder / _NAME)


def _read(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / _NAME).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
