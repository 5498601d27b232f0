"""What was reported outside of an experiment: the lines of the log, and the folders of checkpoints."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest


def reported(log: pytest.LogCaptureFixture, group: str) -> dict[int, dict[str, Any]]:
    """Return the metrics of a group by step."""
    rows: dict[int, dict[str, Any]] = {}
    for record in log.records:
        line = record.getMessage()
        if record.name == "det_native.core" and line.startswith(f"{group} metrics after step "):
            head, _, metrics = line.partition(": ")
            rows.setdefault(int(head.split()[-1]), {}).update(ast.literal_eval(metrics))
    return rows


def stored(place: Path) -> list[Path]:
    """Return the folders of the checkpoints, the oldest first."""
    return sorted(place.glob("*-*"), key=lambda folder: folder.stat().st_mtime_ns)
