"""Training metrics of PyTorch batches: kept as they are during training, converted many at once when reported."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from det_harness.loops.rows import REPORT_SECONDS
from det_harness.trial import activity
from det_harness.trial.averages import Columns, Rows
from det_harness.trial.metrics import check_names, scalar
from det_harness.trial.services import Reporter
from det_native.errors import TrialDefinitionError

logger = logging.getLogger("det_harness")

_MOST_BATCHES = 2_000


class TrainingRecorder:
    """Collects the metrics of each batch and reports them about every `REPORT_SECONDS`.

    Reading a loss makes the processor wait for the device, so nothing is read until a report is due. The first batch is
    reported at once.

    Parameters
    ----------
    owner : str
        What returns the metrics, for messages.
    average : callable, optional
        Takes batches and columns of numbers, and makes these the means over all ranks, which report together.

    Attributes
    ----------
    due : int
        Batches done at which the next report is due; one comparison per batch is all that the loop pays for it.
    late : float
        Monotonic time after which it is due in any case, should the batches have become slower.
    """

    def __init__(
        self,
        reporter: Reporter,
        owner: str,
        average: Callable[[list[int], Columns], Rows] | None = None,
        verb: str = "return",
    ) -> None:
        self._reporter = reporter
        self._average = average
        self._owner = owner
        self._verb = verb
        self._columns: dict[str, list[Any]] = {"": []}  # unlike whatever the first batch has
        self._named = False
        self._batches: list[int] = []
        self._unusable: set[str] = set()
        self._reported = time.monotonic()
        self.due = 0
        self.late = self._reported + REPORT_SECONDS

    def add(self, batch: int, metrics: Any) -> None:
        """Keep the metrics of one batch.

        Parameters
        ----------
        metrics : tensor or dict
            As ``train_batch`` returned them.

        Raises
        ------
        TrialDefinitionError
            If they are of another type, too many, or named differently than before.
        """
        columns = self._columns
        if type(metrics) is not dict or metrics.keys() != columns.keys():
            if isinstance(metrics, torch.Tensor):
                metrics = {"loss": metrics}
            columns = self._checked_names(batch, metrics)
        self._batches.append(batch)
        for name, value in metrics.items():
            if type(value) is torch.Tensor and value.is_cpu and not value.dim():
                value = value.item()  # there is nothing to wait for, as there is with a GPU
            elif isinstance(value, torch.Tensor):
                # What comes out of a graph is new in every batch; another tensor, a parameter say, changes in place.
                value = value.detach().clone() if value.is_leaf or value._is_view() else value.detach()
            columns[name].append(value)

    def report_alone(self) -> None:
        """Report what was kept since the last time, after an error: other ranks may be gone."""
        self._average = None
        self.report()

    def report(self, workload: Mapping[str, Any] | None = None, done: int = 0) -> None:
        """Report what was kept since the last time.

        Parameters
        ----------
        workload : mapping, optional
            Metrics of a whole workload, which go into the row of its last batch; that must not be reported yet.
        done : int
            The last batch of the workload, which may have no metrics of its own.

        Raises
        ------
        TrialDefinitionError
            If a metric of the workload has the name of a metric of the batches.
        """
        activity.step()
        batches, self._batches = self._batches, []
        now = time.monotonic()
        elapsed, self._reported = max(now - self._reported, 1e-6), now
        self.late = now + 5 * REPORT_SECONDS
        if batches:
            rate = len(batches) / elapsed
            self.due = batches[-1] + min(max(int(rate * REPORT_SECONDS), 1), _MOST_BATCHES)
        else:
            self.due = sys.maxsize  # where nothing is kept, time tells when to look again
        if self._named and not self._columns:
            batches = batches[-1:]  # nothing but what the workload as a whole has
        columns = self._as_numbers() if batches else {}
        self._columns = {name: [] for name in self._columns}
        if self._average is not None:
            batches, columns = self._average(batches, columns)
        if workload and batches[-1:] != [done]:
            batches, columns = [*batches, done], {name: [*values, None] for name, values in columns.items()}
        self._add_workload(columns, workload or {}, len(batches))
        if columns:
            self._reporter.training(batches, columns)

    def _as_numbers(self) -> Columns:
        columns: Columns = {}
        for name, values in self._columns.items():
            numbers = self._numbers(name, values)
            if numbers is not None:
                columns[name] = numbers
        return columns

    def _add_workload(self, columns: dict[str, list[float | None]], workload: Mapping[str, Any], rows: int) -> None:
        for name, value in workload.items():
            if name in self._columns:
                raise TrialDefinitionError(
                    f"{self._owner} {self._verb}ed the metric '{name}', which a reducer of wrap_reducer() returns too: "
                    "leave it out of one of them."
                )
            numbers = self._numbers(name, [value])
            if numbers is not None:
                columns[name] = [*[None] * (rows - 1), *numbers]

    def _checked_names(self, batch: int, metrics: Any) -> dict[str, list[Any]]:
        if not isinstance(metrics, Mapping):
            raise TrialDefinitionError(
                f"{self._owner} returned {type(metrics).__name__}; return a scalar tensor (the loss), or metrics by "
                "name, a dictionary."
            )
        check_names(metrics, batch, self._owner, self._verb)
        if not self._named:
            self._named = True
            self._columns = {name: [] for name in metrics}
        elif metrics.keys() != self._columns.keys():
            raise TrialDefinitionError(
                f"{self._owner} {self._verb}ed the metrics {', '.join(metrics) or 'none'} for batch {batch}, but "
                f"{', '.join(self._columns) or 'none'} before; {self._verb} the same names for every batch, with "
                "float('nan') where one has no value."
            )
        return self._columns

    def _numbers(self, name: str, values: list[Any]) -> list[float | None] | None:
        """Convert a column; None if its values are no scalars, which is said once."""
        if name in self._unusable:
            return None
        first = values[0]
        if isinstance(first, torch.Tensor) and first.ndim == 0:
            try:
                stacked: list[float | None] = torch.stack(values).to(torch.float64).tolist()
            except (TypeError, RuntimeError):  # not all of them are alike
                stacked = [scalar(value) for value in values]
        else:
            stacked = [scalar(value) for value in values]
        if all(value is None for value in stacked):
            self._unusable.add(name)
            logger.warning(
                "%s %sed %s for the metric '%s', which is no number: it is left out. %s one number, or give the value "
                "to a reducer of context.experimental.wrap_reducer().",
                self._owner,
                self._verb,
                type(first).__name__,
                name,
                self._verb.capitalize(),
            )
            return None
        return stacked
