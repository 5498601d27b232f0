"""The experiments that have not ended, as the scheduler sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, func, select

from det_native.master.scheduling.facts import DEFAULT_PRIORITY
from det_native.master.store import experiments, unfinished
from det_native.master.store.tables import trials
from det_native.schema import rest
from det_native.schema.queue import QueueEntry
from det_native.schema.resources import Resources
from det_native.schema.states import ExperimentState, TrialState

_OPEN = [TrialState.QUEUED, TrialState.RUNNING]


def entries(connection: Connection, held: Mapping[int, Sequence[str]], *, by_priority: bool) -> list[QueueEntry]:
    """Return all experiments that have not ended, in the order in which they come; those in kernels do not queue.

    Parameters
    ----------
    held : mapping
        The slots that experiments hold.
    by_priority : bool
        Whether priorities count.
    """
    ids = unfinished.ids(connection)
    counts = _counts(connection)
    found = [
        _entry(experiment, counts, held)
        for experiment in experiments.with_ids(connection, ids)
        if not experiment.in_kernel
    ]
    return sorted(found, key=lambda entry: (_group(entry), entry.priority if by_priority else 0, entry.id))


def _group(entry: QueueEntry) -> int:
    if entry.held or entry.running:
        return 0
    return 2 if entry.state is ExperimentState.PAUSED else 1


def _counts(connection: Connection) -> dict[tuple[int, TrialState], int]:
    query = (
        select(trials.c.experiment_id, trials.c.state, func.count().label("number"))
        .where(trials.c.state.in_(_OPEN))
        .group_by(trials.c.experiment_id, trials.c.state)
    )
    return {(row.experiment_id, row.state): row.number for row in connection.execute(query)}


def _entry(
    experiment: rest.Experiment, counts: Mapping[tuple[int, TrialState], int], held: Mapping[int, Sequence[str]]
) -> QueueEntry:
    try:
        resources = Resources.model_validate(experiment.config.get("resources") or {})
    except ValueError:  # of a version that took other values; the scheduler passes over it, too
        resources = Resources()
    known = {
        "priority": DEFAULT_PRIORITY if resources.priority is None else resources.priority,
        "running": counts.get((experiment.id, TrialState.RUNNING), 0),
        "queued": counts.get((experiment.id, TrialState.QUEUED), 0),
        "held": list(held.get(experiment.id, ())),
    }
    return QueueEntry.model_validate(dict(experiment) | dict(resources) | known)
