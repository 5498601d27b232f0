"""The rows of a trial as curves of at most so many points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from det_native.schema import rest
from det_native.schema.numbers import number
from det_native.schema.states import MetricKind

BUCKETS = 500

Columns = dict[str, tuple[list[int], list[float]]]


def reduce_curve(
    trial_id: int, kind: MetricKind, name: str, batches: Sequence[int], values: Sequence[float], buckets: int = BUCKETS
) -> rest.MetricCurve:
    """Reduce a metric to at most `buckets` points: of each stretch the middle batch, and minimum, maximum and mean.

    What is not a finite number counts for nothing; a stretch of nothing else is a gap.
    """
    width = max(math.ceil(len(batches) / buckets), 1)
    curve = rest.MetricCurve(trial_id=trial_id, kind=kind, name=name, batch=[], minimum=[], maximum=[], mean=[])
    for start in range(0, len(batches), width):
        numbers = [value for value in values[start : start + width] if math.isfinite(value)]
        last = batches[min(start + width, len(batches)) - 1]
        curve.batch.append((batches[start] + last) // 2)
        curve.minimum.append(min(numbers) if numbers else None)
        curve.maximum.append(max(numbers) if numbers else None)
        curve.mean.append(_mean(numbers) if numbers else None)
    curve.last = values[-1] if values else None
    return curve


def columns_of(rows: Iterable[rest.MetricRow]) -> Columns:
    """Return batches and values of every metric."""
    columns: Columns = {}
    for row in rows:
        for name, value in row.metrics.items():
            measured = number(value)  # not-a-number and infinities, which are gaps, stand there as words
            if measured is not None:
                batches, values = columns.setdefault(name, ([], []))
                batches.append(row.batch)
                values.append(measured)
    return columns


def _mean(numbers: Sequence[float]) -> float:
    try:
        return math.fsum(value / len(numbers) for value in numbers)
    except OverflowError:  # rounded up, the parts of the largest floats come to more than there is
        return min(numbers) / 2 + max(numbers) / 2
