"""Puts the facts of the store before the scheduler."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection

from det_native.master.flow.active import Active
from det_native.master.flow.context import tell_experiment
from det_native.master.flow.runs import Runs
from det_native.master.scheduling.facts import Pending, Policy, Preempt, Running, Start
from det_native.master.scheduling.plan import MOST_WITHOUT_SLOTS, plan
from det_native.master.scheduling.waits import waits
from det_native.master.store import experiments, logs, trials
from det_native.master.store.database import Database
from det_native.schema.config import ExperimentConfig
from det_native.schema.resources import Resources
from det_native.schema.rest import SlotInfo
from det_native.schema.states import ExperimentState
from det_native.storage.backups import DamagedDatabaseError

logger = logging.getLogger(__name__)


class Scheduling:
    """Carries out what the plan says, and tells who waits. Used by the decision thread only."""

    def __init__(
        self,
        database: Database,
        slots: Iterable[SlotInfo],
        policy: Policy,
        runs: Runs,
        without_slots: int = MOST_WITHOUT_SLOTS,
    ) -> None:
        self._without_slots = without_slots
        self._database = database
        self._slots = [slot.id for slot in slots]
        self._policy = policy
        self._runs = runs
        self._waits: dict[int, str] = {}
        self._stalled: dict[int, str] = {}
        self.taken: dict[str, int] = {}

    def take_up(self) -> None:
        """Begin with what an earlier master has told."""
        with self._database.read() as connection:
            self._waits = experiments.waiting(connection)
        tell_who_cannot_run(self._database, len(self._slots))

    @property
    def outdated(self) -> bool:
        """Whether something else than slots keeps an experiment waiting than when it was last told."""
        return self._runs.waits() != self._stalled

    def schedule(self) -> None:
        """Start the trials whose turn it is, have others make room, and tell who waits for what."""
        live = {run.trial_id for run in self._runs.active.values()}
        with self._database.read() as connection:
            most = max(len(self._slots), self._without_slots)
            pending = pending_trials(connection, live | self._runs.without_room.trials, most)
            running = running_trials(connection, self._runs.active.values())
        for action in plan(pending, running, self._slots, self._policy, self._without_slots):
            match action:
                case Start(trial_id, slot_ids):
                    self._runs.start(trial_id, slot_ids)
                case Preempt(trial_id, experiment_id):
                    self._runs.preempt(trial_id, experiment_id)
        self._tell(pending)
        self.taken = {slot: run.trial_id for run in self._runs.active.values() for slot in run.slots}

    def _tell(self, pending: list[Pending]) -> None:
        with self._database.read() as connection:
            running = running_trials(connection, self._runs.active.values())
        self._stalled = self._runs.waits()
        waiting = {**self._stalled, **waits(pending, running, self._slots, self._policy, self._without_slots)}
        tell_waits(self._database, self._waits, waiting)
        self._waits = waiting


def pending_trials(connection: Connection, live: set[int], most: int) -> list[Pending]:
    """Return the trials that wait, `most` of each experiment, as many as could start; those in `live` do not."""
    found: list[Pending] = []
    resources: dict[int, Resources | None] = {}
    queued = trials.queued(connection, most + len(live))
    served = trials.last_runs(connection, {experiment_id for _, experiment_id in queued})
    for trial_id, experiment_id in queued:
        if trial_id in live:
            continue
        if experiment_id not in resources:
            resources[experiment_id] = _resources(connection, experiment_id)
        wanted = resources[experiment_id]
        if wanted is not None:
            found.append(
                Pending(
                    trial_id=trial_id,
                    experiment_id=experiment_id,
                    slots=wanted.slots_per_trial,
                    order=trial_id,
                    served=served.get(experiment_id, ""),
                    **_claim(wanted),
                )
            )
    return found


def running_trials(connection: Connection, active: Iterable[Active]) -> list[Running]:
    """Return the trials that hold slots."""
    active = list(active)
    claims = {
        number: _claim(Resources.model_validate(experiments.config_of(connection, number).get("resources", {})))
        for number in {run.experiment_id for run in active}
    }
    return [
        Running(
            run.trial_id,
            run.experiment_id,
            run.slots,
            started=run.run_id,
            ending=run.leaving,
            **claims[run.experiment_id],
        )
        for run in active
    ]


def _claim(resources: Resources) -> dict[str, Any]:
    return {"priority": resources.priority, "weight": resources.weight, "max_slots": resources.max_slots}


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
        large = [trial for trial in pending_trials(connection, set(), slots) if trial.slots > slots]
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
