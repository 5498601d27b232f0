"""The experiments that have not ended: a few among many that have, and found without looking at those."""

from __future__ import annotations

from sqlalchemy import Connection, Text, cast, false, func, select

from det_native.master.store.tables import experiments
from det_native.schema.states import ExperimentState

# By a list of states, and not by those that it is not in, a database uses its index.
_UNFINISHED = [state for state in ExperimentState if not state.terminal]


def ids(connection: Connection) -> list[int]:
    """Return the ids of all experiments that have not ended, oldest first."""
    query = select(experiments.c.id).where(experiments.c.state.in_(_UNFINISHED)).order_by(experiments.c.id)
    return list(connection.execute(query).scalars())


def count(connection: Connection) -> int:
    """Return how many experiments have not ended."""
    query = select(func.count()).select_from(experiments).where(experiments.c.state.in_(_UNFINISHED))
    return int(connection.execute(query).scalar_one())


def listed(connection: Connection) -> int:
    """Return how many experiments there are, archived ones not counted."""
    query = select(func.count()).select_from(experiments).where(experiments.c.archived == false())
    return int(connection.execute(query).scalar_one())


def configs(connection: Connection) -> dict[int, tuple[ExperimentState, str]]:
    """Return state and configuration, as JSON text that is not read yet, of all experiments that have not ended."""
    text = cast(experiments.c.config, Text).label("text")
    query = select(experiments.c.id, experiments.c.state, text).where(experiments.c.state.in_(_UNFINISHED))
    return {row.id: (row.state, row.text) for row in connection.execute(query)}


def bundles(connection: Connection) -> list[tuple[int, str]]:
    """Return the experiments that have not ended, each with its bundle."""
    query = select(experiments.c.id, experiments.c.bundle_id).where(experiments.c.state.in_(_UNFINISHED))
    return [(row.id, row.bundle_id) for row in connection.execute(query) if row.bundle_id is not None]
