"""Experiments that begin only once others have completed (``after`` in the configuration)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from det_native.errors import ArgumentError, NotFoundError
from det_native.master.store.tables import deleted_experiments, experiments
from det_native.schema.states import ExperimentState

#: Type of the error of an experiment that ends since an earlier one has not completed.
ERROR = "EarlierExperimentError"


@dataclass(frozen=True)
class Earlier:
    """What an experiment that comes after others waits for, or why it cannot begin any more; both empty: it may."""

    waits_for: str = ""
    refused: str = ""


def check_after(connection: Connection, after: Sequence[int], owner: str) -> None:
    """Refuse a configuration whose `after` cannot come true.

    Raises
    ------
    NotFoundError
        If there is no such experiment.
    ArgumentError
        If it has failed, was stopped or was deleted already.
    """
    states = _states(connection, after, owner)
    for number in after:
        if number not in states:
            if number in _deleted(connection, after):
                raise ArgumentError(f"after: experiment {number} was deleted: leave it out, or name another one.")
            raise NotFoundError(f"after: there is no experiment {number}; `det e list` shows those that there are.")
    refused = earlier_of(after, states).refused
    if refused:
        raise ArgumentError(f"after: {refused}: leave it out, or name another one.")


def earlier_of(after: Iterable[int], states: Mapping[int, ExperimentState]) -> Earlier:
    """Return whether an experiment may begin, by the states of those that it comes after; pure."""
    waits = []
    for number in after:
        state = states.get(number)
        if state is None:
            return Earlier(refused=f"experiment {number} was deleted")
        if state is ExperimentState.ERROR:
            return Earlier(refused=f"experiment {number} has failed")
        if state is ExperimentState.CANCELED:
            return Earlier(refused=f"experiment {number} was stopped")
        if state is not ExperimentState.COMPLETED:
            waits.append(f"experiment {number}, which is {state.value}")
    return Earlier(waits_for=" and ".join(waits))


def earlier(connection: Connection, after: Sequence[int], owner: str | None = None) -> Earlier:
    """Return whether an experiment may begin that comes after these."""
    return earlier_of(after, _states(connection, after, owner)) if after else Earlier()


def _states(connection: Connection, numbers: Sequence[int], owner: str | None) -> dict[int, ExperimentState]:
    query = select(experiments.c.id, experiments.c.state).where(experiments.c.id.in_(list(numbers)))
    if owner is not None:
        query = query.where(experiments.c.owner == owner)
    return {int(row.id): row.state for row in connection.execute(query)}


def _deleted(connection: Connection, numbers: Sequence[int]) -> set[int]:
    query = select(deleted_experiments.c.id).where(deleted_experiments.c.id.in_(list(numbers)))
    return set(connection.execute(query).scalars())
