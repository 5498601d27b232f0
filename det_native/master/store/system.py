"""What processes of trials use: rows by time, each stored once, and thinned so that there are never very many."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable

from sqlalchemy import Connection, delete, func, select

from det_native.master.store import trials as trial_store
from det_native.master.store.bulk import bulk_insert
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import dumps
from det_native.master.store.tables import system_samples as table
from det_native.schema.reports import ReportBatch, SystemReport, SystemSample
from det_native.schema.system_samples import MOST_SAMPLES, Weighed, only_new, thin, thin_by_rank

logger = logging.getLogger(__name__)


def add(transaction: Transaction, trial_id: int, run: int, samples: Iterable[SystemSample]) -> int:
    """Store the samples of a run that are later than the last one of their process in it; return how many are.

    Parameters
    ----------
    run : int
        Its number among the runs of the trial.
    """
    connection = transaction.connection
    last = select(table.c.rank, func.max(table.c.time)).where(table.c.trial_id == trial_id, table.c.run == run)
    known = {row[0]: row[1] / 1000 for row in connection.execute(last.group_by(table.c.rank))}
    fresh = only_new(samples, known)
    bulk_insert(connection, table, [_row(trial_id, Weighed(sample, run)) for sample in fresh])
    for rank in {sample.rank for sample in fresh}:
        _thin(connection, trial_id, rank)
    return len(fresh)


def without_samples(batch: ReportBatch) -> ReportBatch:
    """Return reports with none of their samples, which a full disk has no room for; their numbers stay."""
    lost = sum(len(report.samples) for report in batch.reports if isinstance(report, SystemReport))
    if not lost:
        return batch
    logger.warning("The disk is full: %d samples of what a trial uses are not kept.", lost)
    kept = [
        report.model_copy(update={"samples": []}) if isinstance(report, SystemReport) else report
        for report in batch.reports
    ]
    return batch.model_copy(update={"reports": kept})


def read(
    connection: Connection, trial_id: int, *, points: int | None = None, owner: str | None = None
) -> list[SystemSample]:
    """Return what the processes of a trial used, by time; of each at most about `points` samples.

    Raises
    ------
    NotFoundError
        If there is no such trial.
    """
    trial_store.get(connection, trial_id, owner)
    rows = connection.execute(select(table).where(table.c.trial_id == trial_id).order_by(table.c.run, table.c.time))
    samples = [
        SystemSample(time=row.time / 1000, rank=row.rank, metrics=json.loads(row._mapping["values"])) for row in rows
    ]
    return thin_by_rank(samples, points or MOST_SAMPLES)


def _thin(connection: Connection, trial_id: int, rank: int) -> None:
    mine = (table.c.trial_id == trial_id) & (table.c.rank == rank)
    count = connection.execute(select(func.count()).select_from(table).where(mine)).scalar_one()
    if count <= MOST_SAMPLES:
        return
    found = connection.execute(select(table).where(mine).order_by(table.c.run, table.c.time))
    samples = [
        Weighed(
            SystemSample(time=row.time / 1000, rank=rank, metrics=json.loads(row._mapping["values"])),
            row.run,
            row._mapping["count"],
        )
        for row in found
    ]
    connection.execute(delete(table).where(mine))
    bulk_insert(connection, table, [_row(trial_id, each) for each in thin(samples, MOST_SAMPLES // 2)])


def _row(trial_id: int, each: Weighed) -> tuple[object, ...]:
    sample = each.sample
    return (trial_id, sample.rank, each.run, round(sample.time * 1000), each.count, dumps(sample.metrics))
