"""Puts the facts of the store before the scheduler."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from det_native.master.flow.runs import Active
from det_native.master.scheduling.plan import Pending, Running
from det_native.master.store import experiments, trials
from det_native.schema.config import ExperimentConfig
from det_native.schema.states import ExperimentState, TrialState


def pending_trials(connection: Connection, live: set[int]) -> list[Pending]:
    """Return the trials that wait for slots; those in `live` still have a worker."""
    found: list[Pending] = []
    resources = {}
    for trial in trials.in_state(connection, TrialState.QUEUED):
        if trial.id in live:
            continue
        if trial.experiment_id not in resources:
            experiment = experiments.get(connection, trial.experiment_id)
            active = experiment.state is ExperimentState.ACTIVE
            config = ExperimentConfig.model_validate(experiment.config)
            resources[trial.experiment_id] = config.resources if active else None
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
                )
            )
    return found


def running_trials(active: Iterable[Active]) -> list[Running]:
    """Return the trials that hold slots."""
    return [Running(run.trial_id, run.experiment_id, run.slots) for run in active]
