"""Reports that a worker left on disk: it ended, or the master was away, before they were taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from det_native.errors import StorageError
from det_native.schema.reports import Report, ReportBatch
from det_native.schema.sealed import unseal

BATCH = 500

_REPORT: TypeAdapter[Report] = TypeAdapter(Report)


class DamagedSpoolError(StorageError):
    """A report that a worker left is not what it has written."""


def left_batches(directory: Path) -> Iterator[ReportBatch]:
    """Yield the reports in a run's spool, in order; what a killed worker left incomplete ends them.

    Raises
    ------
    DamagedSpoolError
        At a report that is not what was written, once those before it were given.
    """
    batch: list[Report] = []
    damage: DamagedSpoolError | None = None
    try:
        for report in _reports(directory / "spool"):
            batch.append(report)
            if len(batch) == BATCH:
                yield ReportBatch(reports=batch)
                batch = []
    except DamagedSpoolError as error:
        damage = error
    if batch:
        yield ReportBatch(reports=batch)
    if damage is not None:
        raise damage


def _reports(spool: Path) -> Iterator[Report]:
    try:
        segments = sorted(path for path in spool.iterdir() if path.suffix == ".jsonl")
    except (FileNotFoundError, NotADirectoryError):
        return
    for segment in segments:
        with segment.open("rb") as lines:
            for line in lines:
                try:
                    yield _REPORT.validate_json(unseal(line))
                except ValueError as error:
                    if line.endswith(b"\n") or segment != segments[-1]:
                        raise DamagedSpoolError(
                            f"{segment} is damaged: what the worker could not send before it ended is taken up to the "
                            "damage only."
                        ) from error
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
