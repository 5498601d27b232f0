"""Metrics rows: written once, shown by the rule for restarted trials.

A run that continues from batch *b* owns the batches after *b*. Of a row at *b* itself (a validation that the run
repeats, say) the newest run's is shown.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, insert, or_, select
from sqlalchemy.dialects import postgresql, sqlite

from det_native.master.store import trials as trial_store
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import number, row_texts
from det_native.master.store.pyramid import FACTOR, LEVELS, Complete, Key, Summary, Tail, width
from det_native.master.store.tables import buckets, metrics, runs, series
from det_native.schema.rest import MetricRow, MetricsReport
from det_native.schema.states import MetricKind

PAGE = 20_000


@dataclass(frozen=True)
class Segment:
    """Batches of one run that are shown, both ends included; `last` is None for an open end."""

    run: int
    first: int
    last: int | None


def add(transaction: Transaction, trial_id: int, run: int, report: MetricsReport) -> dict[str, Any] | None:
    """Store the rows of a report that are later than all rows before, and the buckets they complete.

    Returns
    -------
    dict or None
        Data of the event that tells of the rows, None if there was nothing new.
    """
    key = Key(trial_id, run, report.kind.value)
    tail = transaction.tails.get(key)
    if tail is None:
        tail = _find_tail(transaction.connection, key)
        transaction.tails.put(key, tail)
    start = bisect_right(report.batches, tail.last_batch)
    batches = report.batches[start:]
    if not batches:
        return None
    columns = {name: values[start:] for name, values in report.metrics.items()}
    texts = row_texts(columns, len(batches))
    common = {"trial_id": trial_id, "run": run, "kind": key.kind}
    first = tail.rows == 0
    complete = tail.extend(batches, columns)
    rows = [{**common, "batch": batch, "values": text} for batch, text in zip(batches, texts, strict=True)]
    if first:
        _open_series(transaction, common)
    transaction.connection.execute(insert(metrics), rows)
    if complete:
        transaction.connection.execute(insert(buckets), [{**common, **_bucket_row(bucket)} for bucket in complete])
    transaction.connection.execute(
        series.update()
        .where(series.c.trial_id == trial_id, series.c.run == run, series.c.kind == key.kind)
        .values(rows=tail.rows, last_batch=tail.last_batch)
    )
    return {"kind": key.kind, "batch": batches[-1], "metrics": json.loads(texts[-1])}


def segments(connection: Connection, trial_id: int, kind: MetricKind) -> list[Segment]:
    """Return which batches of which run are shown, in order of batches."""
    query = select(runs.c.number, runs.c.start_batch).where(runs.c.trial_id == trial_id).order_by(runs.c.number)
    starts = [(row.number, row.start_batch) for row in connection.execute(query)]
    found: list[Segment] = []
    last: int | None = None
    for run, start in reversed(starts):
        if last is None or start <= last:
            found.append(Segment(run, start, last))
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


def rows_json(
    connection: Connection, trial_id: int, kind: MetricKind, *, owner: str, after_batch: int, limit: int
) -> str:
    """Return what :func:`rows` returns as JSON text, without parsing what is stored."""
    found = stored_rows(connection, trial_id, kind, owner=owner, after_batch=after_batch, limit=limit)
    return "[" + ",".join(f'{{"batch":{row.batch},"metrics":{row.values}}}' for row in found) + "]"


def stored_rows(
    connection: Connection,
    trial_id: int,
    kind: MetricKind,
    *,
    owner: str | None = None,
    after_batch: int = -1,
    limit: int | None = None,
) -> Iterator[Row[Any]]:
    """Yield ``(batch, values)`` of the rows that are shown, in order of batches; `values` is JSON text."""
    trial_store.get(connection, trial_id, owner)
    left = limit
    for segment in segments(connection, trial_id, kind):
        if left == 0:
            return
        found = connection.execute(
            select(metrics.c.batch, metrics.c["values"].label("values"))
            .where(*_inside(trial_id, kind, segment), metrics.c.batch > after_batch)
            .order_by(metrics.c.batch)
            .limit(left)
        ).all()
        if left is not None:
            left -= len(found)
        yield from found


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


def _open_series(transaction: Transaction, common: dict[str, Any]) -> None:
    dialect = postgresql if transaction.connection.dialect.name == "postgresql" else sqlite
    row = {**common, "rows": 0, "last_batch": -1}
    transaction.connection.execute(dialect.insert(series).values(row).on_conflict_do_nothing())


def _bucket_row(bucket: Complete) -> dict[str, Any]:
    summary = bucket.summary
    return {
        "name": bucket.name,
        "level": bucket.level,
        "position": bucket.position,
        "first_batch": summary.first_batch,
        "last_batch": summary.last_batch,
        "count": summary.count,
        "nans": summary.nans,
        "total": summary.total if summary.total == summary.total else None,
        "minimum": summary.minimum if summary.count else None,
        "maximum": summary.maximum if summary.count else None,
    }


def summary_of(row: Row[Any]) -> Summary:
    """Return a stored bucket as a summary."""
    summary = Summary(row.first_batch, row.last_batch, row.count, row.nans)
    if row.count:
        summary.total = float("nan") if row.total is None else row.total
        summary.minimum, summary.maximum = row.minimum, row.maximum
    return summary


def _find_tail(connection: Connection, key: Key) -> Tail:
    """Find the open end of a series again from its last rows and buckets."""
    mine = (series.c.trial_id == key.trial_id, series.c.run == key.run, series.c.kind == key.kind)
    known = connection.execute(select(series.c.rows, series.c.last_batch).where(*mine)).first()
    if known is None or known.rows == 0:
        return Tail()
    tail = Tail(known.rows, known.last_batch)
    for name, level, summary in _open_buckets(connection, key, known.rows):
        tail.open.setdefault(name, [[] for _ in range(LEVELS)])[level].append(summary)
    tail.reopen(*_open_rows(connection, key, known.rows % width(0)))
    return tail


def _open_rows(connection: Connection, key: Key, count: int) -> tuple[list[int], list[dict[str, float | None]]]:
    query = (
        select(metrics.c.batch, metrics.c["values"].label("values"))
        .where(metrics.c.trial_id == key.trial_id, metrics.c.run == key.run, metrics.c.kind == key.kind)
        .order_by(metrics.c.batch.desc())
        .limit(count)
    )
    found = connection.execute(query).all()[::-1] if count else []
    parsed = [{name: number(value) for name, value in json.loads(row.values).items()} for row in found]
    return [row.batch for row in found], parsed


def _open_buckets(connection: Connection, key: Key, rows_done: int) -> Iterator[tuple[str, int, Summary]]:
    open_ones = or_(
        *(
            and_(buckets.c.level == level, buckets.c.position >= rows_done // width(level + 1) * FACTOR)
            for level in range(LEVELS - 1)
        )
    )
    query = (
        select(buckets)
        .where(buckets.c.trial_id == key.trial_id, buckets.c.run == key.run, buckets.c.kind == key.kind, open_ones)
        .order_by(buckets.c.name, buckets.c.level, buckets.c.position)
    )
    for row in connection.execute(query):
        yield row.name, row.level, summary_of(row)
