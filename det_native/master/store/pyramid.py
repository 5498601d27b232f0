"""Complete buckets of a growing series, at several widths: pure arithmetic, no I/O.

A bucket of level 0 covers ``BASE`` consecutive rows of one run and kind, a bucket of the next level ``FACTOR``
buckets of the one below. A bucket is handed out once, when it is complete; what is still open is found again from the rows and
buckets below it. So ingestion only ever inserts, and a reader needs at most one open bucket of every level.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

BASE = 16
FACTOR = 2
LEVELS = 20
KEPT_TAILS = 4096


@dataclass(frozen=True)
class Key:
    """One run of a trial and one kind of metrics."""

    trial_id: int
    run: int
    kind: str


@dataclass
class Summary:
    """Summary of the values in a stretch of rows; not-a-numbers are counted and otherwise left out."""

    first_batch: int
    last_batch: int
    count: int = 0
    nans: int = 0
    total: float = 0.0
    minimum: float = math.inf
    maximum: float = -math.inf

    @classmethod
    def of(cls, batches: Sequence[int], values: Sequence[float | None]) -> Summary:
        """Summarise the values measured after `batches`; None counts for nothing."""
        present = [value for value in values if value is not None]
        numbers = [value for value in present if value == value]
        summary = cls(first_batch=batches[0], last_batch=batches[-1], nans=len(present) - len(numbers))
        if numbers:
            summary.count = len(numbers)
            summary.total = sum(numbers)
            summary.minimum = min(numbers)
            summary.maximum = max(numbers)
        return summary

    @classmethod
    def merged(cls, parts: Sequence[Summary]) -> Summary:
        """Summarise consecutive stretches as one."""
        return cls(
            first_batch=parts[0].first_batch,
            last_batch=parts[-1].last_batch,
            count=sum(part.count for part in parts),
            nans=sum(part.nans for part in parts),
            total=sum(part.total for part in parts),
            minimum=min(part.minimum for part in parts),
            maximum=max(part.maximum for part in parts),
        )

    @property
    def mean(self) -> float | None:
        """Mean of the numbers, None if there is none."""
        return self.total / self.count if self.count else None


@dataclass(frozen=True)
class Complete:
    """A bucket that will not change any more."""

    name: str
    level: int
    position: int
    summary: Summary


class Tail:
    """The open end of one series: rows and buckets that do not fill a bucket yet.

    Parameters
    ----------
    rows : int
        Rows so far.
    last_batch : int
        Batch of the last row, -1 if there is none.
    """

    def __init__(self, rows: int = 0, last_batch: int = -1) -> None:
        self.rows = rows
        self.last_batch = last_batch
        self.batches: list[int] = []
        self.columns: dict[str, list[float | None]] = {}
        self.open: dict[str, list[list[Summary]]] = {}

    def reopen(self, batches: Sequence[int], rows: Sequence[dict[str, float | None]]) -> None:
        """Take up the rows after the last complete bucket of level 0; they are counted already."""
        self.batches = list(batches)
        names = sorted({name for row in rows for name in row})
        self.columns = {name: [row.get(name) for row in rows] for name in names}

    def extend(self, batches: Sequence[int], columns: dict[str, Sequence[float | None]]) -> list[Complete]:
        """Add rows, which must be later than all before; return the buckets that they complete."""
        done: list[Complete] = []
        at = 0
        while at < len(batches):
            take = min(BASE - len(self.batches), len(batches) - at)
            self._add(batches[at : at + take], {name: values[at : at + take] for name, values in columns.items()})
            at += take
            if len(self.batches) == BASE:
                done.extend(self._close())
        return done

    def _add(self, batches: Sequence[int], columns: dict[str, Sequence[float | None]]) -> None:
        before = len(self.batches)
        for name, values in columns.items():
            self.columns.setdefault(name, [None] * before).extend(values)
        self.batches.extend(batches)
        for column in self.columns.values():
            column.extend([None] * (len(self.batches) - len(column)))
        self.rows += len(batches)
        self.last_batch = batches[-1]

    def _close(self) -> Iterator[Complete]:
        for name in self.columns.keys() | self.open.keys():
            values = self.columns.get(name)
            summary = Summary.of(self.batches, values) if values else Summary(self.batches[0], self.batches[-1])
            yield from self._lift(name, 0, summary)
        self.batches, self.columns = [], {}

    def _lift(self, name: str, level: int, summary: Summary) -> Iterator[Complete]:
        yield Complete(name, level, (self.rows - 1) // width(level), summary)
        if level + 1 == LEVELS:
            return
        levels = self.open.setdefault(name, [[] for _ in range(LEVELS)])
        levels[level].append(summary)
        if self.rows % width(level + 1) == 0:
            merged = Summary.merged(levels[level])
            levels[level] = []
            yield from self._lift(name, level + 1, merged)


def width(level: int) -> int:
    """Rows in a bucket of `level`."""
    return int(BASE * FACTOR**level)


def merge_evenly(parts: Sequence[Summary], buckets: int) -> Iterator[Summary]:
    """Merge consecutive parts into at most `buckets` of nearly equal numbers of parts."""
    filled = [part for part in parts if part.count or part.nans]
    if len(filled) <= buckets:
        yield from filled
        return
    start = 0
    for bucket in range(buckets):
        end = (bucket + 1) * len(filled) // buckets
        group = filled[start:end]
        yield group[0] if len(group) == 1 else Summary.merged(group)
        start = end


class Tails:
    """Remembers the open ends of the series that were written last; those of a failed transaction are forgotten."""

    def __init__(self) -> None:
        self._tails: OrderedDict[Key, Tail] = OrderedDict()
        self._changed: set[Key] = set()

    def get(self, key: Key) -> Tail | None:
        """Return the tail for changing it in this transaction, None if it is not remembered."""
        tail = self._tails.get(key)
        if tail is not None:
            self._tails.move_to_end(key)
            self._changed.add(key)
        return tail

    def put(self, key: Key, tail: Tail) -> None:
        """Remember a tail that was found again from the store."""
        self._tails[key] = tail
        self._changed.add(key)

    def forget_changed(self) -> None:
        """The transaction failed: what it changed is not so."""
        for key in self._changed:
            self._tails.pop(key, None)
        self._changed.clear()

    def keep_changed(self) -> None:
        """The transaction is committed."""
        self._changed.clear()
        while len(self._tails) > KEPT_TAILS:
            self._tails.popitem(last=False)
