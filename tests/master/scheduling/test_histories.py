"""Whatever happens to a cluster: no slot is given twice, nobody makes room in vain, and all come to their end."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from cluster_model import ClusterModel, State
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tries import Tries, counted

from det_native.master.scheduling.facts import Claim, Policy, Preempt, Start
from det_native.master.scheduling.waits import waits

_CLAIMS = st.builds(
    Claim,
    priority=st.none() | st.sampled_from([1, 10, 42, 99]),
    weight=st.sampled_from([0.5, 1.0, 3.0]),
    max_slots=st.none() | st.integers(1, 6),
)


class Histories(RuleBasedStateMachine):
    tries: ClassVar[Tries] = Tries()

    @initialize(slots=st.integers(1, 6), policy=st.sampled_from(Policy), without_slots=st.sampled_from([1, 3, 100]))
    def begin(self, slots: int, policy: Policy, without_slots: int) -> None:
        self.tries.tried += 1
        self.cluster = ClusterModel(tuple(f"cpu:{index}" for index in range(slots)), policy, without_slots)

    @rule(count=st.integers(1, 5), slots=st.integers(0, 4), claim=_CLAIMS)
    def submit(self, count: int, slots: int, claim: Claim) -> None:
        self.cluster.submit(count, slots, claim)
        self.cluster.schedule()

    def _running(self) -> list[int]:
        return [trial.trial_id for trial in self.cluster.trials.values() if trial.state is State.RUNS]

    @precondition(lambda self: bool(self._running()))
    @rule(data=st.data())
    def a_worker_ends(self, data: Any) -> None:
        self.cluster.end(data.draw(st.sampled_from(self._running())))
        self.cluster.schedule()

    @precondition(lambda self: bool(self.cluster.experiments))
    @rule(data=st.data(), what=st.sampled_from(["pause", "resume", "kill"]))
    def somebody_asks(self, data: Any, what: str) -> None:
        number = data.draw(st.sampled_from(sorted(self.cluster.experiments)))
        match what:
            case "pause":
                self.cluster.pause(number)
            case "resume":
                self.cluster.experiments[number].paused = False
            case "kill":
                self.cluster.kill(number)
        self.cluster.schedule()

    @precondition(lambda self: bool(self.cluster.experiments))
    @rule(data=st.data(), claim=_CLAIMS)
    def a_claim_changes(self, data: Any, claim: Claim) -> None:
        number = data.draw(st.sampled_from(sorted(self.cluster.experiments)))
        self.cluster.experiments[number].claim = claim
        self.cluster.schedule()

    @invariant()
    def who_holds_nothing_is_told_why(self) -> None:
        cluster = getattr(self, "cluster", None)
        if cluster is None:
            return
        said = waits(cluster.pending(), cluster.running(), cluster.slots, cluster.policy, cluster.without_slots)
        at_work = {trial.experiment_id for trial in cluster.running()}
        assert set(said) == {trial.experiment_id for trial in cluster.pending()} - at_work
        assert all(said.values())

    def teardown(self) -> None:
        """Once nobody interferes any more, every trial that can ever run comes to its end."""
        cluster = getattr(self, "cluster", None)
        if cluster is None:
            return
        for experiment in cluster.experiments.values():
            experiment.paused = False
        cluster.schedule()
        for _ in range(3 * len(cluster.trials) + 1):
            for trial_id in self._running():
                cluster.end(trial_id)
            cluster.schedule()
        left = [trial for trial in cluster.trials.values() if trial.state is not State.OVER]
        for trial in left:
            limit = cluster.experiments[trial.experiment_id].claim.max_slots
            assert trial.slots > len(cluster.slots) or (limit is not None and trial.slots > limit)
        self.tries.survived += 1


@pytest.fixture(scope="module", autouse=True)
def _histories() -> Iterator[None]:
    """Count the histories of the module."""
    with counted("histories of a cluster, in a model") as tries:
        Histories.tries = tries
        yield


TestHistories = Histories.TestCase
TestHistories.settings = settings(deadline=None)
TestHistories.pytestmark = [pytest.mark.slow]


def _simulate(trials: int, policy: Policy, seed: int) -> tuple[ClusterModel, float, float]:
    """Run experiments of many trials on 16 slots; return the cluster, the time taken, and slot time of the trials."""
    drawn = random.Random(seed)
    cluster = ClusterModel(tuple(f"cpu:{index}" for index in range(16)), policy)
    left = trials
    arrivals = []
    while left:
        count = min(left, drawn.choice([1, 4, 16, 64, 256]))
        claim = Claim(priority=drawn.choice([None, 10, 90]), weight=drawn.choice([1.0, 2.0]))
        arrivals.append((count, drawn.choice([1, 1, 1, 2, 4]), claim))
        left -= count
    needed = {}
    clock, work = 0.0, 0.0
    ends: list[tuple[float, int, str]] = []
    while arrivals or ends:
        if arrivals and len(cluster.pending()) < 100:
            count, slots, claim = arrivals.pop()
            number = cluster.submit(count, slots, claim)
            for trial in cluster.experiments[number].trials:
                needed[trial.trial_id] = drawn.uniform(1, 10)
                work += needed[trial.trial_id] * slots
        if ends:
            clock, trial_id, started = heapq.heappop(ends)
            if cluster.trials[trial_id].started == started and cluster.trials[trial_id].state is State.RUNS:
                if cluster.trials[trial_id].ending:
                    needed[trial_id] = 1.0  # what is left of it
                cluster.end(trial_id)
        for action in cluster.schedule():
            trial = cluster.trials[action.trial_id]
            if isinstance(action, Start):
                heapq.heappush(ends, (clock + needed[trial.trial_id], trial.trial_id, trial.started))
            else:
                heapq.heappush(ends, (clock + 0.1, trial.trial_id, trial.started))
    return cluster, clock, work


def _check_simulation(trials: int, policy: Policy) -> None:
    cluster, took, work = _simulate(trials, policy, seed=30)
    states = Counter(trial.state for trial in cluster.trials.values())
    assert states == {State.OVER: trials}
    assert cluster.preemptions
    assert took < 1.5 * work / len(cluster.slots)


@pytest.mark.parametrize("policy", Policy)
def test_hundreds_of_trials_all_end(policy: Policy) -> None:
    _check_simulation(300, policy)


@pytest.mark.soak
@pytest.mark.parametrize("policy", Policy)
def test_ten_thousand_trials_all_end(policy: Policy) -> None:
    with counted(f"trials on 16 slots by {policy}, in a model") as tries:
        tries.tried = 10_000
        _check_simulation(tries.tried, policy)
        tries.survived = tries.tried


def _cluster(slots: int, policy: Policy = Policy.PRIORITY) -> ClusterModel:
    return ClusterModel(tuple(f"cpu:{index}" for index in range(slots)), policy)


def _end_who_was_asked(cluster: ClusterModel) -> None:
    for trial in cluster.running():
        if trial.ending:
            cluster.end(trial.trial_id)


def _holds(cluster: ClusterModel) -> list[int]:
    return [cluster.held(number) for number in cluster.experiments]


def test_a_lower_priority_makes_room_and_goes_on_later() -> None:
    cluster = _cluster(2)
    cluster.submit(2, 1, Claim())
    cluster.schedule()
    cluster.submit(1, 2, Claim(priority=10))
    assert cluster.schedule() == [Preempt(1, 2), Preempt(0, 2)]
    cluster.end(1)
    assert cluster.schedule() == []  # both or none
    cluster.end(0)
    assert cluster.schedule() == [Start(2, cluster.slots)]
    cluster.end(2)
    assert [action.trial_id for action in cluster.schedule()] == [0, 1]


def test_the_lowest_priority_and_the_newest_make_room_first_and_no_more_than_needed() -> None:
    cluster = _cluster(4)
    for claim in (Claim(priority=50), Claim(priority=60), Claim(priority=60)):
        cluster.submit(1, 1, claim)
        cluster.schedule()
    cluster.submit(1, 2, Claim(priority=1))
    assert cluster.schedule() == [Preempt(2, 4)]


def test_nobody_makes_room_in_vain() -> None:
    cluster = _cluster(2)
    cluster.submit(1, 1, Claim(priority=10))
    cluster.submit(1, 1, Claim())
    cluster.schedule()
    cluster.submit(1, 2, Claim(priority=10))
    assert cluster.schedule() == []  # one of its own priority has the other slot
    cluster.end(0)
    assert cluster.schedule() == [Preempt(1, 3)]


def test_one_of_its_own_priority_never_makes_room() -> None:
    cluster = _cluster(1)
    cluster.submit(1, 1, Claim())
    cluster.schedule()
    cluster.submit(1, 1, Claim(priority=42))
    assert cluster.schedule() == []


@pytest.mark.parametrize(
    ("demands", "expected"),
    [((10, 30), [4, 4]), ((3, 6), [3, 5]), ((1, 20), [1, 7])],
)
def test_fair_share_takes_from_who_has_more_than_their_share(demands: tuple[int, int], expected: list[int]) -> None:
    cluster = _cluster(8, Policy.FAIR_SHARE)
    cluster.submit(demands[1], 1, Claim(priority=1))
    cluster.schedule()
    cluster.submit(demands[0], 1, Claim(priority=99))
    cluster.schedule()
    _end_who_was_asked(cluster)
    cluster.schedule()
    assert sorted(_holds(cluster)) == expected
    assert not any(trial.ending for trial in cluster.running())


def test_fair_share_goes_by_weight() -> None:
    cluster = _cluster(8, Policy.FAIR_SHARE)
    cluster.submit(20, 1, Claim(weight=1.0))
    cluster.schedule()
    cluster.submit(20, 1, Claim(weight=3.0))
    cluster.schedule()
    _end_who_was_asked(cluster)
    cluster.schedule()
    assert _holds(cluster) == [2, 6]


def test_a_lower_limit_takes_slots_back() -> None:
    cluster = _cluster(4)
    cluster.submit(4, 1, Claim())
    cluster.schedule()
    cluster.experiments[1].claim = Claim(max_slots=1)
    assert cluster.schedule() == [Preempt(trial, None) for trial in (3, 2, 1)]
    _end_who_was_asked(cluster)
    assert cluster.schedule() == []
    assert _holds(cluster) == [1]


def test_work_without_slots_waits_for_nobody() -> None:
    cluster = _cluster(1)
    cluster.submit(1, 1, Claim(priority=1))
    cluster.submit(150, 0, Claim(priority=99))
    assert len(cluster.schedule()) == 101
    assert waits([], cluster.running(), cluster.slots) == {}


def test_who_waits_is_told_that_others_make_room() -> None:
    cluster = _cluster(2)
    cluster.submit(2, 1, Claim())
    cluster.schedule()
    cluster.submit(1, 2, Claim(priority=10))
    cluster.schedule()
    said = waits(cluster.pending(), cluster.running(), cluster.slots)
    assert said == {2: "2 of 2 slots: #1 saves its state to make room"}
