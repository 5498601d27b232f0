"""How the per-batch values of a validation metric become one."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum


class Reducer(Enum):
    """How a validation metric's values per batch are reduced to one."""

    AVG = 1
    """Mean over the records: the mean of the batches, weighted by their size."""

    SUM = 2
    MAX = 3
    MIN = 4

    AVG_OF_BATCHES = 5
    """Mean of the batches, whatever their size: what Determined's AVG was, for comparing with old results."""

    def reduce(self, values: Sequence[float], weights: Sequence[int]) -> float:
        """Reduce the values of the batches.

        Parameters
        ----------
        values : sequence of float
            One per batch, at least one.
        weights : sequence of int
            Records of each batch; only AVG looks at them.
        """
        if self is Reducer.AVG:
            return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)
        if self is Reducer.AVG_OF_BATCHES:
            return sum(values) / len(values)
        if self is Reducer.SUM:
            return sum(values)
        # max() and min() would skip a value that is not a number, depending on where it stands.
        if any(value != value for value in values):
            return float("nan")
        return max(values) if self is Reducer.MAX else min(values)
