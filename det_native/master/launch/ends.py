"""How a run ends by the ends of its processes, wherever these are. Pure but for a look at their exit reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from det_native.master.launch.base import Exit
from det_native.schema.exit_report import read_exit_report

#: Once one process of a run has failed the others cannot go on; this is for what they write at the moment.
RANK_GRACE_SECONDS = 8.0


@dataclass(frozen=True)
class RankEnd:
    """How one process ended; `followed` says that it did because another one had failed before.

    `memory` is that of ``Exit``.
    """

    rank: int
    code: int | None
    detail: str
    failed: bool
    followed: bool = False
    memory: str = ""


def has_failed(code: int | None, folder: Path) -> bool:
    """Return whether a process failed; where its exit code is not known, the exit report in its folder says."""
    if code is not None:
        return code != 0
    report = read_exit_report(folder)
    return report is None or report.reason.failed


def exit_of(run_id: str, size: int, ends: Sequence[RankEnd], titles: Sequence[str] = ()) -> Exit:
    """Return the end of the process that failed first, by itself; of the first rank if none did.

    Parameters
    ----------
    size : int
        Of the run.
    ends : sequence of RankEnd
        Of all its processes, as they came.
    titles : sequence of str
        What each rank is, where processes have roles.
    """
    failed = [end for end in ends if end.failed]
    by_itself = [end for end in failed if not end.followed]
    first = next(iter(by_itself or failed or [end for end in ends if end.rank == 0]))
    title = titles[first.rank] if titles else f"rank {first.rank} of {size}"
    detail = first.detail if size == 1 else f"{title}: {first.detail}"
    return Exit(run_id, first.code, detail, first.memory)
