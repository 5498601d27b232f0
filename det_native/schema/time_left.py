"""How long an experiment will take from here, by how fast it has moved of late. Pure: times and progress in."""

from __future__ import annotations

from collections import deque

SHORTEST_SECONDS = 0.5
WINDOW_SECONDS = 10.0
MARKS = 100


class TimeLeft:
    """Estimates the time left by the speed over the later half of the time worked so far, 10 s at least.

    Time between :meth:`rest` and the next observation does not count. What is lost when a trial goes back to its
    checkpoint is work still to be done; the speed at which it was done counts.
    """

    def __init__(self) -> None:
        self._worked = 0.0
        self._gained = 0.0
        self._at: float | None = None
        self._progress: float | None = None
        self._marks: deque[tuple[float, float]] = deque()

    def observe(self, now: float, progress: float) -> float | None:
        """Take up how far the experiment is; return the seconds left, None if that cannot be told yet.

        Parameters
        ----------
        now : float
            Monotonic seconds.
        progress : float
            In [0, 1].
        """
        if self._at is not None:
            self._worked += max(now - self._at, 0.0)
        self._at = now
        if self._progress is not None:
            self._gained += max(progress - self._progress, 0.0)
        self._progress = progress
        self._mark()
        since, before = self._marks[0]
        seconds, gain = self._worked - since, self._gained - before
        if seconds < SHORTEST_SECONDS or gain <= 0.0:
            return None
        return max(1.0 - progress, 0.0) * seconds / gain

    def rest(self) -> None:
        """The experiment does not work from now on, until it is observed again."""
        self._at = None

    def _mark(self) -> None:
        window = max(WINDOW_SECONDS, self._worked / 2)
        if not self._marks or self._worked - self._marks[-1][0] >= window / MARKS:
            self._marks.append((self._worked, self._gained))
        while len(self._marks) > 1 and self._marks[1][0] <= self._worked - window:
            self._marks.popleft()
