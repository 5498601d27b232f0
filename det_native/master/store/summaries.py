"""Summaries of the metrics of trials: kept as these are reported, so that experiments are found without reading rows.

Validations and logged metrics are summarised with each report. Those of the training, of which very many are reported,
are read from their buckets now and then and at the end of a run.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, delete, func, select, text

from det_native.master.store import metrics, series
from det_native.master.store.bulk import bulk_insert
from det_native.master.store.database import Database, Transaction
from det_native.master.store.pyramid import Key
from det_native.master.store.tables import experiments, metric_summaries, trials, unsummarised
from det_native.schema.numbers import number
from det_native.schema.reports import MetricsReport
from det_native.schema.states import MetricKind
from det_native.schema.summaries import MetricSummary, TrialSummary

if TYPE_CHECKING:
    from det_native.master.store.tables import AnyRow

logger = logging.getLogger(__name__)

# Seconds after which the training metrics of a trial that trains are summarised again.
INTERVAL = 30.0
LONGEST_NAME = 500
# Rows in which the last value of a metric is looked for; some are reported seldom.
_MOST_ROWS = 2_000
# Seconds that one step of summarising earlier trials takes, about.
_STEP = 0.2

_UPSERT = text(
    "INSERT INTO metric_summaries (trial_id, kind, name, experiment_id, last_batch, last, minimum, maximum) "
    "VALUES (:trial_id, :kind, :name, :experiment_id, :last_batch, :last, :minimum, :maximum) "
    "ON CONFLICT (trial_id, kind, name) DO UPDATE SET last_batch = excluded.last_batch, last = excluded.last, "
    "minimum = CASE WHEN metric_summaries.minimum IS NULL OR excluded.minimum < metric_summaries.minimum "
    "THEN excluded.minimum ELSE metric_summaries.minimum END, "
    "maximum = CASE WHEN metric_summaries.maximum IS NULL OR excluded.maximum > metric_summaries.maximum "
    "THEN excluded.maximum ELSE metric_summaries.maximum END"
)
_COLUMNS = metric_summaries.c
_DELETE = delete(metric_summaries).where(_COLUMNS.trial_id == bindparam("trial"), _COLUMNS.kind == bindparam("of_kind"))
_EXPERIMENT = select(trials.c.experiment_id).where(trials.c.id == bindparam("trial"))


def extend(transaction: Transaction, run: AnyRow, report: MetricsReport, new: int) -> None:
    """Add the last `new` rows of a report to the summaries."""
    rows = []
    batches = report.batches[-new:]
    for name, column in report.metrics.items():
        values = [(batch, value) for batch, value in zip(batches, column[-new:], strict=True) if value is not None]
        if not values or len(name) > LONGEST_NAME:
            continue
        numbers = [value for _, value in values if not math.isnan(value)]
        batch, last = values[-1]
        rows.append(
            {
                "trial_id": run.trial_id,
                "kind": report.kind.value,
                "name": name,
                "experiment_id": run.experiment_id,
                "last_batch": batch,
                "last": None if math.isnan(last) else last,
                "minimum": min(numbers, default=None),
                "maximum": max(numbers, default=None),
            }
        )
    if rows:
        transaction.connection.execute(_UPSERT, rows)


def is_due(transaction: Transaction, run: AnyRow) -> bool:
    """Return whether the training metrics of a trial are to be summarised again; it is noted that they are."""
    tail = transaction.tails.get(Key(run.trial_id, run.number, MetricKind.TRAINING.value))
    now = time.monotonic()
    if tail is None or (tail.summarised and now - tail.summarised < INTERVAL):
        return False
    first, tail.summarised = not tail.summarised, now
    return not first


def refresh(transaction: Transaction, trial_id: int, kinds: Collection[MetricKind]) -> None:
    """Work out the summaries of a trial from what is stored and shown."""
    connection = transaction.connection
    if not kinds:
        return
    experiment_id = connection.execute(_EXPERIMENT, {"trial": trial_id}).scalar()
    if experiment_id is None:
        return
    for kind in kinds:
        try:
            rows = _summary_rows(connection, trial_id, experiment_id, kind)
        except (ValueError, TypeError):  # a damaged row: what is to be done with it is told where it is read
            logger.warning("The %s metrics of trial %d cannot be read for its summary.", kind, trial_id, exc_info=True)
            continue
        connection.execute(_DELETE, {"trial": trial_id, "of_kind": kind.value})
        bulk_insert(connection, metric_summaries, rows)


def _summary_rows(connection: Connection, trial_id: int, experiment_id: int, kind: MetricKind) -> list[tuple[Any, ...]]:
    found = series.curves(connection, trial_id, [kind], points=1)
    curves = [curve for curve in found if len(curve.name) <= LONGEST_NAME]
    last = _last_values(connection, trial_id, kind, {curve.name for curve in curves})
    rows = []
    for curve in curves:
        batch, value = last.get(curve.name, (curve.batch[-1], None))
        extremes = (curve.minimum[0], curve.maximum[0])
        rows.append((trial_id, kind.value, curve.name, experiment_id, batch, value, *extremes))
    return rows


def _last_values(
    connection: Connection, trial_id: int, kind: MetricKind, names: set[str]
) -> dict[str, tuple[int, float | None]]:
    found: dict[str, tuple[int, float | None]] = {}
    for count, row in enumerate(metrics.newest_rows(connection, trial_id, kind)):
        if len(found) == len(names) or count == _MOST_ROWS:
            break
        for name, given in json.loads(row.values).items():
            value = number(given)
            if name in names and name not in found and value is not None:
                found[name] = (row.batch, None if math.isnan(value) else value)
    return found


def summarise_earlier(database: Database) -> int:
    """Summarise some trials of an earlier version, newest first; return how many are to be done still."""
    end = time.monotonic() + _STEP
    with database.write() as transaction:
        connection = transaction.connection
        query = select(unsummarised.c.trial_id).order_by(unsummarised.c.trial_id.desc()).limit(100)
        for trial_id in list(connection.execute(query).scalars()):
            refresh(transaction, trial_id, list(MetricKind))
            connection.execute(delete(unsummarised).where(unsummarised.c.trial_id == trial_id))
            if time.monotonic() > end:
                break
        return to_do(connection)


def to_do(connection: Connection) -> int:
    """Return how many trials of an earlier version have no summary yet."""
    return int(connection.execute(select(func.count()).select_from(unsummarised)).scalar_one())


def of_experiments(
    connection: Connection, owner: str | None, experiment_ids: Sequence[int], *, best: bool
) -> list[TrialSummary]:
    """Return the summaries of the trials of experiments, oldest trial first; `best`: of the best one of each only."""
    query = (
        select(trials.c.id, trials.c.experiment_id, trials.c.hparams)
        .join(experiments, experiments.c.id == trials.c.experiment_id)
        .where(experiments.c.id.in_(experiment_ids))
        .order_by(trials.c.id)
    )
    if owner is not None:
        query = query.where(experiments.c.owner == owner)
    if best:
        query = query.where(trials.c.id == experiments.c.best_trial)
    found = {
        row.id: TrialSummary(trial_id=row.id, experiment_id=row.experiment_id, hparams=row.hparams)
        for row in connection.execute(query)
    }
    if not found:
        return []
    chosen = _COLUMNS.trial_id.in_(list(found)) if best else _COLUMNS.experiment_id.in_(experiment_ids)
    rows = connection.execute(select(metric_summaries).where(chosen).order_by(_COLUMNS.trial_id, _COLUMNS.name))
    for row in rows:
        values: dict[str, Any] = dict(row._mapping)
        if values["trial_id"] in found:
            found[values["trial_id"]].metrics.append(MetricSummary.model_validate(values))
    return list(found.values())


def known_metrics(connection: Connection, names: Collection[str]) -> bool:
    """Return whether some trial has a metric of one of these names."""
    return connection.execute(select(_COLUMNS.name).where(_COLUMNS.name.in_(names)).limit(1)).first() is not None
