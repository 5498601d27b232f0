"""The rows of a trial as curves of at most so many points, and rows read on as their file grows."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

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
        _add_row(columns, row.batch, row.metrics)
    return columns


class GrowingColumns:
    """The rows of one file, read on from where it was read to before.

    Parameters
    ----------
    path : Path
        ``training.jsonl`` or ``validation.jsonl`` of a trial.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._inode = 0
        self._columns: Columns = {}
        self._curves: tuple[int, int, list[rest.MetricCurve]] = (-1, 0, [])

    @property
    def last_batch(self) -> int:
        """Batch of the last row that was read; 0 before the first."""
        return max((batches[-1] for batches, _ in self._columns.values()), default=0)

    def read_on(self) -> bool:
        """Read what is new; return whether there was any."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return False
        with file:
            status = os.fstat(file.fileno())
            if status.st_ino != self._inode or status.st_size < self._read:
                self._inode, self._read, self._columns = status.st_ino, 0, {}
            file.seek(self._read)
            before = self._read
            for line in file:
                if not line.endswith(b"\n"):
                    break
                row = json.loads(line)
                _add_row(self._columns, row["batch"], row["metrics"])
                self._read += len(line)
        return self._read > before

    def curves(self, trial_id: int, kind: MetricKind, buckets: int) -> list[rest.MetricCurve]:
        """Return every metric down-sampled, of the rows that were read."""
        read, made_for, made = self._curves
        if (read, made_for) != (self._read, buckets):
            made = [
                reduce_curve(trial_id, kind, name, batches, values, buckets)
                for name, (batches, values) in sorted(self._columns.items())
            ]
            self._curves = (self._read, buckets, made)
        return made


def _add_row(columns: Columns, batch: int, metrics: dict[str, Any]) -> None:
    for name, value in metrics.items():
        measured = number(value)  # not-a-number and infinities, which are gaps, stand there as words
        if measured is not None:
            batches, values = columns.setdefault(name, ([], []))
            batches.append(batch)
            values.append(measured)


def _mean(numbers: Sequence[float]) -> float:
    try:
        return math.fsum(value / len(numbers) for value in numbers)
    except OverflowError:  # rounded up, the parts of the largest floats come to more than there is
        return min(numbers) / 2 + max(numbers) / 2
