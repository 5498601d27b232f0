"""Complete buckets of a growing series, at several widths: pure arithmetic, no I/O.

A bucket of level 0 covers ``BASE`` consecutive rows of one run and kind, a bucket of the next level two buckets of the
one below. A bucket is handed out once, when it is complete; what is still open is found again from the rows and buckets
below it. So ingestion only ever inserts, and a reader needs at most one open bucket of every level.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

BASE = 16
LEVELS = 20
KEPT_TAILS = 4096


class Key(NamedTuple):
    """One run of a trial and one kind of metrics."""

    trial_id: int
    run: int
    kind: str


@dataclass(slots=True)
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
        numbers = [value for value in values if value is not None]
        present = len(numbers)
        total = sum(numbers)
        if total != total:
            numbers = [value for value in numbers if value == value]
            total = sum(numbers)
        if not numbers:
            return cls(batches[0], batches[-1], 0, present)
        return cls(batches[0], batches[-1], len(numbers), present - len(numbers), total, min(numbers), max(numbers))

    def followed_by(self, other: Summary) -> Summary:
        """Summarise this stretch and the next one as one."""
        return Summary(
            self.first_batch,
            other.last_batch,
            self.count + other.count,
            self.nans + other.nans,
            self.total + other.total,
            self.minimum if self.minimum <= other.minimum else other.minimum,
            self.maximum if self.maximum >= other.maximum else other.maximum,
        )

    @property
    def mean(self) -> float | None:
        """Mean of the numbers, None if there is none; where their sum is too large for a float, the middle."""
        if not self.count:
            return None
        mean = self.total / self.count
        if not math.isfinite(mean) and math.isfinite(self.minimum) and math.isfinite(self.maximum):
            return self.minimum / 2 + self.maximum / 2
        return mean


class Complete(NamedTuple):
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

    Attributes
    ----------
    summarised : float
        When the summary of the trial's metrics was last worked out, by the monotonic clock; 0 before that.
    """

    def __init__(self, rows: int = 0, last_batch: int = -1) -> None:
        self.rows = rows
        self.last_batch = last_batch
        self.summarised = 0.0
        self.batches: list[int] = []
        self.columns: dict[str, list[float | None]] = {}
        # Of every name, by level: the first half of the bucket of the next level.
        self.halves: dict[str, dict[int, Summary]] = {}

    def reopen(
        self, batches: Sequence[int], rows: Sequence[dict[str, float | None]], halves: dict[str, dict[int, Summary]]
    ) -> None:
        """Take up the rows after the last complete bucket of level 0, which are counted already, and open buckets."""
        self.batches = list(batches)
        names = sorted({name for row in rows for name in row})
        self.columns = {name: [row.get(name) for row in rows] for name in names}
        self.halves = halves

    def extend(self, batches: Sequence[int], columns: dict[str, Sequence[float | None]]) -> list[Complete]:
        """Add rows, which must be later than all before; return the buckets that they complete."""
        done: list[Complete] = []
        at = 0
        while at < len(batches):
            end = min(at + BASE - len(self.batches), len(batches))
            self._add(batches[at:end], {name: values[at:end] for name, values in columns.items()})
            at = end
            if len(self.batches) == BASE:
                self._close(done)
        return done

    def _add(self, batches: Sequence[int], columns: dict[str, Sequence[float | None]]) -> None:
        before = len(self.batches)
        self.batches.extend(batches)
        self.rows += len(batches)
        self.last_batch = batches[-1]
        for name, values in columns.items():
            column = self.columns.get(name)
            if column is None:
                column = self.columns[name] = [None] * before
            column.extend(values)
        if before:
            for name, column in self.columns.items():
                if name not in columns:
                    column.extend([None] * len(batches))

    def _close(self, done: list[Complete]) -> None:
        for name, values in self.columns.items():
            self._lift(name, Summary.of(self.batches, values), done)
        for name in self.halves.keys() - self.columns.keys():
            self._lift(name, Summary(self.batches[0], self.batches[-1]), done)
        self.batches, self.columns = [], {}

    def _lift(self, name: str, summary: Summary, done: list[Complete]) -> None:
        halves = self.halves.setdefault(name, {})
        filled = self.rows // BASE
        for level in range(LEVELS):
            done.append(Complete(name, level, filled - 1, summary))
            if filled % 2:
                halves[level] = summary
                return
            first = halves.pop(level, None)
            # A name that was not there in the first half starts here.
            summary = summary if first is None else first.followed_by(summary)
            filled //= 2


def width(level: int) -> int:
    """Rows in a bucket of `level`."""
    return BASE << level


def merge_evenly(parts: Sequence[Summary], buckets: int) -> Iterator[Summary]:
    """Merge consecutive parts into at most `buckets` of nearly equal numbers of parts; empty parts are left out."""
    filled = [part for part in parts if part.count or part.nans]
    if len(filled) <= buckets:
        yield from filled
        return
    start = 0
    for bucket in range(buckets):
        end = (bucket + 1) * len(filled) // buckets
        yield _merged(filled[start:end])
        start = end


def _merged(parts: Sequence[Summary]) -> Summary:
    return Summary(
        parts[0].first_batch,
        parts[-1].last_batch,
        sum([part.count for part in parts]),
        sum([part.nans for part in parts]),
        sum([part.total for part in parts]),
        min([part.minimum for part in parts]),
        max([part.maximum for part in parts]),
    )


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

    def drop(self, key: Key) -> None:
        """Forget a tail, whose rows have changed in the store."""
        self._tails.pop(key, None)

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
