"""Custom reducers: metrics that are computed from all batches and slots together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any


class MetricReducer(ABC):
    """Computes a metric in three steps: values are gathered, reduced on each slot, and reduced over the slots.

    How values are gathered is up to the subclass: give it an ``update`` method of any form and call it in
    ``train_batch`` or ``evaluate_batch``. What it has gathered in a training workload goes into checkpoints: plain
    attributes (numbers, texts, tensors, arrays and containers of these), or what ``state_dict()`` returns if the
    subclass has one, with ``load_state_dict(state)``.

    Examples
    --------
    >>> class Mean(MetricReducer):
    ...     def __init__(self):
    ...         self.reset()
    ...
    ...     def reset(self):
    ...         self.sum, self.count = 0.0, 0
    ...
    ...     def update(self, values):
    ...         self.sum, self.count = self.sum + sum(values), self.count + len(values)
    ...
    ...     def per_slot_reduce(self):
    ...         return self.sum, self.count
    ...
    ...     def cross_slot_reduce(self, per_slot_metrics):
    ...         sums, counts = zip(*per_slot_metrics)
    ...         return sum(sums) / sum(counts)
    """

    @abstractmethod
    def reset(self) -> None:
        """Forget what was gathered; called before every training and validation workload."""

    @abstractmethod
    def per_slot_reduce(self) -> Any:
        """Return something picklable made of what this slot has gathered; called after every workload."""

    @abstractmethod
    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        """Return the metric, or metrics by name if ``wrap_reducer`` was given no name.

        Parameters
        ----------
        per_slot_metrics : list
            What ``per_slot_reduce`` returned on each slot.
        """


class FunctionReducer(MetricReducer):
    """Gathers values in a list and reduces them with a function."""

    def __init__(self, function: Callable[[list[Any]], Any]) -> None:
        self._function = function
        self._values: list[Any] = []

    @property
    def function(self) -> Callable[[list[Any]], Any]:
        """The function."""
        return self._function

    def update(self, value: Any) -> None:
        """Gather a value; the function gets all of them in one flat list."""
        self._values.append(value)

    def reset(self) -> None:
        """Forget all values."""
        self._values = []

    def per_slot_reduce(self) -> Any:
        """Return the values of this slot."""
        return self._values

    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        """Call the function with the values of all slots."""
        return self._function([value for values in per_slot_metrics for value in values])

    def state_dict(self) -> dict[str, Any]:
        """Return the values gathered so far."""
        return {"values": self._values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put values back."""
        self._values = state["values"]
