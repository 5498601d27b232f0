"""A series down-sampled for a plot: the buckets kept on ingestion, and what is still open from the level below."""

from __future__ import annotations

import json

from sqlalchemy import Connection, func, select

from det_native.master.store import trials as trial_store
from det_native.master.store.encoding import number
from det_native.master.store.metrics import SUMMARY_COLUMNS, Segment, segments, summary_of
from det_native.master.store.pyramid import BASE, LEVELS, Summary, merge_evenly, width
from det_native.master.store.tables import buckets, metrics, runs
from det_native.schema.rest import MetricSeries
from det_native.schema.states import MetricKind

# A series of fewer rows than this many times the wanted buckets is read row by row, so that no reader gets much fewer
# buckets than wanted.
ROWS_PER_BUCKET = BASE // 2


def read(
    connection: Connection, trial_id: int, kind: MetricKind, name: str, *, points: int, owner: str | None = None
) -> MetricSeries:
    """Return at most `points` buckets with last batch, minimum, maximum and mean; the extremes are exact.

    Raises
    ------
    NotFoundError
        If there is no such trial.
    """
    trial_store.get(connection, trial_id, owner)
    shown = segments(connection, trial_id, kind)
    level = _level(_count(connection, trial_id, kind, shown), points)
    parts: list[Summary] = []
    for segment in shown:
        parts.extend(_cover(connection, trial_id, kind, name, segment, level))
    result = MetricSeries(name=name, batch=[], minimum=[], maximum=[], mean=[])
    for summary in merge_evenly(parts, points):
        result.batch.append(summary.last_batch)
        result.minimum.append(summary.minimum if summary.count else None)
        result.maximum.append(summary.maximum if summary.count else None)
        result.mean.append(summary.mean)
    return result


def _level(rows: int, points: int) -> int:
    """Return the finest level with at most `points` buckets for so many rows; -1 for the rows themselves."""
    if rows < points * ROWS_PER_BUCKET:
        return -1
    return next((level for level in range(LEVELS) if rows <= points * width(level)), LEVELS - 1)


def _count(connection: Connection, trial_id: int, kind: MetricKind, shown: list[Segment]) -> int:
    rows = runs.c.training_rows if kind is MetricKind.TRAINING else runs.c.validation_rows
    whole = [segment.run for segment in shown if segment.last is None or segment.first < segment.last]
    query = select(func.sum(rows)).where(runs.c.trial_id == trial_id, runs.c.number.in_(whole))
    return int(connection.execute(query).scalar() or 0)


def _cover(
    connection: Connection, trial_id: int, kind: MetricKind, name: str, segment: Segment, level: int
) -> list[Summary]:
    """Return buckets of `level`, then of the levels below for the end that fills none, then rows."""
    while segment.last is not None and level >= 0 and segment.last - segment.first + 1 < width(level):
        level -= 1
    if level < 0:
        return _rows(connection, trial_id, kind, name, segment)
    query = (
        select(*SUMMARY_COLUMNS)
        .where(
            buckets.c.trial_id == trial_id,
            buckets.c.run == segment.run,
            buckets.c.kind == kind.value,
            buckets.c.name == name,
            buckets.c.level == level,
            buckets.c.first_batch >= segment.first,
        )
        .order_by(buckets.c.position)
    )
    if segment.last is not None:
        query = query.where(buckets.c.last_batch <= segment.last)
    found = [summary_of(row) for row in connection.execute(query)]
    rest = Segment(segment.run, found[-1].last_batch + 1 if found else segment.first, segment.last)
    if rest.last is None or rest.first <= rest.last:
        found += _cover(connection, trial_id, kind, name, rest, level - 1)
    return found


def _rows(connection: Connection, trial_id: int, kind: MetricKind, name: str, segment: Segment) -> list[Summary]:
    query = (
        select(metrics.c.batch, metrics.c["values"].label("values"))
        .where(
            metrics.c.trial_id == trial_id,
            metrics.c.run == segment.run,
            metrics.c.kind == kind.value,
            metrics.c.batch >= segment.first,
        )
        .order_by(metrics.c.batch)
    )
    if segment.last is not None:
        query = query.where(metrics.c.batch <= segment.last)
    found = connection.execute(query).all()
    values = json.loads("[" + ",".join([row.values for row in found]) + "]")
    return [
        Summary.of([row.batch], [value])
        for row, value in zip(found, (number(entry.get(name)) for entry in values), strict=True)
        if value is not None
    ]
