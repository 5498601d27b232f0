"""Events: everything that a live view wants to hear of, in the order in which it was committed."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select

from det_native.master.store.database import Transaction
from det_native.master.store.tables import events, experiments
from det_native.schema import rest
from det_native.schema.numbers import words

EventType = Literal["experiment", "trial", "metrics", "checkpoint", "artifacts", "media", "error"]

# A metrics event says that there are new rows and repeats the last one. Readers find all rows in the metrics
# themselves, so old hints go: every PRUNE_EVERY events of a trial, those before its last KEPT_HINTS.
KEPT_HINTS = 1024
PRUNE_EVERY = 256

_INSERT = insert(events)


def emit(
    transaction: Transaction,
    owner: str,
    type: EventType,
    experiment_id: int,
    trial_id: int | None,
    data: dict[str, Any],
) -> rest.Event:
    """Store an event and have it told once the transaction is committed."""
    data = words(data)
    row = {"owner": owner, "type": type, "experiment_id": experiment_id, "trial_id": trial_id, "data": data}
    result = transaction.connection.execute(_INSERT, row)
    assert result.inserted_primary_key is not None
    event = rest.Event(
        id=int(result.inserted_primary_key[0]), type=type, experiment_id=experiment_id, trial_id=trial_id, data=data
    )
    transaction.emitted.append((owner, event))
    if type == "metrics" and event.id % PRUNE_EVERY == 0:
        _prune(transaction, trial_id)
    return event


def after(
    connection: Connection, owner: str, event_id: int, *, experiment_id: int | None = None, limit: int = 500
) -> list[rest.Event]:
    """Return the first events with an id above `event_id`, oldest first."""
    query = select(events).where(events.c.owner == owner, events.c.id > event_id).order_by(events.c.id).limit(limit)
    if experiment_id is not None:
        query = query.where(events.c.experiment_id == experiment_id)
    return [
        rest.Event(id=row.id, type=row.type, experiment_id=row.experiment_id, trial_id=row.trial_id, data=row.data)
        for row in connection.execute(query)
    ]


class Kind(NamedTuple):
    """What an event is about."""

    id: int
    type: str
    experiment_id: int
    trial_id: int | None


def kinds_after(connection: Connection, owner: str, event_id: int, *, limit: int) -> list[Kind]:
    """Return of the first events with an id above `event_id`, oldest first, what they are about."""
    query = (
        select(events.c.id, events.c.type, events.c.experiment_id, events.c.trial_id)
        .where(events.c.owner == owner, events.c.id > event_id)
        .order_by(events.c.id)
        .limit(limit)
    )
    return [Kind(*row) for row in connection.execute(query)]


def last_id(connection: Connection) -> int:
    """Return the id of the newest event, 0 if there is none."""
    return int(connection.execute(select(func.max(events.c.id))).scalar() or 0)


def experiment_changed(transaction: Transaction, experiment: rest.Experiment, owner: str) -> None:
    """Tell that an experiment is as it now is."""
    emit(transaction, owner, "experiment", experiment.id, None, experiment.model_dump(mode="json"))


def unstored(experiment: rest.Experiment) -> rest.Event:
    """Return an event that an experiment is as it now is, for those who listen now: it has no id to continue from."""
    data = words(experiment.model_dump(mode="json"))
    return rest.Event(id=0, type="experiment", experiment_id=experiment.id, trial_id=None, data=data)


def trial_changed(transaction: Transaction, trial: rest.Trial) -> None:
    """Tell that a trial is as it now is."""
    owner = transaction.connection.execute(
        select(experiments.c.owner).where(experiments.c.id == trial.experiment_id)
    ).scalar_one()
    emit(transaction, owner, "trial", trial.experiment_id, trial.id, trial.model_dump(mode="json"))


def forget_states(transaction: Transaction, experiment_id: int) -> None:
    """Forget in what states an experiment that goes on was: who reads from the beginning would find its end."""
    states = events.c.type.in_(("experiment", "trial", "error"))
    transaction.connection.execute(delete(events).where(events.c.experiment_id == experiment_id, states))


def _prune(transaction: Transaction, trial_id: int | None) -> None:
    mine = (events.c.trial_id == trial_id) & (events.c.type == "metrics")
    oldest = (
        select(events.c.id).where(mine).order_by(events.c.id.desc()).offset(KEPT_HINTS - 1).limit(1).scalar_subquery()
    )
    transaction.connection.execute(delete(events).where(mine, events.c.id < oldest))
