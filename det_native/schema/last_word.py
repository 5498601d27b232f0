"""What the processes of a run have said last, from the ``exit.json`` that each leaves in its folder."""

from __future__ import annotations

import logging
from pathlib import Path

from pydantic import ValidationError

from det_native.schema.ranks import rank_folder
from det_native.schema.rest import ExitReport
from det_native.schema.states import ExitReason

logger = logging.getLogger(__name__)


def last_word(directory: Path) -> ExitReport | None:
    """Return the last word of one process, None if it left none."""
    path = directory / "exit.json"
    try:
        return ExitReport.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        logger.warning("%s cannot be read: %s", path, error)
        return None


def run_word(run_folder: Path, size: int) -> ExitReport | None:
    """Return the last word of a run of `size` processes, all gone; None if the one that mattered left none.

    That of the first rank counts, as long as it got through. Otherwise it is the error of the one rank that failed by
    itself; if there is none, a rank was killed or has crashed, which the launcher knows more of.
    """
    words = [last_word(rank_folder(run_folder, rank)) for rank in range(size)]
    if words[0] is not None and not words[0].reason.failed:
        return words[0]
    own = [word for word in words if word is not None and word.reason.failed and not _followed(word)]
    if own:
        return own[0]
    return None if None in words else words[0]


def _followed(word: ExitReport) -> bool:
    return word.reason is ExitReason.PEER_FAILED
