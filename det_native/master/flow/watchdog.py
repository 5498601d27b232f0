"""Which runs hang: facts and the time in, what to do out, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from det_native.schema.watchdog import Watchdog

# A worker that lives tells so every two seconds.
CONTACT_SECONDS = 10.0
# The stacks that were asked for are output too, but no progress.
_STACKS_SECONDS = 30.0


class Verdict(Enum):
    """What to do with a run."""

    NOTHING = auto()
    TELL = auto()
    END = auto()


@dataclass
class Watch:
    """What is known of the progress of one run.

    Attributes
    ----------
    limit : float
        Seconds without progress after which it is ended; 0 for never.
    progressed : float
        When it last told of something, by the monotonic clock.
    contact : float
        When it was last heard of at all.
    """

    limit: float
    restarts: bool
    progressed: float
    contact: float
    _counter: int | None = None
    _told: float | None = None
    _ended: bool = False

    @classmethod
    def begin(cls, config: Watchdog, now: float) -> Watch:
        """Begin to watch a run that is started, or taken up."""
        return cls(config.minutes * 60.0, config.action == "restart", now, now)

    def heard(self, now: float, *, reports: bool, counter: int | None) -> None:
        """Its worker has spoken: with reports, or with the number of steps that it has done so far."""
        self.contact = now
        if reports or (counter is not None and counter != self._counter):
            self._progress(now)
        if counter is not None:
            self._counter = counter

    def wrote(self, now: float) -> None:
        """It has written lines of output."""
        if self._told is None or now > self._told + _STACKS_SECONDS:
            self._progress(now)

    def silent(self, now: float) -> bool:
        """Whether its worker, which may live, has not been heard of for long."""
        return now - self.contact > CONTACT_SECONDS

    def told(self) -> bool:
        """Whether it was said that nothing comes, and nothing has come since."""
        return self._told is not None

    def verdict(self, now: float) -> Verdict:
        """Return what to do now; each is returned once, until there is progress again."""
        if not self.limit or self._ended:
            return Verdict.NOTHING
        silence = now - self.progressed
        if silence >= self.limit:
            self._ended = True
            return Verdict.END
        if silence >= self.limit / 2 and self._told is None:
            self._told = now
            return Verdict.TELL
        return Verdict.NOTHING

    def _progress(self, now: float) -> None:
        self.progressed = now
        self._told = None


def span(seconds: float) -> str:
    """Return a length of time: ``30 min``, ``45 s``."""
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
