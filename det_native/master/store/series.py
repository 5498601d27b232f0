"""A series down-sampled for a plot: the buckets kept on ingestion, and what is still open from the level below."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, tuple_

from det_native.errors import NotFoundError
from det_native.master.store.metrics import SUMMARY_COLUMNS, Segment, last_row, segments_of, summary_of
from det_native.master.store.pyramid import BASE, LEVELS, Summary, merge_evenly, width
from det_native.master.store.tables import buckets, experiments, metrics, runs, trials
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
# The first and the last batch of a stretch that is looked at.
Within = tuple[int, int]
# By number of run: the batch it began after, and how many rows it has.
Stored = dict[int, tuple[int, int]]

LAST_BATCH = 2**63 - 1

# Statements are made once: SQLAlchemy takes longer to make one than SQLite to answer it.
_RUNS = (
    select(runs.c.number, runs.c.start_batch, *(runs.c[f"{kind}_rows"].label(kind) for kind in MetricKind))
    .select_from(trials.join(experiments).outerjoin(runs, runs.c.trial_id == trials.c.id))
    .where(trials.c.id == bindparam("trial"))
    .order_by(runs.c.number)
)
_RUNS_OF_OWNER = _RUNS.where(experiments.c.owner == bindparam("owner"))
_OF_RUN = (
    buckets.c.trial_id == bindparam("trial"),
    buckets.c.run == bindparam("run"),
    buckets.c.kind == bindparam("kind"),
    buckets.c.name.in_(bindparam("names", expanding=True)),  # without it all levels would be looked through
    buckets.c.first_batch >= bindparam("first"),
)
_BUCKETS = (
    select(buckets.c.name, *SUMMARY_COLUMNS)
    .where(*_OF_RUN, buckets.c.level == bindparam("level"), buckets.c.position < bindparam("until"))
    .order_by(buckets.c.name, buckets.c.position)
)
_BUCKETS_WITHIN = _BUCKETS.where(buckets.c.last_batch >= bindparam("from"), buckets.c.first_batch <= bindparam("to"))
_ALONE = (
    select(buckets.c.name, *SUMMARY_COLUMNS)
    .where(
        *_OF_RUN,
        # SQLite finds pairs by its index only through one list for each column.
        buckets.c.level.in_(bindparam("levels", expanding=True)),
        buckets.c.position.in_(bindparam("positions", expanding=True)),
        tuple_(buckets.c.level, buckets.c.position).in_(bindparam("places", expanding=True)),
    )
    .order_by(buckets.c.name, buckets.c.level.desc())
)
_ROWS_OF_RUN = (
    metrics.c.trial_id == bindparam("trial"),
    metrics.c.run == bindparam("run"),
    metrics.c.kind == bindparam("kind"),
)
_LATER = select(func.count()).select_from(metrics).where(*_ROWS_OF_RUN, metrics.c.batch > bindparam("last"))
_FEW = select(func.count()).select_from(
    select(metrics.c.batch)
    .where(*_ROWS_OF_RUN, metrics.c.batch >= bindparam("first"), metrics.c.batch <= bindparam("last"))
    .limit(bindparam("most"))
    .subquery()
)
_NEWEST = select(func.max(metrics.c.batch)).where(*_ROWS_OF_RUN)
_LAST_ROWS = (
    select(metrics.c.batch, metrics.c["values"])
    .where(*_ROWS_OF_RUN, metrics.c.batch >= bindparam("first"), metrics.c.batch <= bindparam("last"))
    .order_by(metrics.c.batch.desc())
    .limit(bindparam("rows"))
)


def read(
    connection: Connection, trial_id: int, kind: MetricKind, name: str, *, points: int, owner: str | None = None
) -> MetricSeries:
    """Return at most `points` buckets with middle batch, minimum, maximum and mean; the extremes are exact.

    Raises
    ------
    NotFoundError
        If there is no such trial.
    """
    stored = _stored(connection, trial_id, kind, owner)
    parts = _parts(connection, trial_id, kind, name, points, stored).get(name, [])
    batch, minimum, maximum, mean = _points(parts, points)
    return MetricSeries(name=name, batch=batch, minimum=minimum, maximum=maximum, mean=mean)


def curves(
    connection: Connection,
    trial_id: int,
    kinds: Iterable[MetricKind],
    *,
    points: int,
    name: str | None = None,
    within: Within | None = None,
) -> list[MetricCurve]:
    """Return what :func:`read` returns, of every metric of these kinds by name; only of `name` if it is given.

    Parameters
    ----------
    within : (int, int), optional
        Only batches from the first to the last, both included: the shorter the stretch, the finer its points. A bucket
        that reaches beyond an end of it is there.
    """
    found = []
    for kind in kinds:
        stored = _stored(connection, trial_id, kind)
        if not any(rows for _, rows in stored.values()):
            continue
        newest = last_row(connection, trial_id, kind)
        for metric, parts in sorted(_parts(connection, trial_id, kind, name, points, stored, within).items()):
            batch, minimum, maximum, mean = _points(parts, points)
            if batch:
                curve = MetricCurve(
                    trial_id=trial_id, kind=kind, name=metric, batch=batch, minimum=minimum, maximum=maximum, mean=mean
                )
                curve.last = number(newest.get(metric))
                found.append(curve)
    return found


def curves_of_many(
    connection: Connection,
    trial_ids: Sequence[int],
    kinds: Sequence[MetricKind],
    *,
    points: int,
    name: str | None,
    within: Within | None = None,
) -> list[MetricCurve]:
    """Return :func:`curves` of several trials, oldest first, with fewer points each where there would be very many."""
    # Trials of an experiment report alike, unless they fail early.
    oldest = (curves(connection, trial_id, kinds, points=1, name=name) for trial_id in trial_ids[:_LOOKED_AT])
    each = max((len(found) for found in oldest), default=0)
    fair = MOST_POINTS // max(1, each * len(trial_ids))
    points = min(points, max(fair, LEAST_POINTS))
    return [
        curve
        for trial_id in trial_ids
        for curve in curves(connection, trial_id, kinds, points=points, name=name, within=within)
    ]


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


def _parts(
    connection: Connection,
    trial_id: int,
    kind: MetricKind,
    name: str | None,
    points: int,
    stored: Stored,
    within: Within | None = None,
) -> Parts:
    """Return by name the summaries that cover what is shown, at least `points` of them where there are so many rows."""
    shown = [
        (segment, _rows_in(connection, trial_id, kind, segment, stored[segment.run][1]))
        for segment in segments_of(connection, trial_id, kind, [(run, start) for run, (start, _) in stored.items()])
    ]
    if within is not None:
        return _stretch(connection, (trial_id, kind, name, points), shown, within)
    level = _level(sum(rows for _, rows in shown), points)
    parts: Parts = {}
    for segment, rows in shown:
        if rows:
            _cover(connection, (trial_id, kind, name, points), segment, rows, level, parts)
    return parts


def _stretch(connection: Connection, wanted: Wanted, shown: Sequence[tuple[Segment, int]], within: Within) -> Parts:
    """Return what :func:`_parts` returns, of a stretch of batches: its rows if they are few, else finer buckets."""
    trial_id, kind, _, points = wanted
    first, last = within
    cut = []
    for segment, rows in shown:
        end = last if segment.last is None else min(segment.last, last)
        if rows and max(segment.first, first) <= end:
            cut.append(Segment(segment.run, max(segment.first, first), end))
    values: dict[str, Any] = {"trial": trial_id, "kind": kind.value, "most": points * ROWS_PER_BUCKET}
    ends = [values | {"run": part.run, "first": part.first, "last": part.last} for part in cut]
    counts = [int(connection.execute(_FEW, end).scalar_one()) for end in ends]
    parts: Parts = {}
    if sum(counts) < points * ROWS_PER_BUCKET:
        for part, rows in zip(cut, counts, strict=True):
            if rows:
                _add_rows(connection, wanted, part, rows, parts)
        return parts
    level = _level(_rows_within(connection, wanted, shown, within), points)
    whole: Parts = {}
    for segment, rows in shown:
        if rows:
            _cover(connection, wanted, segment, rows, max(level, 0), whole, within)
    for name, found in whole.items():
        inside = [each for each in found if each.last_batch >= first and each.first_batch <= last]
        if inside:
            parts[name] = inside
    return parts


def _rows_within(connection: Connection, wanted: Wanted, shown: Sequence[tuple[Segment, int]], within: Within) -> int:
    """Return about how many rows lie in a stretch: as if they were evenly spread over all batches."""
    trial_id, kind, _, _ = wanted
    rows = sum(count for _, count in shown)
    newest, _ = shown[-1]
    mine = {"trial": trial_id, "run": newest.run, "kind": kind.value}
    end = connection.execute(_NEWEST, mine).scalar() if newest.last is None else newest.last
    length = max((end or 0) - shown[0][0].first, 1)
    share = min((within[1] - within[0] + 1) / length, 1.0)
    return max(1, round(rows * share))


def _stored(connection: Connection, trial_id: int, kind: MetricKind, owner: str | None = None) -> Stored:
    """Return by number of the trial's runs, oldest first, where each began and how many rows it has.

    Raises
    ------
    NotFoundError
        If there is no such trial.
    """
    query = _RUNS if owner is None else _RUNS_OF_OWNER
    found = connection.execute(query, {"trial": trial_id, "owner": owner}).all()
    if not found:
        raise NotFoundError(f"There is no trial {trial_id}.")
    return {row.number: (row.start_batch, row._mapping[kind.value]) for row in found if row.number is not None}


def _rows_in(connection: Connection, trial_id: int, kind: MetricKind, segment: Segment, stored: int) -> int:
    """Return how many of the `stored` rows of a run come before the segment's end."""
    if segment.last is None or not stored:
        return stored
    values = {"trial": trial_id, "run": segment.run, "kind": kind.value, "last": segment.last}
    return stored - int(connection.execute(_LATER, values).scalar_one())


def _level(rows: int, points: int) -> int:
    """Return the finest level with at most `points` buckets for so many rows; -1 for the rows themselves."""
    if rows < points * ROWS_PER_BUCKET:
        return -1
    return next((level for level in range(LEVELS) if rows <= points * width(level)), LEVELS - 1)


def _cover(
    connection: Connection,
    wanted: Wanted,
    segment: Segment,
    rows: int,
    level: int,
    parts: Parts,
    within: Within | None = None,
) -> None:
    """Add buckets of `level`, then of the levels below for the end that fills none, then rows.

    A bucket's position says which rows of its run it covers, so it follows from the number of rows which buckets are
    complete. A name that has come by some complete bucket is in every later one of that level.
    """
    trial_id, kind, name, _ = wanted
    values: dict[str, Any] = {"trial": trial_id, "run": segment.run, "kind": kind.value, "first": segment.first}
    names = [name] if name is not None else _names(connection, trial_id, kind, segment.run) if level >= 0 else []
    if level >= 0 and names:
        whole = rows // width(level)
        values |= {"names": names, "level": level, "until": whole}
        query = _BUCKETS if within is None else _BUCKETS_WITHIN
        if within is not None:
            values |= {"from": within[0], "to": within[1]}
        found = connection.execute(query, values).all() if whole else []
        # Of every level below there is one bucket more than those above cover, or none.
        alone = [(below, rows // width(below) - 1) for below in range(level) if rows // width(below) % 2]
        if alone:
            levels, positions = zip(*alone, strict=True)
            values |= {"places": alone, "levels": levels, "positions": positions}
            found = [*found, *connection.execute(_ALONE, values).all()]
        for row in found:
            parts.setdefault(row[0], []).append(summary_of(row[1:]))
        rows %= BASE
    if rows:
        _add_rows(connection, wanted, segment, rows, parts)


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


def _add_rows(connection: Connection, wanted: Wanted, segment: Segment, rows: int, parts: Parts) -> None:
    """Add the last `rows` rows of a segment."""
    trial_id, kind, name, points = wanted
    last = LAST_BATCH if segment.last is None else segment.last
    values = {"trial": trial_id, "run": segment.run, "kind": kind.value, "first": segment.first}
    found = connection.execute(_LAST_ROWS, values | {"last": last, "rows": rows}).all()[::-1]
    columns: dict[str, tuple[list[int], list[float | None]]] = {}
    texts = json.loads("[" + ",".join([text for _, text in found]) + "]")
    for (batch, _), measured in zip(found, texts, strict=True):
        for metric in measured if name is None else [name]:
            value = number(measured.get(metric))
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
