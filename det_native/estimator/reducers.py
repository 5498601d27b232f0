"""Metrics that are computed in Python over all batches of an evaluation: ``make_metric()`` and its reducers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from det_native.errors import TrialDefinitionError
from det_native.heap.copies import ObjectCopy
from det_native.horovod import HorovodTrialContext
from det_native.trial import Trial

Gather = Callable[[Any], list[Any]]


class MetricReducer(ABC):
    """A metric that is computed batch by batch on each slot, and put together at the end.

    Examples
    --------
    >>> class Mean(MetricReducer):
    ...     def __init__(self):
    ...         self.sum, self.count = 0.0, 0
    ...
    ...     def accumulate(self, metric):
    ...         self.sum, self.count = self.sum + metric.sum(), self.count + metric.size
    ...         return self.sum, self.count
    ...
    ...     def cross_slot_reduce(self, per_slot_metrics):
    ...         sums, counts = zip(*per_slot_metrics)
    ...         return sum(sums) / sum(counts)
    """

    @abstractmethod
    def accumulate(self, metric: Any) -> Any:
        """Take the value of one batch, and return what is known so far; the last that a slot returns is its result."""

    @abstractmethod
    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        """Return the metric out of the results of all slots; a trial on one slot has one."""


#: The document's other spelling.
MetricsReducer = MetricReducer


class _All(MetricReducer):
    """Keeps the values of all batches for a function."""

    def __init__(self, function: Callable[[list[Any]], Any]) -> None:
        self._function = function
        self._values: list[Any] = []

    def accumulate(self, metric: Any) -> list[Any]:
        self._values.append(metric)
        return self._values

    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        return self._function([value for values in per_slot_metrics for value in values or ()])


class _Metric:
    """A metric in the graph of one evaluation.

    Attributes
    ----------
    last
        What its reducer has returned last; None before the first batch.
    per_slot : list or None
        What those of all slots have, once that is gathered.
    """

    def __init__(self, state: MetricReducer) -> None:
        self.state = state
        self.last: Any = None
        self.per_slot: list[Any] | None = None

    def result(self) -> Any:
        """Return the metric."""
        per_slot = [self.last] if self.per_slot is None else self.per_slot
        if not isinstance(self.state, _All):  # a slot without a batch has accumulated nothing
            per_slot = [each for each in per_slot if each is not None]
        return self.state.cross_slot_reduce(per_slot)


class Metrics:
    """Makes the metrics of one trial.

    Attributes
    ----------
    gather : callable
        Returns what each slot of the trial has given it, in the order of ranks.
    error : BaseException or None
        What a reducer raised; TensorFlow passes on only its text.
    """

    def __init__(self) -> None:
        self.gather: Gather = lambda value: [value]
        self.error: BaseException | None = None
        self._of_evaluation: list[_Metric] = []

    def begin_evaluation(self) -> None:
        """An evaluation begins, whose graph has metrics of its own."""
        self._of_evaluation = []

    def end_evaluation(self) -> None:
        """All slots have seen their batches: gather what they have, in the same order on each."""
        slots = self.gather([metric.last for metric in self._of_evaluation])
        for metric, per_slot in zip(self._of_evaluation, zip(*slots, strict=True), strict=True):
            metric.per_slot = list(per_slot)

    def make(self, metric: Any, reducer: Any, numpy_dtype: Any) -> tuple[Any, Any]:
        """See ``EstimatorExperimentalContext.make_metric``."""
        leaves, rebuild = _taken_apart(metric)
        made = _Metric(_fresh(reducer))
        self._of_evaluation.append(made)
        dtype = np.dtype(numpy_dtype)

        def accumulate(*values: Any) -> Any:
            made.last = self._guarded(lambda: made.state.accumulate(rebuild(values)))
            return np.int64(0)

        def result() -> Any:
            return self._guarded(lambda: np.asarray(made.result(), dtype))

        update = tf.compat.v1.py_func(accumulate, leaves, tf.int64, stateful=True, name="det_accumulate")
        value = tf.compat.v1.py_func(result, [], tf.as_dtype(dtype), stateful=True, name="det_reduce")
        return value, update

    def _guarded(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except BaseException as error:
            self.error = error
            raise


def _taken_apart(metric: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """Return the tensors of a metric, and what puts their values together as it was."""
    rebuild: Callable[[Any], Any]
    if isinstance(metric, dict):
        names = list(metric)
        parts, rebuild = list(metric.values()), lambda values: dict(zip(names, values, strict=True))
    elif isinstance(metric, list | tuple):
        parts, rebuild = list(metric), list
    else:
        parts, rebuild = [metric], lambda values: values[0]
    for part in parts:
        if isinstance(part, dict | list | tuple):
            raise TrialDefinitionError(
                "make_metric(): the metric has structures within structures; give a tensor, a list of tensors or a "
                "dictionary of tensors."
            )
    try:
        return [tf.convert_to_tensor(part) for part in parts], rebuild
    except (TypeError, ValueError) as error:
        raise TrialDefinitionError(
            f"make_metric(): the metric must be a tensor, a list of tensors or a dictionary of tensors ({error})."
        ) from error


class _Fresh(ObjectCopy):
    """A copy that shares what belongs to the process or to a graph; what has a finalizer holds a resource."""

    def whole(self, value: Any) -> Any:
        ends = hasattr(type(value), "__del__")
        shared = ends or tf.is_tensor(value) or isinstance(value, tf.Variable | HorovodTrialContext | Trial)
        return value if shared else super().whole(value)


def _fresh(reducer: Any) -> MetricReducer:
    if isinstance(reducer, MetricReducer):
        # An evaluation must not go on with what the one before has accumulated.
        fresh: MetricReducer = _Fresh().of(reducer)
        return fresh
    if isinstance(reducer, type) or not callable(reducer):
        made = f"{reducer.__name__}()" if isinstance(reducer, type) else "a function"
        raise TrialDefinitionError(
            f"make_metric(): the reducer must be a function or a det.estimator.MetricReducer, not {reducer!r}; give "
            f"{made}."
        )
    return _All(reducer)
