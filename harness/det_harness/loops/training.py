"""The training in a loop of the user's own, whose metrics are what the loop reports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from det_harness.loops.facts import LoopFacts, rescaled
from det_harness.loops.rows import EpochRows
from det_harness.trial.driver import Driver, TrainingPort
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Services


class LoopTraining(TrainingPort):
    """What `PassesController` asks of a framework: what is the same in all, before what it has of its own.

    Attributes
    ----------
    loop : LoopFacts
    rows : EpochRows
        What the loop reports.
    done : int
        Batches of all passes so far.
    epoch_length : int
        Batches that a pass counts as.
    """

    loop: LoopFacts
    rows: EpochRows
    services: Services
    schedule: Schedule
    driver: Driver
    done: int
    epoch_length: int

    if TYPE_CHECKING:  # a framework's own, which these would hide

        def running(self) -> AbstractContextManager[None]:
            """Be ready for the training in the block, and end it after it."""

        def started(self) -> AbstractContextManager[None]:
            """Go on from a checkpoint, if there is one; in the block the loop trains."""

        def explained(self) -> AbstractContextManager[None]:
            """Return a block that says what an exception of the loop's body means."""

    @property
    def stops(self) -> bool:
        """Whether this process is asked for an early end."""
        return self.services.stop_requested()

    @property
    def passes(self) -> int:
        """How many passes are done."""
        return self.done // self.epoch_length

    def end_pass(self) -> None:
        """Count a pass that has ended."""
        self.rows.end_epoch()
        self.done += self.epoch_length
        self.schedule.trained(self.done)

    def leave(self) -> None:
        """Note that the loop was left in a pass that does not count."""

    def count_passes_as(self, batches: int) -> None:
        """Have a pass count as so many batches from now on: a checkpoint, or the loop's body, knows it better."""
        self.schedule.periods = rescaled(self.schedule.periods, self.epoch_length, batches)
        self.epoch_length = self.rows.epoch_length = batches

    def report(self) -> None:
        """Report the metrics that were not reported yet."""
        self.rows.report()

    @contextmanager
    def validation(self) -> Iterator[dict[str, Any] | None]:
        """Give the last metrics that the loop has reported; None where it has reported none.

        Raises
        ------
        TrialDefinitionError
            If there is none, and a search is to compare trials.
        """
        metrics = self.latest()
        if not metrics:
            self.loop.refuse_silence()
        self.report_best()
        yield metrics or None

    def report_best(self) -> None:
        """Report the metrics of the best epoch, where trials are compared by one that came later."""
        best = self.rows.take_best(self.done)
        if best is not None and not self.schedule.periods.validation_period:
            self.services.reporter.validation(*best)

    def latest(self) -> dict[str, float]:
        """Return the last metrics that the loop has reported; a collective call where there are several slots."""
        metrics = self.rows.latest()
        self.loop.validated(metrics)
        return metrics

    def _count(self) -> int:
        return max(self.done, self.rows.reached)
