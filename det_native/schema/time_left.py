"""How long an experiment will take from here, by how fast it has moved of late. Pure: times and progress in."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

# Before so much was seen, nothing is said: the first batches are slower or faster than the rest.
SHORTEST_SECONDS = 3.0
LEAST_GAINS = 3
LEAST_PROGRESS = 0.02
LONG_SECONDS = 60.0
# Less would follow a change of speed sooner, and take a long validation for one.
RECENT_SHARE = 0.8
WINDOW_SECONDS = 10.0
MARKS = 100


@dataclass(frozen=True)
class Course:
    """What is known of how the training goes on, beside its progress.

    Attributes
    ----------
    waves : float
        How many times as many trials there will be as run at the same time.
    running : int
        Trials that train now.
    last_stage : float
        Share of all training that the last stage of one trial is. A search ends with it, on the slots of one trial.
    """

    waves: float = 1.0
    running: int = 1
    last_stage: float = 0.0


ALONE = Course()


class TimeLeft:
    """Estimates the time left by the speed over the later part of the time worked so far, 10 s at least.

    What comes before the first gain (imports, the compilation of the first batch) is a start. It says nothing of the
    speed; where trials run one after the other each of them has one, so its time is spread over the first of these
    waves. Time between :meth:`rest` and the next observation does not count. What is lost when a trial goes back to
    its checkpoint is work still to be done; the speed at which it was done counts.
    """

    def __init__(self) -> None:
        self._start = 0.0
        self._began = False
        self._worked = 0.0
        self._gained = 0.0
        self._gains = 0
        self._shared = 0.0  # seconds of trials
        self._at: float | None = None
        self._progress: float | None = None
        self._marks: deque[tuple[float, float, float]] = deque()

    def observe(self, now: float, progress: float, course: Course = ALONE) -> float | None:
        """Take up how far the experiment is; return the seconds left, None while that is not credible yet.

        Parameters
        ----------
        now : float
            Monotonic seconds.
        progress : float
            In [0, 1].
        """
        passed = 0.0 if self._at is None else max(now - self._at, 0.0)
        gain = 0.0 if self._progress is None else max(progress - self._progress, 0.0)
        self._at, self._progress = now, progress
        if not self._began:
            self._start += passed
            if gain > 0.0:
                # The gain itself is not counted: most of its time may have been the start.
                self._began = True
                self._mark()
            return None
        self._worked += passed
        self._shared += passed * max(course.running, 1)
        self._gained += gain
        self._gains += gain > 0.0
        self._mark()
        if not self._is_credible():
            return None
        since, before, shared = self._marks[0]
        seconds, recent = self._worked - since, self._gained - before
        if recent <= 0.0 or seconds <= 0.0:
            return None
        if since == 0.0 and course.waves > 1.0:
            seconds += self._start * min(self._gained * course.waves, 1.0)
        rest = max(1.0 - progress, 0.0)
        at_once = max((self._shared - shared) / (self._worked - since), 1.0)
        # The last stage trains as fast as one trial does, and not as all of them together.
        return (rest + min(course.last_stage, rest) * (at_once - 1.0)) * seconds / recent

    def rest(self) -> None:
        """The experiment does not work from now on, until it is observed again."""
        self._at = None

    def _is_credible(self) -> bool:
        enough = self._gained >= LEAST_PROGRESS or self._worked >= LONG_SECONDS
        return self._gains >= LEAST_GAINS and self._worked >= SHORTEST_SECONDS and enough

    def _mark(self) -> None:
        window = max(WINDOW_SECONDS, self._worked * RECENT_SHARE)
        if not self._marks or self._worked - self._marks[-1][0] >= window / MARKS:
            self._marks.append((self._worked, self._gained, self._shared))
        while len(self._marks) > 1 and self._marks[1][0] <= self._worked - window:
            self._marks.popleft()


def duration(seconds: float) -> str:
    """Return a length of time in two units: ``1 h 5 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds >= 0.05 else "under 0.1 s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def about(seconds: float) -> str:
    """Return a time left as people say it: ``about 20 s``, ``about 2 min``, ``about 1 h 30 min``, ``about 3 days``."""
    if seconds < 10:
        return "a few seconds"
    if seconds < 55:
        return f"about {round(seconds / 5) * 5} s"
    minutes = max(round(seconds / 60), 1)
    if minutes < 10:
        return f"about {minutes} min"
    if minutes < 58:
        return f"about {round(minutes / 5) * 5} min"
    tens = round(minutes / 10)
    hours = tens // 6
    if hours < 5:
        return f"about {hours} h" + (f" {tens % 6 * 10} min" if tens % 6 else "")
    hours = round(minutes / 60)
    return f"about {hours} h" if hours < 48 else f"about {round(hours / 24)} days"
