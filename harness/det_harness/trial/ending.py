"""How one attempt at a trial has ended: by its schedule, or early; and the report that stays in its folder."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from pydantic import BaseModel

from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Outcome
from det_native.schema.lengths import UNTOLD
from det_native.schema.reports import ExitReport

logger = logging.getLogger("det_harness")


def told_length(schedule: Schedule | None) -> int | None:
    """Return the batches of a trial as they can be told when it begins; None where the training says it by itself."""
    length = schedule.periods.length if schedule is not None else None
    return None if length == UNTOLD.units else length


def ended_early(outcome: Outcome, schedule: Schedule | None, told: int | None) -> bool:
    """Return whether the user's code has ended a training before its length, of which `told` is what was reported."""
    early = outcome.stopped or (schedule is not None and schedule.progress.ended)
    # Data may have become longer or shorter since the beginning.
    return early or (schedule is not None and told not in (None, schedule.periods.length))


def leave_exit_report(directory: Path, report: ExitReport) -> None:
    """Leave the last report in the folder of a run."""
    try:
        write_atomically(directory / "exit.json", report)
    except OSError as unwritten:  # the disk is full: the report has gone to the master, too
        logger.error("The last report cannot be left in %s: %s", directory, unwritten)


def write_atomically(path: Path, model: BaseModel) -> None:
    """Write a model as JSON so that a reader sees all of it or nothing, after a crash too."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as stream:
        stream.write(model.model_dump_json())
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
