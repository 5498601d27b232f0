"""What is reported at the end of an epoch: the row of Keras's own ``History``, and what callbacks have put into it.

Callbacks may add to the metrics of an epoch (``lr``, a score of one's own) at its end. ``History``, the last of them,
has what they did; the row of training metrics of the epoch's last batch waits for it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from det_harness.trial.metrics import scalar
from det_harness.trial.services import Services
from det_native.keras.native import FitCall
from det_native.past_history import MetricsByEpoch
from det_native.schema.numbers import number
from det_native.schema.reports import MOST_METRICS, EpochRow

logger = logging.getLogger("det_native")

Columns = Mapping[str, list[float | None]]

# Numbers of one metric with several values (of a confusion matrix, say).
_MOST_VALUES = 10_000
_VALIDATION = "val_"

_said: set[str] = set()


class EpochReports:
    """Reports of one training what Keras's ``History`` has.

    Parameters
    ----------
    params : callable
        Returns the parameters that the history has without us.
    history : keras.callbacks.History
        The one among the callbacks.
    """

    def __init__(self, call: FitCall, services: Services, params: Callable[[], dict[str, int]], history: Any) -> None:
        self._call = call
        self._services = services
        self._params = params
        self._history = history
        self._own_callbacks = bool(call.callbacks())
        self._waiting: tuple[int, Columns] | None = None
        self._before: dict[str, int] = {}

    def report(self, batches: list[int], columns: Columns, *, ends: bool) -> None:
        """Report rows of training metrics; where an epoch `ends` with them, the last one waits for callbacks."""
        if ends and self._own_callbacks:
            self._waiting = (batches[-1], {name: column[-1:] for name, column in columns.items()})
            batches, columns = batches[:-1], {name: column[:-1] for name, column in columns.items()}
        if batches:
            self._services.reporter.training(batches, columns)

    def release(self, added: Mapping[str, float] | None = None) -> None:
        """Report the row that waits, with what callbacks have added."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            batch, columns = waiting
            more: dict[str, list[float | None]] = {name: [number] for name, number in (added or {}).items()}
            self._services.reporter.training([batch], {**columns, **more, **columns})

    def look(self) -> None:
        """Look at the history before the callbacks are called."""
        self._before = {name: len(values) for name, values in self._values().items()}

    def ended(self, epoch: int, done: int, logs: Mapping[str, Any]) -> dict[str, float]:
        """Report the epoch as it is in the history now; return the metrics that callbacks have added to `logs`.

        Parameters
        ----------
        done : int
            Batches of the training until its end.
        """
        values = self._values()
        row = epoch_logs({name: kept[-1] for name, kept in values.items() if len(kept) > self._before.get(name, 0)})
        if self._own_callbacks and self._services.communicator.size > 1:
            row = self._services.communicator.broadcast_object(row)  # of one rank: what follows is the same on all
        if row:
            report = EpochRow(batch=done, epoch=epoch, logs=row, params=self._params())
            self._services.reporter.epoch(report)
        numbers = {name: _number(value) for name, value in row.items() if name not in logs}
        added = {name: number for name, number in numbers.items() if number is not None}
        # Without a validation, its rows are not shown: what trials are compared by stands among those of the training.
        compared = self._compared() if self._call.validation is not None else set()
        of_training = {name: value for name, value in added.items() if name not in compared}
        if any(name.startswith(_VALIDATION) for name in logs):
            of_training = {name: value for name, value in of_training.items() if not name.startswith(_VALIDATION)}
        self.release(of_training)
        return added

    def finish(self) -> None:
        """Give the history the parameters that it has without us: who shows progress is no matter of the user's."""
        if hasattr(self._history, "params"):
            self._history.params = {**(self._history.params or {}), **self._params()}
        if type(self._values()) is dict:
            self._history.history = MetricsByEpoch(self._values())

    def of_validation(self, added: Mapping[str, float], *, validated: bool) -> dict[str, float]:
        """Return what of the `added` metrics is reported as a validation's.

        That is what trials are compared by; and, where the epoch was `validated`, what is called so.
        """
        compared = self._compared()
        return {
            name: value
            for name, value in added.items()
            if name in compared or (validated and name.startswith(_VALIDATION))
        }

    def _compared(self) -> set[str | None]:
        environment = self._services.environment
        return {environment.metric, *environment.metrics}

    def _values(self) -> Mapping[str, list[Any]]:
        found: Mapping[str, list[Any]] = getattr(self._history, "history", {})
        return found


def as_number(value: Any) -> float | None:
    """Return a number out of a metric of Keras's; None where it is none."""
    if isinstance(value, tf.Tensor):
        value = value.numpy()
    elif not isinstance(value, np.generic | np.ndarray) and hasattr(value, "__array__"):  # of another backend
        value = np.asarray(value)[()]
    # The metrics of every batch come here: floats, nearly always.
    return float(value) if isinstance(value, np.floating) else scalar(value)


def epoch_logs(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of an epoch's metrics can be reported: numbers, and arrays of them with their type.

    Not-a-number and infinities become words. What is no number is left out, and said once.
    """
    found: dict[str, Any] = {}
    for name, value in row.items():
        plain = _plain(value)
        if isinstance(name, str) and plain is not None and len(found) < MOST_METRICS:
            found[name] = plain
        elif str(name) not in _said:
            _said.add(str(name))
            logger.warning(
                "'%s' of an epoch's metrics is %s: only the History of this process has it.",
                name,
                f"an array of {np.size(value):,} values" if np.ndim(value) else f"a {type(value).__name__}",
            )
    return found


def _plain(value: Any) -> Any:
    """Return a number, or what numpy has with its type, so that it is shown as it is here; None for anything else."""
    try:
        array = np.asarray(value)
    except Exception:  # noqa: BLE001 - objects of the user's may raise anything
        return None
    if array.dtype.kind not in "biuf" or array.size > _MOST_VALUES:
        return None
    values = _words(array.tolist())
    return (
        values
        if isinstance(value, bool | int | float) and type(value).__module__ == "builtins"
        else {array.dtype.name: values}
    )


def _words(value: Any) -> Any:
    if isinstance(value, list):
        return [_words(part) for part in value]
    number = float(value)
    if math.isfinite(number):
        return value if isinstance(value, bool | int | float) else number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _number(plain: Any) -> float | None:
    """Return the number that stands in a row, not-a-number and infinities too; None for an array, and what is none."""
    if isinstance(plain, dict):
        (plain,) = plain.values()
    return float(plain) if isinstance(plain, bool) else number(plain)
