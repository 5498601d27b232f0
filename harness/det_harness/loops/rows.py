"""The metrics that a loop of the user's own reports, as rows: kept as they are, converted many at once."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from time import monotonic
from typing import Any

from det_harness.loops.facts import LoopFacts
from det_harness.trial import activity
from det_harness.trial.averages import Columns, averaged
from det_harness.trial.metrics import check_names, is_best, scalar
from det_native.errors import TrialDefinitionError

logger = logging.getLogger("det_harness")

REPORT_SECONDS = 0.1
_NO_NUMBER = (
    "context.report({0}=...) takes one number, and was given {1}: give it a mean, context.report({0}={0}.mean()), or "
    "another number that says how good the epoch was."
)


class EpochRows:
    """Collects what is reported, and reports it about every `REPORT_SECONDS`.

    What is reported of an epoch is one row, at its last batch. A name that comes again in the same epoch begins a
    further row: the one before stands at the batch to which the loop has come by then.

    Parameters
    ----------
    facts : LoopFacts
    given : callable
        Returns the batches that the loop was given since its beginning, where somebody counts them.
    """

    def __init__(self, facts: LoopFacts, given: Callable[[], int] = lambda: 0) -> None:
        services = facts.services
        self._reporter, self._communicator = services.reporter, services.communicator
        self._given, self._further = given, facts.further
        self._owner = f"{facts.trainer[0].upper()}{facts.trainer[1:]}"
        self.epoch_length = facts.batches
        metric = services.environment.metric
        self._compared = {metric} if metric is not None else {"loss", "val_loss"}
        self._left_out: set[str] = set()
        self._together = services.communicator.size > 1
        self._rows: list[tuple[int, dict[str, Any]]] = []
        self._row: dict[str, Any] = {}
        self._latest: dict[str, Any] = {}
        self._checked: set[tuple[str, ...]] = set()
        self._replaced = 0
        self._best: tuple[int, dict[str, Any], float] | None = None
        self._best_told = True
        self._done = self._last = self._taken = 0
        self._begun = self._noted = False
        self._reported = monotonic()

    @property
    def empty(self) -> bool:
        """Whether the loop has reported nothing of the present epoch."""
        return not self._row and self._last <= self._done

    @property
    def due(self) -> bool:
        """Whether a report is due."""
        return bool(self._rows) and monotonic() - self._reported >= REPORT_SECONDS

    def begin_epoch(self, done: int) -> None:
        """Note that an epoch begins, after so many batches."""
        self._done = self._last = done
        self._begun = True
        self._replaced = 0 if self._replaced < 2 else 3  # said once
        self._taken = self._given()

    def add(self, metrics: Mapping[str, Any]) -> None:
        """Keep metrics of the present epoch.

        Raises
        ------
        TrialDefinitionError
            If they have names that cannot be recorded, or that by which trials are compared is no number.
        """
        names = tuple(metrics)
        if names not in self._checked:
            check_names(metrics, None, self._owner, "report")
            self._checked.add(names)
        row = self._row
        for name, value in metrics.items():
            if name in row:
                self._end_row()
                row = self._row
            if type(value) is not float and _size(value) != 1:
                if name in self._compared:
                    raise TrialDefinitionError(_NO_NUMBER.format(name, _described(value)))
                self._leave_out(name, value)
                continue
            if _is_tensor(value):  # a parameter, too, which changes in place
                # Of a device that computes beside the process nothing is read yet: it would have to wait for it.
                value = value.item() if value.is_cpu else value.detach().clone()
            row[name] = value

    def note(self, metrics: Mapping[str, Any]) -> None:
        """Note metrics of the present epoch that were reported past these rows."""
        self._latest.update(metrics)
        self._noted = True

    def _leave_out(self, name: str, value: Any) -> None:
        """Say once that a metric which is no number is left out."""
        if name not in self._left_out:
            self._left_out.add(name)
            logger.warning(
                "context.report(%s=...) was given %s, which is no number: it is left out. det.log_table(), "
                "det.log_image(), det.log_histogram() and det.log_text() keep what is none.",
                name,
                _described(value),
            )

    @property
    def reached(self) -> int:
        """Batches that are done, with the one that the present epoch's body has come to; 0 before the first epoch."""
        if not self._begun:
            return 0
        given = self._given() - self._taken
        # An epoch that counts as one batch is that batch, whether it takes one from a loader or not.
        return self._done + min(max(given, int(self.epoch_length == 1)), self.epoch_length)

    def end_epoch(self) -> None:
        """Note that the epoch has ended."""
        if self._row:
            self._keep(self._done + self.epoch_length)
        elif self._noted:
            self._last = self._done + self.epoch_length
        self._noted = False

    def note_best(self, metric: str, *, smaller_is_better: bool) -> None:
        """Note the metrics of the epoch that has ended, if they are the best so far."""
        value = scalar(self._latest.get(metric))
        if value is None or math.isnan(value):
            return
        if self._best is None or is_best(value, self._best[2], smaller_is_better=smaller_is_better):
            self._best, self._best_told = (self._last, dict(self._latest), value), False

    def take_best(self, batch: int) -> tuple[int, dict[str, float]] | None:
        """Return the best epoch and its metrics, once, if it was before this batch; None if it is known already."""
        if self._best is None or self._best_told:
            return None
        self._best_told = True
        best, metrics, _ = self._best
        return (best, _as_numbers(metrics)) if best < batch else None

    def _end_row(self) -> None:
        """Keep the row that was begun, at the batch that the loaders have come to."""
        end = self._done + self.epoch_length  # the place of the epoch's last row
        given = self._given() - self._taken
        place = max(self._last + 1, min(self._done + given - 1, end - 1))
        if place < end:
            self._keep(place)
            return
        self._replaced += 1
        if self._replaced == 2:  # the last batch's own value makes room for that of the epoch
            text = (
                f"{self._owner} has reported {', '.join(self._row)} more often than there are batches in its "
                f"epoch; the last value of an epoch counts. {self._further}"
            )
            logger.warning("%s", text)
            self._reporter.warning(text)
        self._latest.update(self._row)
        self._row = {}

    def _keep(self, place: int) -> None:
        self._latest.update(self._row)
        self._rows.append((place, self._row))
        self._row, self._last = {}, place

    def latest(self) -> dict[str, float]:
        """Return the last value of each metric that is a number; a collective call where there are several ranks."""
        numbers = _as_numbers(self._latest)
        if not self._together:
            return numbers
        _, columns = averaged([1], {name: [value] for name, value in numbers.items()}, self._communicator)
        return {name: column[0] for name, column in columns.items() if column[0] is not None}

    @property
    def names(self) -> list[str]:
        """The names of all metrics that were reported so far."""
        return list(self._latest)

    def report_alone(self) -> None:
        """Report what was kept since the last time, after an error: other ranks may be gone."""
        self._together = False
        self.report()

    def report(self) -> None:
        """Report what was kept since the last time."""
        activity.step()
        self._reported = monotonic()
        rows, self._rows = self._rows, []
        if self._together:  # all ranks send one part, whatever their loops have reported
            names = tuple(dict.fromkeys(name for _, row in rows for name in row))
            self._send(names, rows)
            return
        for names, part in groupby(rows, key=lambda row: tuple(row[1])):
            self._send(names, list(part))

    def _send(self, names: Sequence[str], rows: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
        columns: Columns = {}
        for name in names:
            values = [row.get(name) for _, row in rows]
            columns[name] = _numbers(values)
        batches = [batch for batch, _ in rows]
        if self._together:
            batches, columns = averaged(batches, columns, self._communicator)
        if columns:
            self._reporter.training(batches, columns)


def _numbers(values: Sequence[Any]) -> list[float | None]:
    """Convert values; those of a device that computes beside the process together, since each waits for it."""
    if all(_is_tensor(value) and value.numel() == 1 for value in values):
        numbers: list[float | None] = (
            sys.modules["torch"].stack([value.reshape(()) for value in values]).double().tolist()
        )
        return numbers
    return [scalar(value) for value in values]


def _as_numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    return {name: value for name, given in metrics.items() if (value := scalar(given)) is not None}


def _size(value: Any) -> int:
    """Return how many numbers a value has; 0 for what is no number, array or tensor."""
    if _is_tensor(value):
        return int(value.numel())
    return 1 if scalar(value) is not None else 0


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"{value!r:.40} ({type(value).__name__})" if shape is None else f"a {type(value).__name__} of {tuple(shape)}"
