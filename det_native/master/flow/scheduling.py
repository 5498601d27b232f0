"""Puts the facts of the store before the scheduler."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from det_native.master.flow.active import Active
from det_native.master.flow.after import Earlier, earlier
from det_native.master.flow.context import tell_experiment
from det_native.master.flow.runs import Runs
from det_native.master.flow.slots import Slots
from det_native.master.scheduling.facts import Pending, Policy, Preempt, Running, Start
from det_native.master.scheduling.machines import Where
from det_native.master.scheduling.plan import MOST_WITHOUT_SLOTS, plan
from det_native.master.scheduling.waits import missing_slots, waits
from det_native.master.store import experiments, logs, trials, unfinished
from det_native.master.store.database import Database
from det_native.schema.cluster import SlotsWanted
from det_native.schema.resources import Resources
from det_native.schema.states import ExperimentState

logger = logging.getLogger(__name__)

# So many experiments are told in one transaction what they wait for.
TOLD_AT_ONCE = 10


class Scheduling:
    """Carries out what the plan says, and tells who waits. Used by the decision thread only."""

    def __init__(
        self,
        database: Database,
        slots: Slots,
        policy: Policy,
        runs: Runs,
        without_slots: int = MOST_WITHOUT_SLOTS,
        asked: str = "",
    ) -> None:
        self._without_slots = without_slots
        self._asked = asked if slots.cluster is not None else ""
        self._database = database
        self._slots = slots
        self._wanted: list[SlotsWanted] = []
        self._policy = policy
        self._runs = runs
        self._waits_now: dict[int, str] = {}
        self._waits_told: dict[int, str] = {}
        self._stalled: dict[int, str] = {}
        self._wants = KnownWants()
        self._may_begin: set[int] = set()
        #: Experiments that cannot begin any more, since one before them has not completed, and why.
        self.refused: dict[int, str] = {}
        self.taken: dict[str, Active] = {}

    @property
    def policy(self) -> Policy:
        """By what experiments come before others."""
        return self._policy

    def take_up(self) -> None:
        """Begin with what an earlier master has told."""
        with self._database.read() as connection:
            self._waits_told = experiments.waiting(connection)
        self._waits_now = dict(self._waits_told)
        if self._slots.cluster is None:
            tell_who_cannot_run(self._database, len(self._slots.now))

    @property
    def outdated(self) -> bool:
        """Whether something else than slots keeps an experiment waiting than when it was last told."""
        return self._runs.waits() != self._stalled

    def schedule(self) -> None:
        """Start the trials whose turn it is, have others make room, and note who waits for what, to be told."""
        live = {run.trial_id for run in self._runs.active.values()}
        with self._database.read() as connection:
            most = max(len(self._slots.now), self._without_slots)
            wants, after = self._after_others(connection, self._wants.read(connection))
            pending = pending_trials(connection, wants, live | self._runs.held, most)
            running = running_trials(connection, wants, self._runs.workers)
        trouble = self._slots.trouble
        machines, rule = self._slots.machines, (self._policy, self._without_slots)
        actions = [] if trouble else plan(pending, running, machines, *rule)
        for action in actions:
            match action:
                case Start(trial_id, slot_ids):
                    self._runs.start(trial_id, slot_ids)
                case Preempt(trial_id, experiment_id):
                    self._runs.preempt(trial_id, experiment_id)
        if actions:
            with self._database.read() as connection:
                running = running_trials(connection, wants, self._runs.workers)
        if trouble:
            at_work = {trial.experiment_id for trial in running}
            # Why the cluster is away is the notice of every experiment: said here too, it would be told twice.
            waiting = {one.experiment_id: "the cluster" for one in pending if one.experiment_id not in at_work}
        else:
            waiting = waits(pending, running, machines, *rule, self._asked)
            self._want(missing_slots(pending, running, machines))
        self._stalled = self._runs.waits()
        self._waits_now = {**self._stalled, **waiting, **after}
        # Of a cluster that does not answer nobody hears that processes are gone whose trials have said their end.
        active = [run for run in self._runs.active.values() if not (trouble and run.linger_until != float("inf"))]
        self.taken = {slot: run for run in active for slot in run.slots}
        self.tell()

    def _want(self, missing: list[SlotsWanted]) -> None:
        """Say to the cluster what waits, where that has changed."""
        cluster = self._slots.cluster
        if cluster is not None and missing != self._wanted:
            self._wanted = missing
            cluster.want(missing)

    def _after_others(
        self, connection: Connection, wants: Mapping[int, Wants]
    ) -> tuple[dict[int, Wants], dict[int, str]]:
        """Return what trials need, none of experiments that come after others which go on; and what those wait for.

        Those that cannot begin any more are in :attr:`refused`.
        """
        kept, waiting = dict(wants), {}
        self.refused = {}
        self._may_begin &= wants.keys()
        for number, wanted in wants.items():
            if not wanted.after or number in self._may_begin:
                continue
            found = Earlier() if trials.has_run(connection, number) else earlier(connection, wanted.after)
            if found.refused:
                self.refused[number] = found.refused
            elif found.waits_for:
                waiting[number] = found.waits_for
            else:
                self._may_begin.add(number)
                continue
            kept[number] = replace(wanted, starts=False)
        return kept, waiting

    @property
    def untold(self) -> bool:
        """Whether there is more to be told of who waits for what."""
        return self._waits_told != self._waits_now

    def tell(self) -> None:
        """Keep and tell what experiments wait for, where that has changed; of very many, some at a time.

        The rest is :attr:`untold`, for the next call: nobody who wants to write, or a decision, waits for all of it.
        """
        told, now = self._waits_told, self._waits_now
        changed = [number for number in {*told, *now} if told.get(number) != now.get(number)]
        # Those that wait no longer first, then in the order in which they were submitted.
        changed.sort(key=lambda number: (number in now, number))
        some = changed[:TOLD_AT_ONCE]
        tell_waits(self._database, {number: now.get(number) for number in some})
        for number in some:
            if number in now:
                told[number] = now[number]
            else:
                told.pop(number, None)


@dataclass(frozen=True)
class Wants:
    """What the trials of an experiment that has not ended need; None where its row cannot be read."""

    starts: bool
    resources: Resources | None
    after: tuple[int, ...] = ()


class KnownWants:
    """What the trials of experiments that have not ended need, as it was read before where that has not changed."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[str, Resources | None, tuple[int, ...]]] = {}

    def read(self, connection: Connection) -> dict[int, Wants]:
        """Ask for all of them: one question, however many there are."""
        rows = unfinished.configs(connection)
        self._known = {number: self._of(number, config) for number, (_, config) in rows.items()}
        return {
            number: Wants(state is ExperimentState.ACTIVE, *self._known[number][1:])
            for number, (state, _) in rows.items()
        }

    def _of(self, number: int, config: str) -> tuple[str, Resources | None, tuple[int, ...]]:
        known = self._known.get(number)
        return known if known is not None and known[0] == config else (config, _resources(config), _after(config))


def _resources(config: str) -> Resources | None:
    try:
        return Resources.model_validate(json.loads(config).get("resources", {}))
    except (ValueError, TypeError, AttributeError):  # told at the start of the master; the others must go on
        return None


def _after(config: str) -> tuple[int, ...]:
    """Return the experiments that one comes after."""
    try:
        return tuple(int(number) for number in json.loads(config).get("after") or ())
    except (ValueError, TypeError, AttributeError):
        return ()


def pending_trials(connection: Connection, wants: Mapping[int, Wants], live: set[int], most: int) -> list[Pending]:
    """Return the trials that wait, `most` of each experiment, as many as could start; those in `live` do not."""
    found: list[Pending] = []
    served = trials.last_runs(connection)
    for trial_id, experiment_id in trials.queued(connection, most + len(live)):
        wanted = wants.get(experiment_id)
        if trial_id in live or wanted is None or not wanted.starts or wanted.resources is None:
            continue
        found.append(
            Pending(
                trial_id=trial_id,
                experiment_id=experiment_id,
                slots=wanted.resources.slots_per_trial,
                order=trial_id,
                served=served.get(experiment_id, ""),
                where=_where(wanted.resources),
                **_claim(wanted.resources),
            )
        )
    return found


def running_trials(connection: Connection, wants: Mapping[int, Wants], active: Iterable[Active]) -> list[Running]:
    """Return the trials that hold slots."""
    return [
        Running(
            run.trial_id,
            run.experiment_id,
            run.slots,
            started=run.run_id,
            ending=run.leaving,
            **_claim(_resources_of_running(connection, wants, run.experiment_id)),
        )
        for run in active
    ]


def _resources_of_running(connection: Connection, wants: Mapping[int, Wants], experiment_id: int) -> Resources:
    known = wants.get(experiment_id)
    if known is not None:
        return known.resources or Resources()
    # It has ended, and a worker of it has not yet.
    return Resources.model_validate(experiments.config_of(connection, experiment_id).get("resources", {}))


def _claim(resources: Resources) -> dict[str, Any]:
    return {"priority": resources.priority, "weight": resources.weight, "max_slots": resources.max_slots}


def _where(resources: Resources) -> Where:
    return Where(
        accelerator=resources.accelerator or "",
        node=resources.node or "",
        spread=resources.placement == "spread",
        single_node=resources.on_one_machine,
    )


def tell_who_cannot_run(database: Database, slots: int) -> None:
    """Tell trials that wait for more slots than this cluster has, since it was started with fewer, what to do."""
    with database.read() as connection:
        pending = pending_trials(connection, KnownWants().read(connection), set(), slots)
    large = [trial for trial in pending if trial.slots > slots]
    for trial in large:
        text = (
            f"It waits: it needs {trial.slots} slots, and the cluster was started with {slots}. `det down`, then "
            f"`det up --slots {trial.slots}`, starts it with enough."
        )
        logger.warning("trial with the id %d of experiment %d: %s", trial.trial_id, trial.experiment_id, text)
        with database.write() as transaction:
            logs.add(transaction, trial.trial_id, "", "system", [text])


def tell_waits(database: Database, changed: Mapping[int, str | None]) -> None:
    """Keep and tell what these experiments wait for; None where they wait for nothing any more."""
    if not changed:
        return
    with database.write() as transaction:
        for experiment_id, text in changed.items():
            experiments.set_waits_for(transaction, experiment_id, text)
            if not experiments.get(transaction.connection, experiment_id).state.terminal:
                tell_experiment(transaction, experiment_id)
