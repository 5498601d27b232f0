"""When a run had done how many batches: a few rows of each run, by the master's clock.

There is a row a second at first, and later one for each thousandth of the time that the run has taken: some seven
thousand for a week. The last row is always that of the last report: it moves on until it is far enough from the row
before it. So a run of less than a second has the times of its first and its last report, too. A run that continues
from a batch owns those after it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, insert, select, update

from det_native.master.store.database import Transaction
from det_native.master.store.tables import batch_times as table
from det_native.master.store.tables import epochs, runs, trials
from det_native.schema.clocks import TrialClock

LEAST_MILLISECONDS = 1000
SHARE = 1000
POINTS = 300

Thing = TypeVar("Thing")


def note(
    transaction: Transaction, trial_id: int, run: int, batch: int, *, created: str, now: float | None = None
) -> None:
    """Note that a run has done so many batches by now, in its last row or in a new one.

    Parameters
    ----------
    run : int
        Its number among the runs of the trial.
    created : str
        When the run was made, as it is stored.
    now : float, optional
        Seconds since 1970; by default those of this machine's clock.
    """
    at = round((time.time() if now is None else now) * 1000)
    distance = max(LEAST_MILLISECONDS, (at - _milliseconds(created)) // SHARE)
    mine = (table.c.trial_id == trial_id, table.c.run == run)
    newest = select(table.c.time).where(*mine).order_by(table.c.time.desc()).limit(2)
    times = [row[0] for row in transaction.connection.execute(newest)]
    # In the same millisecond, or by a clock that was set back, the time stays.
    stays = bool(times) and at <= times[0]
    if stays or (len(times) == 2 and times[0] - times[1] < distance):
        moved = update(table).where(*mine, table.c.time == times[0])
        transaction.connection.execute(moved.values(time=max(at, times[0]), batch=batch))
    else:
        values = {"trial_id": trial_id, "run": run, "time": at, "batch": batch}
        transaction.connection.execute(insert(table).values(values))


def read(connection: Connection, trial_ids: Sequence[int], *, points: int = POINTS) -> list[TrialClock]:
    """Return the clocks of trials, in the order of their ids; each with at most `points` points of a kind."""
    mine = list(trial_ids)
    query_started = select(trials.c.id, trials.c.started).where(trials.c.id.in_(mine))
    started: dict[int, str | None] = {row[0]: row[1] for row in connection.execute(query_started)}
    begun: dict[int, list[tuple[int, int]]] = {trial_id: [] for trial_id in mine}
    query = select(runs.c.trial_id, runs.c.number, runs.c.start_batch).where(runs.c.trial_id.in_(mine))
    for trial_id, number, start in connection.execute(query.order_by(runs.c.number)):
        begun[trial_id].append((number, start))
    times = _by_run(
        connection.execute(
            select(table.c.trial_id, table.c.run, table.c.batch, table.c.time)
            .where(table.c.trial_id.in_(mine))
            .order_by(table.c.time)
        )
    )
    ends = _by_run(
        connection.execute(
            select(epochs.c.trial_id, epochs.c.run, epochs.c.batch, epochs.c.batch)
            .where(epochs.c.trial_id.in_(mine))
            .order_by(epochs.c.batch)
        )
    )
    found = []
    for trial_id in sorted(started):
        shown = _thinned(_shown(begun[trial_id], times.get(trial_id, {})), points)
        ended = [batch for batch, _ in _shown(begun[trial_id], ends.get(trial_id, {}))]
        counted = _thinned(list(enumerate(ended, start=1)), points)
        first = started[trial_id]
        found.append(
            TrialClock(
                trial_id=trial_id,
                started=None if first is None else _milliseconds(first) / 1000,
                batch=[batch for batch, _ in shown],
                time=[at / 1000 for _, at in shown],
                epoch=[epoch for epoch, _ in counted],
                epoch_batch=[batch for _, batch in counted],
            )
        )
    return found


def _by_run(rows: Iterable[Row[Any]]) -> dict[int, dict[int, list[tuple[int, int]]]]:
    found: dict[int, dict[int, list[tuple[int, int]]]] = {}
    for row in rows:
        trial_id, run, batch, value = tuple(row)
        found.setdefault(trial_id, {}).setdefault(run, []).append((batch, value))
    return found


def _shown(begun: Sequence[tuple[int, int]], of_run: dict[int, list[tuple[int, int]]]) -> list[tuple[int, int]]:
    """Return by batch, ascending, what is shown: a clock that was set back makes no time go back."""
    shown: dict[int, int] = {}
    for number, start in begun:
        shown = {batch: value for batch, value in shown.items() if batch <= start}
        shown |= dict(of_run.get(number, ()))
    found: list[tuple[int, int]] = []
    for batch in sorted(shown):
        value = shown[batch]
        found.append((batch, max(value, found[-1][1]) if found else value))
    return found


def _thinned(values: list[Thing], most: int) -> list[Thing]:
    """Return at most so many of some, evenly, the first and the last among them."""
    if len(values) <= most:
        return values
    last = len(values) - 1
    return [values[round(place * last / (most - 1))] for place in range(most)]


def _milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
