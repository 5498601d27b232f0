"""What single batches have contributed to Keras's training metrics, which are means over the epoch so far.

A mean is undone where all batches weigh the same in it, but for a smaller last one; its own state tells. Elsewhere, and
of a metric that is no mean (an area under a curve, say), only the value of a whole epoch says anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import tensorflow as tf

from det_native.keras.generations import internals
from det_native.schema.metric_names import PER_BATCH, PER_EPOCH

Column = list[float | None]

_TOLERANCE = 1e-5
# The means have 24 bits: of one that so many batches are in, what is undone would be noise.
_MOST_BATCHES = 50_000


@dataclass(frozen=True)
class MeanState:
    """A mean after some batches of the epoch, as Keras would return it, and the weight of all that is in it."""

    mean: float = 0.0
    weight: float = 0.0


class BatchValues:
    """Undoes the means of one training.

    Parameters
    ----------
    states : callable, optional
        Returns the states of the means of a model, by name; without it, those of its metrics.
    smaller_last : bool
        If a batch is smaller than the others, it is the last one of an epoch.

    Attributes
    ----------
    settled : bool
        What a batch weighs is known; until then, each has to be told by itself.
    """

    def __init__(
        self,
        steps: int,
        states: Callable[[Any], dict[str, MeanState]] | None = None,
        *,
        smaller_last: bool = True,
    ) -> None:
        self._steps = steps
        self._states = states or _states_of_all
        self._smaller_last = smaller_last
        self._done = 0
        self._before: dict[str, MeanState] = {}
        self._sizes: dict[str, float] = {}
        self.settled = False

    def begin_epoch(self, model: Any, done: int = 0, *, steps: int | None = None) -> None:
        """An epoch of `steps` batches begins, or goes on after `done` of them, as the metrics then are."""
        self._steps = steps or self._steps
        self._done = done
        self._before = self._states(model) if done else {}

    def columns(
        self, model: Any, numbers: Sequence[int], metrics: Mapping[str, Sequence[float | None]]
    ) -> dict[str, Column]:
        """Return more columns for rows of training metrics, under names of their own.

        Parameters
        ----------
        model : tf.keras.Model
            As it is after the last of the rows.
        numbers : sequence of int
            The batches of the rows in their epoch, from 1.
        metrics : mapping
            Their columns: running means, and whatever else a ``train_step`` returns.
        """
        states, found = self._states(model), {}
        kinds = {*states, *(metric.name for metric in model.metrics)}
        for name, column in metrics.items():
            if name not in kinds or PER_BATCH + name in metrics or PER_EPOCH + name in metrics:
                continue
            if name in states:
                found[PER_BATCH + name] = self._undone(name, numbers, column, states[name])
            else:
                whole = numbers[-1] == self._steps
                found[PER_EPOCH + name] = [*[None] * (len(column) - 1), column[-1] if whole else None]
        self.settled = self.settled or numbers[-1] < self._steps or self._steps == 1
        self._done, self._before = numbers[-1], states
        return found

    def _undone(self, name: str, numbers: Sequence[int], means: Sequence[float | None], now: MeanState) -> Column:
        before = self._before.get(name, MeanState())
        nothing: Column = [None] * len(means)
        last = means[-1]
        if last is None or not _same(now.mean, last) or (before.weight == 0) != (self._done == 0):
            return nothing  # the state is that of something else by now: of a validation
        weights = self._weights(name, numbers, now.weight - before.weight)
        if weights is None or now.weight > _MOST_BATCHES * min(weights):
            return [*nothing[1:], last if numbers[-1] == self._steps else None]
        # Out of the means alone: whenever it is reported, also after a restart, the same comes out.
        values: Column = []
        total, so_far = before.mean * before.weight, before.weight
        for mean, own in zip(means, weights, strict=True):
            so_far += own
            total_then = math.nan if mean is None else mean * so_far
            values.append((total_then - total) / own)
            total = total_then
        return values

    def _weights(self, name: str, numbers: Sequence[int], weight: float) -> list[float] | None:
        """Return by what weight each row is in a mean, None if batches differ in it."""
        batches = [after - first for first, after in pairwise([self._done, *numbers])]
        if weight <= 0:
            return None
        ended = numbers[-1] == self._steps
        if len(batches) == 1 and (not ended or self._steps == 1):
            self._sizes.setdefault(name, weight / batches[0])
        if batches == [1]:
            return [weight]
        size = self._sizes.get(name)
        if size is None:
            return [weight] if len(batches) == 1 else None
        last = weight - size * sum(batches[:-1])
        smaller = self._smaller_last and ended and 0 < last <= size * batches[-1]
        if not smaller and not math.isclose(last, size * batches[-1], rel_tol=_TOLERANCE):
            return None
        return [*(size * each for each in batches[:-1]), last]


def states_of(metrics: Iterable[Any]) -> dict[str, MeanState]:
    """Return the states of the metrics that are means, by name."""
    kind = tf.keras.metrics.Mean
    states = {}
    for metric in metrics:
        if isinstance(metric, kind) and type(metric).result is kind.result:
            total, weight = tf.keras.backend.batch_get_value([metric.total, metric.count])
            states[metric.name] = MeanState(float(total / weight) if weight else 0.0, float(weight))
    return states


def _states_of_all(model: Any) -> dict[str, MeanState]:
    internals.settle(model)
    return states_of(internals.metrics_of(model))


def _same(one: float, other: float) -> bool:
    if not math.isfinite(one) or not math.isfinite(other):
        return math.isfinite(one) == math.isfinite(other)
    return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
