"""Rows of metrics that wait to be reported, gathered by column."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from det_native.schema.reports import LONGEST_NAMES

# The most rows and the most values of one report, so that a request with it is not larger than the master takes.
ROWS = 10_000
_VALUES = 200_000
# Rows of unlike names are in one report as long as it has no more names: far fewer than a report can have.
_UNLIKE_NAMES = 64

Columns = dict[str, list[float | None]]


class TrainingRows:
    """Rows of training metrics, one for each batch; a metric that a row lacks is None there."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.columns: Columns = {}

    def takes(self, names: Collection[str], batches: list[int]) -> bool:
        """Return whether rows of these names can be added: they rise, and a report of all of them is not too large."""
        if not self.batches:
            return True
        if len(self.batches) + len(batches) > ROWS or (batches and batches[0] < self.batches[-1]):
            return False
        if names == self.columns.keys():
            return True
        all_names = {*self.columns, *names}
        return len(all_names) <= _UNLIKE_NAMES and sum(map(len, all_names)) <= LONGEST_NAMES

    def add(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        """Add rows; what comes after the same batch as the last row is a part of that."""
        columns = self.columns
        if not self.batches:
            self.columns = columns = {name: [] for name in metrics}
        elif batches and batches[0] == self.batches[-1]:
            for name, column in metrics.items():
                if column[0] is not None:
                    columns.setdefault(name, [None] * len(self.batches))[-1] = column[0]
            batches, metrics = batches[1:], {name: column[1:] for name, column in metrics.items()}
        if metrics.keys() != columns.keys():
            for name in metrics:
                columns.setdefault(name, [None] * len(self.batches))
            absent: list[float | None] = [None] * len(batches)
            metrics = {**dict.fromkeys(columns, absent), **metrics}
        self.batches += batches
        for name, column in metrics.items():
            columns[name] += column

    def take(self) -> Iterator[tuple[list[int], Columns]]:
        """Yield the rows in parts that a report can have; they are gone then."""
        batches, columns = self.batches, self.columns
        self.clear()
        yield from _parts(batches, columns)

    def clear(self) -> None:
        """Forget the rows."""
        self.batches, self.columns = [], {}


class LoggedRows:
    """Rows of logged metrics: one for each batch, of any names."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, dict[str, float]]] = []
        self._last = 0

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, batch: int, metrics: Mapping[str, float]) -> None:
        """Add values to the row of a batch; none is before the last one."""
        if batch < self._last:
            batch = self._last
        self._last = batch
        if self._rows and self._rows[-1][0] == batch:
            self._rows[-1][1].update(metrics)
        else:
            self._rows.append((batch, dict(metrics)))

    def take(self) -> Iterator[tuple[list[int], Columns]]:
        """Yield the rows in parts that a report can have; they are gone then."""
        rows = self._rows
        self.clear()
        if rows:
            names = dict.fromkeys(name for _, row in rows for name in row)
            columns: Columns = {name: [row.get(name) for _, row in rows] for name in names}
            yield from _parts([batch for batch, _ in rows], columns)

    def clear(self) -> None:
        """Forget the rows."""
        self._rows = []


def _parts(batches: list[int], columns: Columns) -> Iterator[tuple[list[int], Columns]]:
    rows = max(1, min(ROWS, _VALUES // max(len(columns), 1)))
    for first in range(0, len(batches), rows):
        part = slice(first, first + rows)
        yield batches[part], {name: column[part] for name, column in columns.items()}
