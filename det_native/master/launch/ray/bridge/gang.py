"""The ends of the processes of one run on several machines: who goes with whom, and how the run ended. No I/O but
exit reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from det_native.master.launch.base import Exit
from det_native.master.launch.ends import RANK_GRACE_SECONDS, RankEnd, exit_of
from det_native.schema.job import EXIT_RANK_FAILED

NOT_BEGUN = "it was not started"


class Gang:
    """Keeps which processes of a run live and how the others ended.

    Parameters
    ----------
    titles : sequence of str
        What each rank is, where processes have roles.
    failed_without_code : callable
        Whether a process, by its rank, failed though nobody knows its exit code.
    grace : float
        Seconds that the others have once one has failed.

    Attributes
    ----------
    living : set of int
        Ranks whose end is not known.
    interrupted : str
        What ends the run without having to do with what it runs, empty for nothing.
    kill_at : float or None
        When the rest is to be killed; None if nobody has failed, or that has been done.
    """

    def __init__(
        self,
        run_id: str,
        size: int,
        titles: Sequence[str] = (),
        failed_without_code: Callable[[int], bool] = lambda rank: True,
        grace: float = RANK_GRACE_SECONDS,
    ) -> None:
        self.run_id = run_id
        self.size = size
        self.living = set(range(size))
        self.kill_at: float | None = None
        self.interrupted = ""
        self._titles = titles
        self._failed_without_code = failed_without_code
        self._grace = grace
        self._ends: list[RankEnd] = []
        self._killed: set[int] = set()
        self._has_failed = False
        self._begun = False

    def end(
        self, rank: int, code: int | None, now: float, *, detail: str = "", memory: str = "", begun: bool = True
    ) -> bool:
        """Note the end of a process; False if it was known.

        Parameters
        ----------
        rank, code, detail, memory, begun
            As ``RankEnded`` has them.
        now : float
            Seconds of a monotonic clock.
        """
        if rank not in self.living:
            return False
        self.living.remove(rank)
        failed = code != 0 if code is not None else self._failed_without_code(rank)
        followed = rank in self._killed or code == EXIT_RANK_FAILED
        self._ends.append(RankEnd(rank, code, detail, failed, followed, memory))
        self._begun = self._begun or begun
        if failed and not self._has_failed:
            self._has_failed = True
            self.kill_at = now + self._grace
        return True

    def lost(self, ranks: Iterable[int], detail: str, now: float, *, begun: bool = True) -> None:
        """Note that nobody can tell how these processes ended."""
        for rank in sorted(set(ranks) & self.living):
            self.end(rank, None, now, detail=detail, begun=begun)

    def is_due(self, now: float) -> bool:
        """Return, once, whether the processes that still live are to be killed because another one has failed."""
        if self.kill_at is None or now < self.kill_at or not self.living:
            return False
        self.kill_at = None
        self._killed |= self.living
        return True

    @property
    def exit(self) -> Exit | None:
        """How the run ended; None while a process lives."""
        if self.living:
            return None
        ended = exit_of(self.run_id, self.size, self._ends, self._titles)
        return Exit(ended.run_id, ended.code, ended.detail, ended.memory, self._begun, self.interrupted)
