"""A notebook's file, submitted from the command line: as the button of JupyterLab does, without a kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from det_native.errors import ArgumentError, Problem, ProblemsError
from det_native.schema.schedules import Timing

_PROGRAM = "det_native.experimental.document"


def submit_notebook(
    path: Path,
    master: str | None,
    *,
    at: str | None = None,
    every: str | None = None,
    timezone: str | None = None,
    name: str = "",
    overlap: bool = False,
    call: int | None = None,
    slots: int | None = None,
    is_test: bool = False,
    now: datetime | None = None,
) -> str:
    """Submit a notebook, or have the master do it later; return a sentence that says so.

    The program is taken as it is now: what is changed in the notebook afterwards does not change the schedule.

    Raises
    ------
    ArgumentError
        If the file is no notebook, or the time none.
    ProblemsError
        If the notebook cannot be sent.
    """
    if (timezone or overlap) and at is None and every is None:
        raise ArgumentError("--timezone and --overlap go with --at or --every.")
    request: dict[str, Any] = {
        "path": str(path.absolute()),
        "cells": cells_of(path),
        "call": None if call is None else call - 1,
        "slots": slots,
        "test": is_test,
    }
    if at is not None or every is not None:
        timing = timing_of(at, every, timezone, now)
        request["schedule"] = {
            "name": name or path.stem,
            "timing": timing.model_dump(mode="json"),
            "overlap": overlap,
        }
    answer = _run(request, path.absolute().parent, master)
    if "schedule" in answer:
        made = answer["schedule"]
        return (
            f"Schedule {made['id']} ({made['name']}) submits it next at {made['next']}. `det schedule list` shows it."
        )
    return f"Experiment {answer['experiment']['id']} is submitted."


def cells_of(path: Path) -> list[dict[str, Any]]:
    """Return the code cells of a notebook's file.

    Raises
    ------
    ArgumentError
        If it is no notebook.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
        return [
            {
                "id": str(cell.get("id") or f"cell-{number}"),
                "source": "".join(cell["source"]),
                "execution_count": None,  # nothing has run: cells are named by their place
                "executed": None,
                "tags": list(cell.get("metadata", {}).get("tags", [])),
            }
            for number, cell in enumerate(cells, 1)
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArgumentError(f"{path} is no notebook of format 4 (.ipynb): {type(error).__name__}.") from error


def timing_of(at: str | None, every: str | None, timezone: str | None, now: datetime | None = None) -> Timing:
    """Return when to submit.

    Raises
    ------
    ArgumentError
        If it is no time.
    """
    if at is not None and every is not None:
        raise ArgumentError("--at and --every exclude each other.")
    try:
        if at is None:
            return Timing(every=every, timezone=timezone)
        Timing(every="1h", timezone=timezone)  # the zone is one
        return Timing(at=_moment(at, timezone, now), timezone=timezone)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ArgumentError(f"{first['msg'].removeprefix('Value error, ')}.") from error


def _moment(text: str, timezone: str | None, now: datetime | None) -> datetime:
    zone = ZoneInfo(timezone) if timezone else None
    present = (now or datetime.now().astimezone()).astimezone(zone)
    try:
        if len(text.strip()) <= len("00:00"):
            hour, _, minute = text.strip().partition(":")
            found = present.replace(hour=int(hour), minute=int(minute), second=0, microsecond=0)
            return found if found > present else found + timedelta(days=1)
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ArgumentError(f'--at: {text!r} is no time; write "22:00" or "2030-01-31 03:00".') from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=zone) if zone is not None else found.astimezone()
    if found <= present:
        raise ArgumentError(f"--at: {text!r} has passed; it is {present.isoformat(timespec='minutes')}.")
    return found


def _run(request: dict[str, Any], folder: Path, master: str | None) -> dict[str, Any]:
    environment = {**os.environ, **({"DET_MASTER": master} if master else {})}
    done = subprocess.run(
        [sys.executable, "-P", "-m", _PROGRAM, "submit"],
        input=json.dumps(request),
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise ArgumentError(f"The notebook cannot be looked at: that ended with status {done.returncode}.") from None
    if not answer.get("ok"):
        raise ProblemsError(str(answer.get("error")), [Problem(**found) for found in answer.get("problems", [])])
    return answer
