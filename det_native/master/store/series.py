"""A series down-sampled for a plot: the buckets kept on ingestion, and what is still open from the level below."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, func, select

from det_native.master.store import trials as trial_store
from det_native.master.store.metrics import SUMMARY_COLUMNS, Segment, last_row, segments, summary_of
from det_native.master.store.pyramid import BASE, LEVELS, Summary, merge_evenly, width
from det_native.master.store.tables import buckets, metrics, runs
from det_native.schema.numbers import number
from det_native.schema.rest import MetricCurve, MetricSeries
from det_native.schema.states import MetricKind

# A series of fewer rows than this many times the wanted buckets is read row by row, so that no reader gets much fewer
# buckets than wanted.
ROWS_PER_BUCKET = BASE // 2

# All curves of an experiment in one answer have so many points, some 50 bytes each; but every curve has this many.
MOST_POINTS = 30_000
LEAST_POINTS = 30
_LOOKED_AT = 3

# The trial, the kind, the one name that is wanted or None, and how many points.
Wanted = tuple[int, MetricKind, str | None, int]
Parts = dict[str, list[Summary]]
Points = tuple[list[int], list[float | None], list[float | None], list[float | None]]


def read(
    connection: Connection, trial_id: int, kind: MetricKind, name: str, *, points: int, owner: str | None = None
) -> MetricSeries:
    """Return at most `points` buckets with middle batch, minimum, maximum and mean; the extremes are exact.

    Raises
    ------
    NotFoundError
        If there is no such trial.
    """
    trial_store.get(connection, trial_id, owner)
    parts = _parts(connection, trial_id, kind, name, points).get(name, [])
    batch, minimum, maximum, mean = _points(parts, points)
    return MetricSeries(name=name, batch=batch, minimum=minimum, maximum=maximum, mean=mean)


def curves(
    connection: Connection, trial_id: int, kinds: Iterable[MetricKind], *, points: int, name: str | None = None
) -> list[MetricCurve]:
    """Return what :func:`read` returns, of every metric of these kinds by name; only of `name` if it is given."""
    found = []
    for kind in kinds:
        newest = last_row(connection, trial_id, kind)
        for metric, parts in sorted(_parts(connection, trial_id, kind, name, points).items()):
            batch, minimum, maximum, mean = _points(parts, points)
            if batch:
                curve = MetricCurve(
                    trial_id=trial_id, kind=kind, name=metric, batch=batch, minimum=minimum, maximum=maximum, mean=mean
                )
                curve.last = number(newest.get(metric))
                found.append(curve)
    return found


def curves_of_many(
    connection: Connection, trial_ids: Sequence[int], kinds: Sequence[MetricKind], *, points: int, name: str | None
) -> list[MetricCurve]:
    """Return :func:`curves` of several trials, oldest first, with fewer points each where there would be very many."""
    # Trials of an experiment report alike, unless they fail early.
    oldest = (curves(connection, trial_id, kinds, points=1, name=name) for trial_id in trial_ids[:_LOOKED_AT])
    each = max((len(found) for found in oldest), default=0)
    fair = MOST_POINTS // max(1, each * len(trial_ids))
    points = min(points, max(fair, LEAST_POINTS))
    return [curve for trial_id in trial_ids for curve in curves(connection, trial_id, kinds, points=points, name=name)]


def _points(parts: Iterable[Summary], points: int) -> Points:
    batch: list[int] = []
    minimum: list[float | None] = []
    maximum: list[float | None] = []
    mean: list[float | None] = []
    for summary in merge_evenly(list(parts), points):
        # Not at its end: buckets are not equally wide, and a curve that falls would have steps.
        batch.append((summary.first_batch + summary.last_batch) // 2)
        minimum.append(summary.minimum if summary.count else None)
        maximum.append(summary.maximum if summary.count else None)
        mean.append(summary.mean)
    return batch, minimum, maximum, mean


def _parts(connection: Connection, trial_id: int, kind: MetricKind, name: str | None, points: int) -> Parts:
    """Return by name the summaries that cover what is shown, at least `points` of them where there are so many rows."""
    shown = segments(connection, trial_id, kind)
    level = _level(_count(connection, trial_id, kind, shown), points)
    parts: Parts = {}
    for segment in shown:
        _cover(connection, (trial_id, kind, name, points), segment, level, parts)
    return parts


def _level(rows: int, points: int) -> int:
    """Return the finest level with at most `points` buckets for so many rows; -1 for the rows themselves."""
    if rows < points * ROWS_PER_BUCKET:
        return -1
    return next((level for level in range(LEVELS) if rows <= points * width(level)), LEVELS - 1)


def _count(connection: Connection, trial_id: int, kind: MetricKind, shown: list[Segment]) -> int:
    """Return how many rows are shown, at most: of a run that another one took over from, no more than its batches."""
    rows = runs.c.training_rows if kind is MetricKind.TRAINING else runs.c.validation_rows
    query = select(runs.c.number, rows).where(runs.c.trial_id == trial_id)
    stored = {row[0]: int(row[1]) for row in connection.execute(query)}
    total = 0
    for segment in shown:
        count = stored.get(segment.run, 0)
        total += count if segment.last is None else min(count, segment.last - segment.first + 1)
    return total


def _cover(connection: Connection, wanted: Wanted, segment: Segment, level: int, parts: Parts) -> None:
    """Add buckets of `level`, then of the levels below for the end that fills none, then rows.

    A name that has come by some complete bucket is in every later one of that level, so all names end at the same row.
    """
    trial_id, kind, name, _ = wanted
    names = [name] if name is not None else _names(connection, trial_id, kind, segment.run) if level >= 0 else []
    position = 0
    while level >= 0 and names:
        if segment.last is None or segment.last - segment.first + 1 >= width(level):
            through, position = _add_buckets(connection, wanted, segment, level, names, position, parts)
            segment = Segment(segment.run, through + 1, segment.last)
            if segment.last is not None and segment.first > segment.last:
                return
        level -= 1
        position *= 2
    _add_rows(connection, wanted, segment, parts)


def _names(connection: Connection, trial_id: int, kind: MetricKind, run: int) -> list[str]:
    """Return the metrics that have buckets: by the key's order, one look for each, however many buckets they have."""
    named = select(func.min(buckets.c.name)).where(
        buckets.c.trial_id == trial_id, buckets.c.run == run, buckets.c.kind == kind.value
    )
    names: list[str] = []
    name = connection.execute(named).scalar()
    while name is not None:
        names.append(name)
        name = connection.execute(named.where(buckets.c.name > name)).scalar()
    return names


def _add_buckets(
    connection: Connection,
    wanted: Wanted,
    segment: Segment,
    level: int,
    names: Sequence[str],
    position: int,
    parts: Parts,
) -> tuple[int, int]:
    """Add the buckets of a level from `position` on; return the batch before the rest, and the position of that."""
    query = (
        select(buckets.c.name, buckets.c.position, *SUMMARY_COLUMNS)
        .where(
            buckets.c.trial_id == wanted[0],
            buckets.c.run == segment.run,
            buckets.c.kind == wanted[1].value,
            buckets.c.name.in_(names),  # without it, and the position, all levels would be looked through
            buckets.c.level == level,
            buckets.c.position >= position,
            buckets.c.first_batch >= segment.first,
        )
        .order_by(buckets.c.name, buckets.c.position)
    )
    if segment.last is not None:
        query = query.where(buckets.c.last_batch <= segment.last)
    through = segment.first - 1
    for row in connection.execute(query):
        summary = summary_of(row[2:])
        parts.setdefault(row.name, []).append(summary)
        through, position = max(through, summary.last_batch), max(position, row.position + 1)
    return through, position


def _add_rows(connection: Connection, wanted: Wanted, segment: Segment, parts: Parts) -> None:
    trial_id, kind, name, points = wanted
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
    columns: dict[str, tuple[list[int], list[float | None]]] = {}
    texts = json.loads("[" + ",".join([row.values for row in found]) + "]")
    for row, values in zip(found, texts, strict=True):
        batch = row.batch
        for metric in values if name is None else [name]:
            value = number(values.get(metric))
            if value is not None:
                column = columns.get(metric) or columns.setdefault(metric, ([], []))
                column[0].append(batch)
                column[1].append(value)
    for metric, (batches, numbers) in columns.items():
        # Not one by one where they are merged anyhow: a reader waits for this.
        step = max(len(batches) // (2 * points), 1)
        starts = range(0, len(batches), step)
        parts.setdefault(metric, []).extend(
            Summary.of(batches[at : at + step], numbers[at : at + step]) for at in starts
        )
