"""When what costs time is done between two epochs: by the time that has passed, not by the number of epochs."""

from __future__ import annotations

from dataclasses import dataclass

#: Between two validations of a loop whose epochs are short.
SECONDS = 1.0
#: The most of the training's time that they, and the checkpoints that follow from them, may take.
SHARE = 0.05
#: So many epochs are each due, however short they are: what they cost together is not worth a metric that is missing.
FEW = 50
#: Between two checkpoints of which a trial goes on that was killed, at first; later a `SHARE` of what it has trained.
RECOVERY_SECONDS = 60.0


@dataclass
class Pace:
    """Says whether enough time has passed, given what it cost the last time; all times in seconds.

    Examples
    --------
    >>> pace = Pace(now=0.0, epochs=2_000)
    >>> pace.due(0.5), pace.due(1.0)
    (False, True)
    >>> pace.done(began=1.0, ended=1.5)
    >>> pace.due(11.4), pace.due(11.5)
    (False, True)
    """

    now: float
    epochs: int

    def __post_init__(self) -> None:
        self._next = self.now + SECONDS
        self._saved = self.now

    def due(self, now: float) -> bool:
        """Return whether metrics are due that trials are compared by."""
        return self.epochs <= FEW or now >= self._next

    def saving_due(self, now: float) -> bool:
        """Return whether a checkpoint is due for a trial that may be killed."""
        return now - self._saved >= max(RECOVERY_SECONDS, SHARE * (now - self.now))

    def done(self, *, began: float, ended: float) -> None:
        """Note how long it took."""
        self._next = ended + max(SECONDS, (ended - began) / SHARE)

    def saved(self, now: float) -> None:
        """Note that there is a checkpoint."""
        self._saved = now
