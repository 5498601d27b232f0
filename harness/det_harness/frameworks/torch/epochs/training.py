"""The training of a loop over ``context.epochs()``, whose metrics are what the loop reports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from det_harness.frameworks.torch.epochs.definition import CapturedLoop, rescaled
from det_harness.frameworks.torch.epochs.rows import EpochRows
from det_harness.frameworks.torch.training import TorchTraining
from det_harness.trial.averages import averaged
from det_native.pytorch.epochs_call import EpochsCall


class EpochsTraining(TorchTraining):
    """See ``TorchTraining``; it has no batches of its own.

    Attributes
    ----------
    rows : EpochRows
        What the loop reports.
    """

    def __init__(self, definition: CapturedLoop, call: EpochsCall) -> None:
        super().__init__(definition, own_loop=True)
        self.loop = definition
        communicator = definition.services.communicator
        self.rows = EpochRows(
            definition.services.reporter,
            call.context.loading,
            1 if definition.quick else call.batches,
            definition.services.environment.metric,
            (lambda batches, columns: averaged(batches, columns, communicator)) if communicator.size > 1 else None,
        )

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
        self.definition.validated(metrics)
        return metrics

    def _count(self) -> int:
        return max(self.done, self.rows.reached)

    def _batches_from(self, position: Any) -> Iterator[Any]:
        if position is not None:
            length = position["epoch_length"]
            self.schedule.periods = rescaled(self.schedule.periods, self.epoch_length, length)
            self.epoch_length = self.rows.epoch_length = length
        return _Place(self.epoch_length)


class _Place(Iterator[Any]):
    """What stands for the place in data that nobody gives here: as how many batches an epoch counts.

    A loader may have another length when the trial goes on.
    """

    def __init__(self, epoch_length: int) -> None:
        self.position = {"epoch_length": epoch_length}

    def __next__(self) -> Any:
        raise StopIteration
