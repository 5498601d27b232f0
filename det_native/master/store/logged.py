"""Rows of metrics that come in parts: what is reported after the same batch, at whatever time, is one row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, delete, func, select

from det_native.master.store.database import Transaction
from det_native.master.store.metrics import stored_rows
from det_native.master.store.pyramid import LEVELS, Key, width
from det_native.master.store.tables import buckets, metrics
from det_native.schema.numbers import number
from det_native.schema.rest import MetricsReport
from det_native.schema.states import MetricKind

if TYPE_CHECKING:
    from det_native.master.store.tables import AnyRow

Row = dict[str, Any]


def merged(
    transaction: Transaction, run: AnyRow, stored: tuple[int, int], report: MetricsReport
) -> tuple[MetricsReport, int, int]:
    """Put what is stored of the first batch of a report into the report, so that it replaces that row.

    A run that continues from a batch takes over in the same way what the earlier one has logged after that batch, and
    which nobody would see behind its own row.

    Parameters
    ----------
    run : row
        The run that reports: its trial, its number, and after which batch it began.
    stored : (int, int)
        Rows of this run that are stored, and the batch of the last one.

    Returns
    -------
    MetricsReport
        That has all values of its first batch.
    int, int
        As `stored`, without the row that the report replaces.
    """
    rows, last = stored
    batch = report.batches[0]
    key = Key(run.trial_id, run.number, report.kind.value)
    if rows and batch == last:
        before = _row(transaction.connection, key, batch)
        stored = _take_back(transaction, key, rows, batch)
    elif report.kind is MetricKind.LOGGED and not rows and run.number > 1 and batch == run.start_batch:
        before = _shown_row(transaction.connection, run.trial_id, batch)
    else:
        return report, *stored
    numbers = {name: value for name, value in before.items() if isinstance(value, float)}
    others = {name: value for name, value in before.items() if name not in numbers and name not in report.metrics}
    columns = {
        "metrics": _with_row(report.metrics, {k: v for k, v in numbers.items() if k not in report.values}, report),
        "values": _with_row(report.values, others, report),
    }
    return report.model_copy(update=columns), *stored


def _with_row(columns: Mapping[str, list[Any]], row: Row, report: MetricsReport) -> dict[str, list[Any]]:
    found = {name: [value] + [None] * (len(report.batches) - 1) for name, value in row.items()}
    for name, column in columns.items():
        known = found.get(name)
        found[name] = [known[0], *column[1:]] if known is not None and column[0] is None else list(column)
    return found


def _row(connection: Connection, key: Key, batch: int) -> Row:
    text = connection.execute(select(metrics.c["values"]).where(*_of_run(key), metrics.c.batch == batch)).scalar_one()
    return _parsed(text)


def _shown_row(connection: Connection, trial_id: int, batch: int) -> Row:
    found = list(stored_rows(connection, trial_id, MetricKind.LOGGED, after_batch=batch - 1, limit=1))
    return _parsed(found[0].values) if found and found[0].batch == batch else {}


def _parsed(text: str) -> Row:
    return {name: value if (found := number(value)) is None else found for name, value in json.loads(text).items()}


def _take_back(transaction: Transaction, key: Key, rows: int, batch: int) -> tuple[int, int]:
    """Remove the last row, and the buckets that it has completed; return how many are left, and the last one."""
    connection = transaction.connection
    connection.execute(delete(metrics).where(*_of_run(key), metrics.c.batch == batch))
    for level in range(LEVELS):
        if rows % width(level):
            break  # nor does the row complete a wider one
        connection.execute(
            delete(buckets).where(
                buckets.c.trial_id == key.trial_id,
                buckets.c.run == key.run,
                buckets.c.kind == key.kind,
                buckets.c.level == level,
                buckets.c.position == rows // width(level) - 1,
            )
        )
    transaction.tails.drop(key)
    last = connection.execute(select(func.max(metrics.c.batch)).where(*_of_run(key))).scalar()
    return rows - 1, -1 if last is None else int(last)


def _of_run(key: Key) -> tuple[ColumnElement[bool], ...]:
    return (metrics.c.trial_id == key.trial_id, metrics.c.run == key.run, metrics.c.kind == key.kind)
