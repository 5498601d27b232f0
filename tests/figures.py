"""Figures that tests measure, for docs/reliability.md."""

from __future__ import annotations

import json
import os
from pathlib import Path


def note(name: str, **values: object) -> None:
    """Append a figure as a line of JSON to the file that ``DET_FIGURES`` names; without it, do nothing."""
    path = os.environ.get("DET_FIGURES")
    if path:
        with Path(path).open("a") as stream:
            stream.write(json.dumps({"name": name, **values}) + "\n")
