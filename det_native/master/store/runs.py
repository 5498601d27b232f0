"""Runs: the attempts at a trial. A trial has one current run; reports of any other are refused."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Row, Select, Update, bindparam, delete, func, insert, null, select, update

from det_native.master.store import trials as trial_store
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import now
from det_native.master.store.tables import batch_times, experiments, runs, trials
from det_native.schema.rest import ExitReport
from det_native.schema.states import ExperimentState, MetricKind, RunState, TrialState


@dataclass(frozen=True)
class Run:
    """An attempt at a trial.

    Attributes
    ----------
    trial_number : int
        Number of the trial inside its experiment, from 1.
    number : int
        Counts the runs of the trial, from 1.
    start_batch : int
        Batches that were done in earlier runs, by the checkpoint in `resume`.
    exit : ExitReport or None
        The harness's own exit report.
    stop_asked : bool
        The worker was asked to checkpoint and end, to be continued by a later run.
    log_offsets : list of int
        Bytes of each process's output that are in the logs, by rank: so many processes has the run.
    training_last : int
        Batch of the last training metrics that are stored, -1 if there are none.
    last_seq : int
        Number of the last report that is stored, 0 if there is none.
    """

    run_id: str
    trial_id: int
    experiment_id: int
    trial_number: int
    number: int
    state: RunState
    start_batch: int
    resume: str | None
    slots: list[str]
    handle: dict[str, Any] | None
    exit: ExitReport | None
    stop_asked: bool
    log_offsets: list[int]
    training_last: int = -1
    last_seq: int = 0


def new_token() -> tuple[str, str]:
    """Return a fresh bearer token and the hash under which it is kept."""
    token = secrets.token_urlsafe(32)
    return token, hash_of(token)


def hash_of(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def create(
    transaction: Transaction,
    trial_id: int,
    run_id: str,
    *,
    token_hash: str,
    slots: list[str],
    ranks: int = 1,
    start_batch: int = 0,
    resume: str | None = None,
    handle: dict[str, Any] | None = None,
    created: str | None = None,
) -> int:
    """Make a run the trial's current one and return its number; from now on earlier runs are fenced off."""
    connection = transaction.connection
    last = connection.execute(select(func.max(runs.c.number)).where(runs.c.trial_id == trial_id)).scalar() or 0
    nothing = {f"{kind}_{column}": value for kind in MetricKind for column, value in (("rows", 0), ("last", -1))}
    connection.execute(
        insert(runs).values(
            run_id=run_id,
            trial_id=trial_id,
            number=last + 1,
            state=RunState.STARTING,
            start_batch=start_batch,
            resume=resume,
            last_seq=0,
            batches=start_batch,
            **nothing,
            token_hash=token_hash,
            slots=slots,
            stop_asked=False,
            log_offsets=[0] * ranks,
            handle=handle,
            created=created or now(),
        )
    )
    trial_store.update_row(transaction, trial_id, run_id=run_id)
    return last + 1


def get(connection: Connection, run_id: str) -> Run | None:
    """Return a run, None if there is no such one."""
    row = connection.execute(_one(), {"the_run": run_id}).first()
    return None if row is None else _run(row)


def alive(connection: Connection) -> list[Run]:
    """Return the runs that have not ended, oldest first."""
    query = _query().where(runs.c.state != RunState.ENDED).order_by(runs.c.run_id)
    return [_run(row) for row in connection.execute(query)]


def token_hash(connection: Connection, run_id: str) -> str | None:
    """Return the hash of a run's token, None if there is no such run."""
    found: str | None = connection.execute(select(runs.c.token_hash).where(runs.c.run_id == run_id)).scalar()
    return found


def of_trial(connection: Connection, trial_id: int) -> list[Run]:
    """Return the runs of a trial, oldest first."""
    query = _query().where(runs.c.trial_id == trial_id).order_by(runs.c.number)
    return [_run(row) for row in connection.execute(query)]


def set_handle(transaction: Transaction, run_id: str, handle: dict[str, Any]) -> None:
    """Keep the launcher's handle, by which a later master finds the worker again."""
    update_row(transaction, run_id, handle=handle)


def ask_to_stop(transaction: Transaction, experiment_id: int) -> None:
    """Have the live runs of an experiment told, with whatever they report next, to checkpoint and end."""
    mine = select(trials.c.id).where(trials.c.experiment_id == experiment_id)
    transaction.connection.execute(
        update(runs).where(runs.c.trial_id.in_(mine), runs.c.state != RunState.ENDED).values(stop_asked=True)
    )


def ask_run_to_stop(transaction: Transaction, run_id: str) -> None:
    """Have one run told, with whatever it reports next, to checkpoint and end."""
    update_row(transaction, run_id, stop_asked=True)


def have_go_on(transaction: Transaction, experiment_id: int, trial_id: int) -> None:
    """Have a trial go on that had ended, and its experiment."""
    going_on = {"ended": None, "error": null()}
    experiment = update(experiments).where(experiments.c.id == experiment_id)
    transaction.connection.execute(experiment.values(state=ExperimentState.ACTIVE, collected=False, **going_on))
    trial = update(trials).where(trials.c.id == trial_id)
    transaction.connection.execute(trial.values(state=TrialState.RUNNING, **going_on))


def revive(transaction: Transaction, run: Run) -> None:
    """Have a run go on that had ended, and its trial and experiment."""
    have_go_on(transaction, run.experiment_id, run.trial_id)
    update_row(transaction, run.run_id, state=RunState.RUNNING, ended=None, handle=run.handle)


def date_back(transaction: Transaction, run: Run, moment: str) -> None:
    """Have what ended before the master heard of it end when it did; when its batches were done is not known."""
    connection = transaction.connection
    for table, mine in (
        (runs, runs.c.run_id == run.run_id),
        (trials, trials.c.id == run.trial_id),
        (experiments, experiments.c.id == run.experiment_id),
    ):
        connection.execute(update(table).where(mine, table.c.ended.is_not(None)).values(ended=moment))
    trial_store.update_row(transaction, run.trial_id, best_at=None)
    connection.execute(delete(batch_times).where(batch_times.c.trial_id == run.trial_id))


def end(transaction: Transaction, run_id: str) -> None:
    """The worker is gone."""
    update_row(transaction, run_id, state=RunState.ENDED, ended=now())


def update_row(transaction: Transaction, run_id: str, **values: Any) -> None:
    """Set columns of a run (for the modules of the store)."""
    transaction.connection.execute(
        _update(tuple(values)), {"the_run": run_id, **{f"new_{name}": value for name, value in values.items()}}
    )


@lru_cache(maxsize=64)
def _update(names: tuple[str, ...]) -> Update:
    new = {name: bindparam(f"new_{name}", type_=runs.c[name].type) for name in names}
    return update(runs).where(runs.c.run_id == bindparam("the_run")).values(new)


@lru_cache(maxsize=1)
def _one() -> Select[Any]:
    return _query().where(runs.c.run_id == bindparam("the_run"))


def _query() -> Select[Any]:
    return select(runs, trials.c.experiment_id, trials.c.request).join(trials, trials.c.id == runs.c.trial_id)


def _run(row: Row[Any]) -> Run:
    return Run(
        run_id=row.run_id,
        trial_id=row.trial_id,
        experiment_id=row.experiment_id,
        trial_number=row.request + 1,
        number=row.number,
        state=RunState(row.state),
        start_batch=row.start_batch,
        resume=row.resume,
        slots=list(row.slots),
        handle=row.handle,
        exit=None if row.exit is None else ExitReport.model_validate(row.exit),
        stop_asked=row.stop_asked,
        log_offsets=list(row.log_offsets),
        training_last=row.training_last,
        last_seq=row.last_seq,
    )
