"""A cluster without processes, which does what the plan says and checks it at every step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, auto

from det_native.master.scheduling.facts import Action, Claim, Pending, Policy, Preempt, Running, Start
from det_native.master.scheduling.plan import MOST_WITHOUT_SLOTS, plan


class State(Enum):
    WAITS = auto()
    RUNS = auto()
    OVER = auto()


@dataclass
class ModelTrial:
    trial_id: int
    experiment_id: int
    slots: int
    state: State = State.WAITS
    slot_ids: tuple[str, ...] = ()
    started: str = ""
    ending: bool = False
    preempted: int = 0


@dataclass
class ModelExperiment:
    claim: Claim
    trials: list[ModelTrial]
    served: str = ""
    paused: bool = False


@dataclass
class ClusterModel:
    slots: tuple[str, ...]
    policy: Policy
    without_slots: int = MOST_WITHOUT_SLOTS
    experiments: dict[int, ModelExperiment] = field(default_factory=dict)
    clock: int = 0
    trials: dict[int, ModelTrial] = field(default_factory=dict)
    preemptions: int = 0

    def submit(self, count: int, slots: int, claim: Claim) -> int:
        number = len(self.experiments) + 1
        first = len(self.trials)
        made = [ModelTrial(first + index, number, slots) for index in range(count)]
        self.trials |= {trial.trial_id: trial for trial in made}
        self.experiments[number] = ModelExperiment(claim, made)
        return number

    def end(self, trial_id: int) -> None:
        """The worker of a trial has ended: for good, unless it was asked to make room."""
        trial = self.trials[trial_id]
        assert trial.state is State.RUNS
        trial.state = State.WAITS if trial.ending else State.OVER
        trial.slot_ids, trial.ending = (), False

    def pause(self, number: int) -> None:
        self.experiments[number].paused = True
        for trial in self.experiments[number].trials:
            trial.ending = trial.ending or trial.state is State.RUNS

    def kill(self, number: int) -> None:
        for trial in self.experiments[number].trials:
            trial.state, trial.slot_ids, trial.ending = State.OVER, (), False

    def schedule(self) -> list[Action]:
        """Do what the plan says until it says nothing more, which it soon does."""
        done = []
        for _ in range(10):
            actions = self._follow_plan()
            if not actions:
                self.check_work_without_slots()
                return done
            done += actions
        raise AssertionError("the plan comes to no end")

    def _follow_plan(self) -> list[Action]:
        pending, running = self.pending(), self.running()
        actions = plan(pending, running, self.slots, self.policy, self.without_slots)
        over = {trial.trial_id for trial in self.trials.values() if trial.state is State.OVER}
        assert not over & {action.trial_id for action in actions}
        for action in actions:
            self.clock += 1
            if isinstance(action, Start):
                self._start(action)
            else:
                self._preempt(action)
        self.check()
        return actions

    def _start(self, action: Start) -> None:
        trial = self.trials[action.trial_id]
        experiment = self.experiments[trial.experiment_id]
        assert trial.state is State.WAITS
        assert not experiment.paused
        assert len(action.slot_ids) == trial.slots
        trial.state, trial.slot_ids, trial.started = State.RUNS, action.slot_ids, f"{self.clock:09}"
        experiment.served = trial.started
        limit = experiment.claim.max_slots
        assert limit is None or self.held(trial.experiment_id) <= limit

    def _preempt(self, action: Preempt) -> None:
        trial = self.trials[action.trial_id]
        assert trial.state is State.RUNS
        assert trial.slot_ids
        assert not trial.ending
        mine = self.experiments[trial.experiment_id].claim
        if action.experiment_id is None:
            assert mine.max_slots is not None
            assert self.held(trial.experiment_id) > mine.max_slots
        elif self.policy is Policy.PRIORITY:
            assert mine.level > self.experiments[action.experiment_id].claim.level
        else:
            assert action.experiment_id != trial.experiment_id
        trial.ending = True
        trial.preempted += 1
        self.preemptions += 1

    def held(self, number: int) -> int:
        return sum(len(trial.slot_ids) for trial in self.experiments[number].trials)

    def pending(self) -> list[Pending]:
        return [
            Pending(trial.trial_id, number, trial.slots, trial.trial_id, one.served, **vars(one.claim))
            for number, one in self.experiments.items()
            if not one.paused
            for trial in one.trials
            if trial.state is State.WAITS
        ]

    def running(self) -> list[Running]:
        return [
            Running(trial.trial_id, number, trial.slot_ids, trial.started, trial.ending, **vars(one.claim))
            for number, one in self.experiments.items()
            for trial in one.trials
            if trial.state is State.RUNS
        ]

    def check(self) -> None:
        """No slot is given twice, and a trial has all its slots or none."""
        used = Counter(slot for trial in self.trials.values() for slot in trial.slot_ids)
        assert all(count == 1 for count in used.values())
        assert set(used) <= set(self.slots)
        runs = [trial for trial in self.trials.values() if trial.state is State.RUNS]
        assert all(len(trial.slot_ids) == trial.slots for trial in runs)
        assert all(not trial.slot_ids for trial in self.trials.values() if trial.state is not State.RUNS)
        assert sum(not trial.slots for trial in runs) <= self.without_slots

    def check_work_without_slots(self) -> None:
        """Work without slots waits for nothing but its own limit."""
        waiting = [trial for trial in self.pending() if trial.slots == 0]
        run = sum(not trial.slots for trial in self.trials.values() if trial.state is State.RUNS)
        assert not waiting or run == self.without_slots
