"""The exit reports of the processes of a run, from the ``exit.json`` that each leaves in its folder."""

from __future__ import annotations

import logging
from pathlib import Path

from pydantic import ValidationError

from det_native.schema.ranks import rank_folder
from det_native.schema.reports import ExitReport
from det_native.schema.states import ExitReason

logger = logging.getLogger(__name__)

EXIT_NAME = "exit.json"


def read_exit_report(directory: Path) -> ExitReport | None:
    """Return the exit report of one process, None if it left none."""
    path = directory / EXIT_NAME
    try:
        return ExitReport.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        logger.warning("%s cannot be read: %s", path, error)
        return None


def exit_report_of_run(run_folder: Path, size: int) -> ExitReport | None:
    """Return the exit report of a run of `size` processes, all gone; None if the one that mattered left none.

    That of the first rank counts, as long as it got through. Otherwise it is the error of the one rank that failed by
    itself; if there is none, a rank was killed or has crashed, which the launcher knows more of.
    """
    reports = [read_exit_report(rank_folder(run_folder, rank)) for rank in range(size)]
    if reports[0] is not None and not reports[0].reason.failed:
        return reports[0]
    own = [report for report in reports if report is not None and report.reason.failed and not _followed(report)]
    if own:
        return own[0]
    return None if None in reports else reports[0]


def _followed(report: ExitReport) -> bool:
    return report.reason is ExitReason.PEER_FAILED
