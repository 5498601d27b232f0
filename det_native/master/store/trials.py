"""Trials of experiments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Row, Select, Update, bindparam, func, insert, null, select, update

from det_native.errors import NotFoundError
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import not_before, now
from det_native.master.store.tables import experiments, runs, trials
from det_native.schema import rest
from det_native.schema.stage_words import STOPPED_EARLY
from det_native.schema.states import TrialState
from det_native.schema.trial_names import trial_name

TERMINAL = [state for state in TrialState if state.terminal]
# Until one is validated, the first trial of an experiment is its best one.
_FIRST = (
    update(experiments)
    .where(experiments.c.id == bindparam("experiment"), experiments.c.best_trial.is_(None))
    .values(best_trial=bindparam("trial"))
)


def create(
    transaction: Transaction,
    experiment_id: int,
    *,
    request: int,
    hparams: dict[str, Any],
    seed: int,
    target_batches: int,
    units: int | None = None,
    warm_start: str | None = None,
    started: str | None = None,
) -> int:
    """Store a queued trial, or one that runs since it has `started`, and return its id.

    `request` is the searcher's name for it, `units` its first stage, `warm_start` the checkpoint whose weights it
    begins with.
    """
    result = transaction.connection.execute(
        insert(trials).values(
            experiment_id=experiment_id,
            request=request,
            state=TrialState.QUEUED if started is None else TrialState.RUNNING,
            hparams=hparams,
            seed=seed,
            restarts=0,
            target_batches=target_batches,
            units=units,
            stages=None if units is None else [units],
            warm_start=warm_start,
            created=started or now(),
            started=started,
        )
    )
    assert result.inserted_primary_key is not None
    trial_id = int(result.inserted_primary_key[0])
    transaction.connection.execute(_FIRST, {"experiment": experiment_id, "trial": trial_id})
    return trial_id


def get(connection: Connection, trial_id: int, owner: str | None = None) -> rest.Trial:
    """Return a trial; with `owner`, only if it is theirs.

    Raises
    ------
    NotFoundError
        If there is no such trial.
    """
    row = connection.execute(_one(of_owner=owner is not None), {"trial": trial_id, "owner_of_it": owner}).first()
    if row is None:
        raise NotFoundError(f"There is no trial {trial_id}.")
    return _trial(row)


def name_of(connection: Connection, trial_id: int) -> str:
    """Return what people call a trial: ``7.2``."""
    query = select(trials.c.experiment_id, trials.c.request).where(trials.c.id == trial_id)
    row = connection.execute(query).one()
    return trial_name(row.experiment_id, row.request + 1)


def of_experiment(connection: Connection, experiment_id: int, owner: str | None = None) -> list[rest.Trial]:
    """Return the trials of an experiment, oldest first."""
    query = _of_experiment(of_owner=owner is not None)
    return [_trial(row) for row in connection.execute(query, {"experiment": experiment_id, "owner_of_it": owner})]


def best_and_newest(connection: Connection, experiment: rest.Experiment, count: int) -> list[int]:
    """Return the ids of at most `count` trials, oldest first: the best one so far, and the newest ones."""
    mine = trials.c.experiment_id == experiment.id
    value = trials.c.best_validation
    order = value.asc() if experiment.smaller_is_better else value.desc()
    best = connection.execute(
        select(trials.c.id).where(mine, value.is_not(None)).order_by(order, trials.c.id).limit(1)
    ).scalar()
    newest = connection.execute(select(trials.c.id).where(mine).order_by(trials.c.id.desc()).limit(count)).scalars()
    found = list(newest)
    if best is not None and best not in found:
        found[-1] = best
    return sorted(found)


def chosen(connection: Connection, experiment: rest.Experiment, count: int, only: Sequence[int] | None) -> list[int]:
    """Return the ids of at most `count` trials, oldest first: those in `only` that are the experiment's, if given."""
    if only is None:
        return best_and_newest(connection, experiment, count)
    query = select(trials.c.id).where(trials.c.experiment_id == experiment.id, trials.c.id.in_(list(only)[:count]))
    return list(connection.execute(query.order_by(trials.c.id)).scalars())


def request_of(connection: Connection, trial_id: int) -> int:
    """Return the searcher's name for a trial."""
    return int(connection.execute(select(trials.c.request).where(trials.c.id == trial_id)).scalar_one())


def units_of(connection: Connection, trial_id: int) -> int | None:
    """Return how far a search that trains in stages has asked a trial to train; None for the whole length."""
    found: int | None = connection.execute(select(trials.c.units).where(trials.c.id == trial_id)).scalar_one()
    return found


def with_request(connection: Connection, experiment_id: int, request: int) -> rest.Trial:
    """Return the trial that the searcher calls `request`."""
    mine = (trials.c.experiment_id == experiment_id, trials.c.request == request)
    return _trial(connection.execute(owned(None).where(*mine)).one())


def extend(transaction: Transaction, trial_id: int, *, units: int, target_batches: int) -> None:
    """Have a trial that has come to the end of a stage wait for slots again, to train on."""
    before = transaction.connection.execute(select(trials.c.stages).where(trials.c.id == trial_id)).scalar() or []
    more = {"units": units, "stages": [*before, units], "target_batches": target_batches}
    update_row(transaction, trial_id, state=TrialState.QUEUED, ended=None, **more)


def by_request(connection: Connection, experiment_id: int) -> dict[int, rest.Trial]:
    """Return an experiment's trials by the searcher's names for them."""
    rows = connection.execute(_of_experiment(), {"experiment": experiment_id})
    return {row.request: _trial(row) for row in rows}


def queued(connection: Connection, most: int) -> list[tuple[int, int]]:
    """Return the trials that are queued and their experiments, oldest first: at most so many of each experiment."""
    place = func.row_number().over(partition_by=trials.c.experiment_id, order_by=trials.c.id).label("place")
    query = select(trials.c.id, trials.c.experiment_id, place).where(trials.c.state == TrialState.QUEUED).subquery()
    chosen = select(query.c.id, query.c.experiment_id).where(query.c.place <= most).order_by(query.c.id)
    return [(row.id, row.experiment_id) for row in connection.execute(chosen)]


def last_runs(connection: Connection) -> dict[int, str]:
    """Return the latest run of each experiment with a queued trial that has had one; its id sorts by time."""
    latest = func.max(trials.c.run_id)
    waiting = select(trials.c.experiment_id).where(trials.c.state == TrialState.QUEUED)
    query = select(trials.c.experiment_id, latest).where(trials.c.experiment_id.in_(waiting))
    rows = connection.execute(query.group_by(trials.c.experiment_id).having(latest.is_not(None)))
    return {row[0]: row[1] for row in rows}


def fingerprint(connection: Connection, trial_id: int) -> str | None:
    """Return what identifies the trial's last error of the user's, None if there was none."""
    found: str | None = connection.execute(select(trials.c.fingerprint).where(trials.c.id == trial_id)).scalar()
    return found


def set_state(
    transaction: Transaction, trial_id: int, state: TrialState, error: rest.UserErrorInfo | None = None
) -> None:
    """Change the state; a terminal one sets the end and never changes again."""
    values: dict[str, Any] = {"state": state}
    if state is TrialState.RUNNING:
        values["started"] = func.coalesce(trials.c.started, now())
    if state.terminal:
        values |= {"ended": now(), "waiting": None}
    if error is not None:
        values["error"] = error.model_dump(mode="json")
    elif state is TrialState.COMPLETED:
        values["error"] = null()
    transaction.connection.execute(
        update(trials).where(trials.c.id == trial_id, trials.c.state.not_in(TERMINAL)).values(**values)
    )


def set_waiting(transaction: Transaction, trial_id: int, text: str) -> None:
    """Keep what the trial waits for at the moment; empty for nothing."""
    update_row(transaction, trial_id, waiting=text)


def set_notice(transaction: Transaction, trial_id: int, text: str) -> None:
    """Keep what is to be known of the trial beside its state, until there is something else."""
    update_row(transaction, trial_id, notice=text)


def set_restarts(transaction: Transaction, trial_id: int, restarts: int, fingerprint: str | None) -> None:
    """Keep how often the trial was restarted, and what identifies its last error."""
    update_row(transaction, trial_id, restarts=restarts, fingerprint=fingerprint)


def update_row(transaction: Transaction, trial_id: int, **values: Any) -> None:
    """Set columns of a trial (for the modules of the store that keep its derived values)."""
    new = {f"new_{name}": value for name, value in values.items()}
    transaction.connection.execute(_change(tuple(values)), {"trial": trial_id, **new})


@lru_cache(maxsize=64)
def _change(names: tuple[str, ...]) -> Update:
    new = {name: bindparam(f"new_{name}", type_=trials.c[name].type) for name in names}
    return update(trials).where(trials.c.id == bindparam("trial")).values(new)


@lru_cache(maxsize=2)
def _one(*, of_owner: bool) -> Select[Any]:
    """Return the query of one trial; made once, since making it takes longer than answering it."""
    return _of_bound_owner(owned(None).where(trials.c.id == bindparam("trial")), of_owner=of_owner)


@lru_cache(maxsize=2)
def _of_experiment(*, of_owner: bool = False) -> Select[Any]:
    query = owned(None).where(trials.c.experiment_id == bindparam("experiment")).order_by(trials.c.id)
    return _of_bound_owner(query, of_owner=of_owner)


def _of_bound_owner(query: Select[Any], *, of_owner: bool) -> Select[Any]:
    if not of_owner:
        return query
    return query.join(experiments, experiments.c.id == trials.c.experiment_id).where(
        experiments.c.owner == bindparam("owner_of_it")
    )


def owned(owner: str | None) -> Select[Any]:
    """Return the query of all trials, those of `owner` only if it is given."""
    done = func.coalesce(runs.c.batches, 0).label("batches")
    query = select(trials, done, runs.c.slots).outerjoin(runs, runs.c.run_id == trials.c.run_id)
    if owner is None:
        return query
    return query.join(experiments, experiments.c.id == trials.c.experiment_id).where(experiments.c.owner == owner)


def _trial(row: Row[Any]) -> rest.Trial:
    started = not_before(row.started, row.created)
    known = {
        "number": row.request + 1,
        "stages": row.stages or [],
        "started": started,
        "ended": not_before(row.ended, started, row.created),
        "slots": (row.slots or []) if row.state == TrialState.RUNNING else [],
        "notice": "; ".join(filter(None, (row.waiting, row.notice))),
        "stopped_early": row.state == TrialState.COMPLETED and STOPPED_EARLY in (row.notice or ""),
    }
    return rest.Trial.model_validate(row._asdict() | known)


def has_run(connection: Connection, experiment_id: int) -> bool:
    """Return whether a trial of an experiment has had slots."""
    query = select(runs.c.run_id).join(trials, trials.c.id == runs.c.trial_id)
    return connection.execute(query.where(trials.c.experiment_id == experiment_id).limit(1)).first() is not None
