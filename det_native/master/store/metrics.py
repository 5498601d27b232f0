"""Metrics rows: written once, shown by the rule for restarted trials.

A run that continues from batch *b* owns the batches after *b*. Of a row at *b* itself (a validation that the run
repeats, say) the newest run's is shown.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, or_, select

from det_native.master.store import trials as trial_store
from det_native.master.store.bulk import bulk_insert
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import row_texts
from det_native.master.store.pyramid import BASE, LEVELS, Complete, Key, Summary, Tail
from det_native.master.store.tables import buckets, metrics, runs
from det_native.schema.numbers import number
from det_native.schema.rest import MetricRow, MetricsReport
from det_native.schema.states import MetricKind

if TYPE_CHECKING:
    from det_native.master.store.tables import AnyRow


# Characters of a row that the event of it repeats; many events are kept, and in memory too.
LARGEST_HINT = 16_384
# Characters of rows that are read at a time, and that one answer has (with one chunk more at most).
_CHUNK = 4 << 20
LARGEST_ANSWER = 32 << 20
_FIRST_ROWS = 100


@dataclass(frozen=True)
class Segment:
    """Batches of one run that are shown, both ends included; `last` is None for an open end."""

    run: int
    first: int
    last: int | None


def add(
    transaction: Transaction, trial_id: int, run: int, stored: tuple[int, int], report: MetricsReport
) -> dict[str, Any] | None:
    """Store the rows of a report that are later than all rows before, and the buckets they complete.

    Parameters
    ----------
    stored : (int, int)
        Rows of this run and kind that are stored, and the batch of the last one.

    Returns
    -------
    dict or None
        Data of the event that tells of the rows, with ``rows`` new ones; None if there was nothing new.
    """
    key = Key(trial_id, run, report.kind.value)
    tail = transaction.tails.get(key)
    if tail is None:
        tail = _find_tail(transaction.connection, key, *stored)
        transaction.tails.put(key, tail)
    start = bisect_right(report.batches, tail.last_batch)
    batches = report.batches[start:]
    if not batches:
        return None
    columns: dict[str, Sequence[float | None]] = {name: values[start:] for name, values in report.metrics.items()}
    others: dict[str, Sequence[Any]] = {name: values[start:] for name, values in report.values.items()}
    texts = row_texts(columns, len(batches), others)
    rows = [(*key, batch, text) for batch, text in zip(batches, texts, strict=True)]
    bulk_insert(transaction.connection, metrics, rows)
    complete = [_bucket_row(key, bucket) for bucket in tail.extend(batches, columns)]
    bulk_insert(transaction.connection, buckets, complete)
    last = json.loads(texts[-1]) if len(texts[-1]) <= LARGEST_HINT else {}
    return {"kind": key.kind, "batch": batches[-1], "metrics": last, "rows": len(batches)}


def segments(connection: Connection, trial_id: int, kind: MetricKind) -> list[Segment]:
    """Return which batches of which run are shown, in order of batches."""
    query = select(runs.c.number, runs.c.start_batch).where(runs.c.trial_id == trial_id).order_by(runs.c.number)
    starts = [(row.number, row.start_batch) for row in connection.execute(query)]
    return segments_of(connection, trial_id, kind, starts)


def segments_of(
    connection: Connection, trial_id: int, kind: MetricKind, starts: Sequence[tuple[int, int]]
) -> list[Segment]:
    """Return :func:`segments` of runs, oldest first, of which number and first batch are known."""
    found: list[Segment] = []
    last: int | None = None
    for run, start in reversed(starts):
        if last is None or start <= last:
            found.append(Segment(run, start, last))
        if run == starts[0][0]:
            break
        if last is None or start <= last:
            last = start - 1 if _has_row(connection, trial_id, run, kind, start) else start
        if last < 0:
            break
    return found[::-1]


def rows(
    connection: Connection,
    trial_id: int,
    kind: MetricKind,
    *,
    owner: str | None = None,
    after_batch: int = -1,
    limit: int | None = None,
) -> list[MetricRow]:
    """Return the rows that are shown, in order of batches."""
    return [
        MetricRow(batch=row.batch, metrics=json.loads(row.values))
        for row in stored_rows(connection, trial_id, kind, owner=owner, after_batch=after_batch, limit=limit)
    ]


def last_row(connection: Connection, trial_id: int, kind: MetricKind) -> dict[str, Any]:
    """Return the metrics of the last row that is shown; nothing if there is none."""
    for segment in reversed(segments(connection, trial_id, kind)):
        query = (
            select(metrics.c["values"])
            .where(*_inside(trial_id, kind, segment))
            .order_by(metrics.c.batch.desc())
            .limit(1)
        )
        text = connection.execute(query).scalar()
        if text is not None:
            found: dict[str, Any] = json.loads(text)
            return found
    return {}


def newest_rows(connection: Connection, trial_id: int, kind: MetricKind) -> Iterator[AnyRow]:
    """Yield ``(batch, values)`` of the rows that are shown, newest first; `values` is JSON text."""
    for segment in reversed(segments(connection, trial_id, kind)):
        before = None
        while True:
            query = select(metrics.c.batch, metrics.c["values"].label("values")).where(
                *_inside(trial_id, kind, segment), *(() if before is None else (metrics.c.batch < before,))
            )
            found = connection.execute(query.order_by(metrics.c.batch.desc()).limit(_FIRST_ROWS)).all()
            yield from found
            if len(found) < _FIRST_ROWS:
                break
            before = found[-1].batch


def rows_json(
    connection: Connection, trial_id: int, kind: MetricKind, *, owner: str, after_batch: int, limit: int
) -> str:
    """Return what :func:`rows` returns as JSON text, without parsing what is stored; of very long rows fewer."""
    texts: list[str] = []
    length = 0
    for row in stored_rows(connection, trial_id, kind, owner=owner, after_batch=after_batch, limit=limit):
        texts.append(f'{{"batch":{row.batch},"metrics":{row.values}}}')
        length += len(row.values)
        if length > LARGEST_ANSWER:
            break
    return "[" + ",".join(texts) + "]"


def stored_rows(
    connection: Connection,
    trial_id: int,
    kind: MetricKind,
    *,
    owner: str | None = None,
    after_batch: int = -1,
    limit: int | None = None,
) -> Iterator[AnyRow]:
    """Yield ``(batch, values)`` of the rows that are shown, in order of batches; `values` is JSON text.

    Rows are read a few megabytes at a time, however long they are.
    """
    trial_store.get(connection, trial_id, owner)
    left = limit
    for segment in segments(connection, trial_id, kind):
        after, most = after_batch, _FIRST_ROWS
        while left != 0:
            found = connection.execute(
                select(metrics.c.batch, metrics.c["values"].label("values"))
                .where(*_inside(trial_id, kind, segment), metrics.c.batch > after)
                .order_by(metrics.c.batch)
                .limit(most if left is None else min(most, left))
            ).all()
            yield from found
            if left is not None:
                left -= len(found)
            if len(found) < most:
                break
            after = found[-1].batch
            most = max(1, _CHUNK * len(found) // sum(len(row.values) for row in found))


def value_at(connection: Connection, trial_id: int, batch: int) -> dict[str, Any]:
    """Return the validation metrics shown at a batch, ``{}`` if there was no validation."""
    found = list(stored_rows(connection, trial_id, MetricKind.VALIDATION, after_batch=batch - 1, limit=1))
    return json.loads(found[0].values) if found and found[0].batch == batch else {}


def validations(connection: Connection, trial_id: int, metric: str) -> list[tuple[int, float]]:
    """Return ``(batch, value)`` of one metric in the validations that are shown, in order of batches."""
    found = []
    for row in stored_rows(connection, trial_id, MetricKind.VALIDATION):
        value = number(json.loads(row.values).get(metric))
        if value is not None:
            found.append((int(row.batch), value))
    return found


def _inside(trial_id: int, kind: MetricKind, segment: Segment) -> list[ColumnElement[bool]]:
    conditions = [
        metrics.c.trial_id == trial_id,
        metrics.c.run == segment.run,
        metrics.c.kind == kind.value,
        metrics.c.batch >= segment.first,
    ]
    if segment.last is not None:
        conditions.append(metrics.c.batch <= segment.last)
    return conditions


def _has_row(connection: Connection, trial_id: int, run: int, kind: MetricKind, batch: int) -> bool:
    query = select(metrics.c.batch).where(*_inside(trial_id, kind, Segment(run, batch, batch)))
    return connection.execute(query).first() is not None


def _bucket_row(key: Key, bucket: Complete) -> tuple[Any, ...]:
    name, level, position, summary = bucket
    if not summary.count:
        values: tuple[float | None, float | None, float | None] = (None, None, None)
    else:
        total = summary.total if summary.total == summary.total else None
        values = (total, summary.minimum, summary.maximum)
    extent = (summary.first_batch, summary.last_batch, summary.count, summary.nans)
    return (*key, name, level, position, *extent, *values)


SUMMARY_COLUMNS = (
    buckets.c.first_batch,
    buckets.c.last_batch,
    buckets.c["count"],
    buckets.c.nans,
    buckets.c.total,
    buckets.c.minimum,
    buckets.c.maximum,
)


def summary_of(stored: Sequence[Any]) -> Summary:
    """Return the :data:`SUMMARY_COLUMNS` of a bucket as a summary."""
    first_batch, last_batch, count, nans, total, minimum, maximum = stored
    if not count:
        return Summary(first_batch, last_batch, 0, nans)
    return Summary(first_batch, last_batch, count, nans, float("nan") if total is None else total, minimum, maximum)


def _find_tail(connection: Connection, key: Key, rows_done: int, last_batch: int) -> Tail:
    """Find the open end of a series again from its last rows and buckets."""
    tail = Tail(rows_done, last_batch)
    if rows_done:
        tail.reopen(*_open_rows(connection, key, rows_done % BASE), _open_halves(connection, key, rows_done // BASE))
    return tail


def _open_rows(connection: Connection, key: Key, count: int) -> tuple[list[int], list[dict[str, float | None]]]:
    query = (
        select(metrics.c.batch, metrics.c["values"].label("values"))
        .where(metrics.c.trial_id == key.trial_id, metrics.c.run == key.run, metrics.c.kind == key.kind)
        .order_by(metrics.c.batch.desc())
        .limit(count)
    )
    found = connection.execute(query).all()[::-1] if count else []
    parsed: list[dict[str, float | None]] = [
        {name: value for name, given in json.loads(row.values).items() if (value := number(given)) is not None}
        for row in found
    ]
    return [row.batch for row in found], parsed


def _open_halves(connection: Connection, key: Key, filled: int) -> dict[str, dict[int, Summary]]:
    """Return by name and level the bucket that is complete while the one beside it is not."""
    positions = {level: (filled >> level) - 1 for level in range(LEVELS) if (filled >> level) % 2}
    if not positions:
        return {}
    halves: dict[str, dict[int, Summary]] = {}
    query = select(buckets.c.name, buckets.c.level, *SUMMARY_COLUMNS).where(
        buckets.c.trial_id == key.trial_id,
        buckets.c.run == key.run,
        buckets.c.kind == key.kind,
        or_(*((buckets.c.level == level) & (buckets.c.position == at) for level, at in positions.items())),
    )
    for row in connection.execute(query):
        halves.setdefault(row.name, {})[row.level] = summary_of(row[2:])
    return {name: halves.get(name, {}) for name in _names(connection, key, filled - 1)}


def _names(connection: Connection, key: Key, position: int) -> list[str]:
    query = select(buckets.c.name).where(
        buckets.c.trial_id == key.trial_id,
        buckets.c.run == key.run,
        buckets.c.kind == key.kind,
        buckets.c.level == 0,
        buckets.c.position == position,
    )
    return list(connection.execute(query).scalars())
