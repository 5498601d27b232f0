"""Reports that a worker left on disk: it ended, or the master was away, before they were taken."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from det_native.schema.rest import Report, ReportBatch

logger = logging.getLogger(__name__)

BATCH = 500

_REPORT: TypeAdapter[Report] = TypeAdapter(Report)


def left_batches(directory: Path) -> Iterator[ReportBatch]:
    """Yield the reports in a run's spool, in order; what a killed worker left incomplete ends them."""
    batch: list[Report] = []
    for report in _reports(directory / "spool"):
        batch.append(report)
        if len(batch) == BATCH:
            yield ReportBatch(reports=batch)
            batch = []
    if batch:
        yield ReportBatch(reports=batch)


def _reports(spool: Path) -> Iterator[Report]:
    try:
        segments = sorted(path for path in spool.iterdir() if path.suffix == ".jsonl")
    except (FileNotFoundError, NotADirectoryError):
        return
    for segment in segments:
        with segment.open("rb") as lines:
            for line in lines:
                try:
                    yield _REPORT.validate_json(line)
                except ValidationError:
                    if line.endswith(b"\n"):
                        logger.warning("%s holds a line that is no report; what follows is left out.", segment)
                    return


def has_begun(handle: Mapping[str, Any] | None) -> bool:
    """Whether a worker of a run has taken its job: then it has made the folder of its reports.

    Parameters
    ----------
    handle : mapping or None
        What the launcher gave for the run; None if the master ended before it was stored. Of one that names no folder
        it counts as begun.
    """
    if handle is None:
        return False
    folder = handle.get("directory")
    return folder is None or (Path(folder) / "spool").exists()
