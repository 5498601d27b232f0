"""What is due after each batch: a pure state machine without I/O.

Semantics (Determined's trial workload sequencer): an initial validation if asked for; after a validation a checkpoint,
if there are unsaved batches and the policy is ``all``, or ``best`` and this was the experiment's best; then a
validation that is due; then a checkpoint that is due; then more training, at most one scheduling unit at a time.
Before the validation that ends the search operation, unsaved batches are checkpointed. A requested stop checkpoints
unsaved batches and ends.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Policy = Literal["best", "all", "none"]


@dataclass(frozen=True)
class Train:
    """Train until `until` batches are done in total."""

    until: int


@dataclass(frozen=True)
class Validate:
    """Validate now."""


@dataclass(frozen=True)
class SaveCheckpoint:
    """Checkpoint now."""


@dataclass(frozen=True)
class Finish:
    """The trial is over; `stopped` tells an early end from a full one."""

    stopped: bool = False


Action = Train | Validate | SaveCheckpoint | Finish


@dataclass(frozen=True)
class Periods:
    """Lengths of a trial, all in batches; 0 switches a period off."""

    length: int
    scheduling_unit: int = 100
    validation_period: int = 0
    checkpoint_period: int = 0
    initial_validation: bool = False
    policy: Policy = "best"


@dataclass
class Progress:
    """The state of a schedule; goes into every checkpoint.

    `ended` is True once the user's code has ended the training before its length: it stays so in a continued trial.
    """

    batches: int = 0
    last_validated: int = -1
    last_checkpointed: int = 0
    save_after_validation: bool = False
    validated_at_end: bool = False
    ended: bool = False


class Schedule:
    """Says what to do next; is told what was done.

    Examples
    --------
    >>> schedule = Schedule(Periods(length=2))
    >>> schedule.next()
    Train(until=2)
    >>> schedule.trained(2)
    >>> schedule.next()
    SaveCheckpoint()
    >>> schedule.checkpointed()
    >>> schedule.next()
    Validate()
    >>> schedule.validated(best=True)
    >>> schedule.next()
    Finish(stopped=False)
    """

    def __init__(self, periods: Periods, progress: Progress | None = None) -> None:
        self.periods = periods
        self.progress = progress or Progress()
        self.stop_requested = False

    def next(self) -> Action:
        """Return what is due now. Calling it again without telling what was done returns the same."""
        periods, progress = self.periods, self.progress
        if self.stop_requested:
            return SaveCheckpoint() if self._unsaved else Finish(stopped=not progress.validated_at_end)
        if periods.initial_validation and progress.batches == 0 and progress.last_validated < 0:
            return Validate()
        if progress.save_after_validation and self._unsaved:
            return SaveCheckpoint()
        if self.over:
            if self._unsaved:
                return SaveCheckpoint()
            return Finish() if progress.validated_at_end else Validate()
        if self._due(periods.validation_period, max(progress.last_validated, 0)):
            return Validate()
        if self._due(periods.checkpoint_period, progress.last_checkpointed):
            return SaveCheckpoint()
        return Train(until=self._next_boundary())

    def ends_workload(self, batches: int) -> bool:
        """Return whether a workload of training ends once `batches` batches are done.

        It does at each multiple of the scheduling unit, before a validation, and at the end: wherever training may have
        been stopped and continued in between.
        """
        periods = self.periods
        at_unit = batches % periods.scheduling_unit == 0 or batches >= periods.length or self.progress.ended
        return at_unit or 0 < periods.validation_period <= batches - max(self.progress.last_validated, 0)

    def validates_at(self, batches: int) -> bool:
        """Return whether a validation is due once `batches` batches are done."""
        periods = self.periods
        due = 0 < periods.validation_period <= batches - max(self.progress.last_validated, 0)
        return not self.stop_requested and (due or batches >= periods.length)

    def trained(self, batches: int) -> None:
        """`batches` batches are done in total."""
        if batches < self.progress.batches:
            raise ValueError(f"batches went back from {self.progress.batches} to {batches}")
        if batches > self.progress.batches:
            # A trial that its search trains on was at its end before.
            self.progress.validated_at_end = False
        self.progress.batches = batches

    def validated(self, *, best: bool) -> None:
        """A validation was done and reported; `best` if it beat every earlier one of the experiment."""
        progress = self.progress
        progress.last_validated = progress.batches
        wanted = self.periods.policy == "all" or (self.periods.policy == "best" and best)
        progress.save_after_validation = wanted and self._unsaved
        if self.over:
            progress.validated_at_end = True

    def checkpointed(self) -> None:
        """A checkpoint of the present state was taken."""
        self.progress.last_checkpointed = self.progress.batches
        self.progress.save_after_validation = False

    def request_checkpoint(self) -> None:
        """Have unsaved batches checkpointed before the next one."""
        self.progress.save_after_validation = True

    def request_stop(self) -> None:
        """End early: checkpoint unsaved batches, then finish."""
        self.stop_requested = True

    def end_here(self, *, validate: bool = True) -> None:
        """Make the batches that are done the whole training: a checkpoint and a validation of them end it.

        Parameters
        ----------
        validate : bool
            False leaves out the validation.
        """
        progress = self.progress
        progress.ended = True
        progress.validated_at_end = not validate or progress.last_validated == progress.batches

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON-able data, as it will be once the checkpoint being taken is complete."""
        saved = asdict(self.progress)
        saved["last_checkpointed"] = self.progress.batches
        saved["save_after_validation"] = False
        return saved

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self.progress = Progress(**snapshot)

    @property
    def over(self) -> bool:
        """Whether all batches are trained that were to be."""
        return self.progress.ended or self.progress.batches >= self.periods.length

    @property
    def _unsaved(self) -> bool:
        return self.progress.batches > self.progress.last_checkpointed

    def _due(self, period: int, last: int) -> bool:
        return period > 0 and self.progress.batches - last >= period

    def _next_boundary(self) -> int:
        periods, progress = self.periods, self.progress
        boundary = min(periods.length, progress.batches + periods.scheduling_unit)
        if periods.validation_period:
            boundary = min(boundary, max(progress.last_validated, 0) + periods.validation_period)
        if periods.checkpoint_period:
            boundary = min(boundary, progress.last_checkpointed + periods.checkpoint_period)
        return max(boundary, progress.batches + 1)
