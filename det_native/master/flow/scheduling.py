"""Puts the facts of the store before the scheduler."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from sqlalchemy import Connection

from det_native.master.flow.context import tell_experiment
from det_native.master.flow.runs import Active
from det_native.master.scheduling.plan import Pending, Running
from det_native.master.store import experiments, logs, trials
from det_native.master.store.database import Database
from det_native.schema.config import ExperimentConfig
from det_native.schema.resources import Resources
from det_native.schema.states import ExperimentState, TrialState
from det_native.storage.backups import DamagedDatabaseError

logger = logging.getLogger(__name__)


def pending_trials(connection: Connection, live: set[int]) -> list[Pending]:
    """Return the trials that wait for slots; those in `live` still have a worker."""
    found: list[Pending] = []
    resources: dict[int, Resources | None] = {}
    queued = trials.in_state(connection, TrialState.QUEUED)
    served = trials.last_runs(connection, {trial.experiment_id for trial in queued})
    for trial in queued:
        if trial.id in live:
            continue
        if trial.experiment_id not in resources:
            resources[trial.experiment_id] = _resources(connection, trial.experiment_id)
        wanted = resources[trial.experiment_id]
        if wanted is not None:
            found.append(
                Pending(
                    trial_id=trial.id,
                    experiment_id=trial.experiment_id,
                    slots=wanted.slots_per_trial,
                    order=trial.id,
                    priority=wanted.priority,
                    weight=wanted.weight,
                    max_slots=wanted.max_slots,
                    served=served.get(trial.experiment_id, ""),
                )
            )
    return found


def _resources(connection: Connection, experiment_id: int) -> Resources | None:
    """Return what a trial of an experiment needs, None if none is to be started."""
    try:
        experiment = experiments.get(connection, experiment_id)
    except DamagedDatabaseError:  # told at the start of the master; the others must go on
        return None
    if experiment.state is not ExperimentState.ACTIVE:
        return None
    return ExperimentConfig.model_validate(experiment.config).resources


def tell_who_cannot_run(database: Database, slots: int) -> None:
    """Tell trials that wait for more slots than this cluster has, since it was started with fewer, what to do."""
    with database.read() as connection:
        large = [trial for trial in pending_trials(connection, set()) if trial.slots > slots]
    for trial in large:
        text = (
            f"It waits: it needs {trial.slots} slots, and the cluster was started with {slots}. `det down`, then "
            f"`det up --slots {trial.slots}`, starts it with enough."
        )
        logger.warning("trial %d of experiment %d: %s", trial.trial_id, trial.experiment_id, text)
        with database.write() as transaction:
            logs.add(transaction, trial.trial_id, "", "system", [text])


def tell_waits(database: Database, before: Mapping[int, str], now: Mapping[int, str]) -> None:
    """Keep and tell what experiments wait for, where that has changed."""
    changed = sorted(experiment for experiment in {*before, *now} if before.get(experiment) != now.get(experiment))
    if not changed:
        return
    with database.write() as transaction:
        for experiment_id in changed:
            experiments.set_waits_for(transaction, experiment_id, now.get(experiment_id))
            if not experiments.get(transaction.connection, experiment_id).state.terminal:
                tell_experiment(transaction, experiment_id)


def running_trials(active: Iterable[Active]) -> list[Running]:
    """Return the trials that hold slots."""
    return [Running(run.trial_id, run.experiment_id, run.slots) for run in active]
