"""How many batches a training has done at any moment, also between two looks of its schedule."""

from __future__ import annotations

from collections.abc import Callable

from det_harness.trial.schedule import Schedule


class BatchCount:
    """Asks whoever counts the batches of a trial; as long as nobody does, its schedule.

    A batch that is being trained counts where code of the user's runs for it: what is logged there belongs to it, as
    the metrics that the code returns do.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._source: Callable[[], int] | None = None

    def ask(self, source: Callable[[], int]) -> None:
        """Have `source` say how many there are from now on."""
        self._source = source

    def __call__(self) -> int:
        """Return how many there are."""
        done = self._schedule.progress.batches
        return done if self._source is None else max(done, self._source())
