"""On which machine trials run: filters are kept, gangs packed or spread, and nobody starves by slots he cannot use."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from det_native.master.scheduling.facts import Pending, Policy, Preempt, Running, Start
from det_native.master.scheduling.machines import Machines, Where
from det_native.master.scheduling.plan import plan
from det_native.master.scheduling.waits import missing_slots, waits
from det_native.schema.cluster import SlotsWanted
from det_native.schema.rest import SlotInfo

LABELS = {"a": {"zone": "north"}, "b": {"zone": "south"}, "c": {"zone": "south"}}


def _machines(**counts: tuple[int, str]) -> Machines:
    """Return machines, each with its number of slots and the type of its GPUs, which is empty where it has none."""
    return Machines(
        [
            SlotInfo(id=f"{name}/{number}", node=name, device="cuda" if kind else "cpu", accelerator=kind)
            for name, (count, kind) in counts.items()
            for number in range(count)
        ],
        LABELS,
    )


def _nodes(slots: tuple[str, ...]) -> Counter[str]:
    return Counter(slot.partition("/")[0] for slot in slots)


_WHERE = st.builds(
    Where,
    accelerator=st.sampled_from(["", "", "H100", "a100", "cpu", "B200"]),
    node=st.sampled_from(["", "", "a", "zone=south", "zone=west"]),
    spread=st.booleans(),
    single_node=st.booleans(),
)


@st.composite
def _situations(draw: st.DrawFn) -> tuple[list[Pending], list[Running], Machines]:
    kinds = st.sampled_from(["H100", "A100", ""])
    machines = _machines(**{name: (draw(st.integers(0, 4)), draw(kinds)) for name in "abcd"})
    free = draw(st.permutations(list(machines.position)))
    claims = {number: {"priority": draw(st.sampled_from([1, 42, 99]))} for number in range(1, 5)}
    running = []
    for trial_id in range(draw(st.integers(0, 4))):
        size, number = draw(st.integers(1, 2)), draw(st.integers(1, 4))
        if len(free) >= size:
            running.append(
                Running(trial_id, number, tuple(free[:size]), ending=draw(st.booleans()), **claims[number])  # type: ignore[arg-type]
            )
            free = free[size:]
    pending = []
    for trial_id in range(10, 10 + draw(st.integers(0, 8))):
        number = draw(st.integers(1, 4))
        where, size = draw(_WHERE), draw(st.integers(1, 6))
        pending.append(Pending(trial_id, number, size, trial_id, where=where, **claims[number]))  # type: ignore[arg-type]
    return pending, running, machines


@given(_situations(), st.sampled_from(Policy))
def test_no_slot_is_given_twice_and_every_filter_is_kept(
    situation: tuple[list[Pending], list[Running], Machines], policy: Policy
) -> None:
    pending, running, machines = situation
    actions = plan(pending, running, machines, policy)
    starts = [action for action in actions if isinstance(action, Start)]
    used = Counter(slot for item in [*starts, *running] for slot in item.slot_ids)
    assert all(count == 1 for count in used.values())
    wanted = {trial.trial_id: trial for trial in pending}
    for start in starts:
        trial = wanted[start.trial_id]
        assert len(start.slot_ids) == trial.slots
        assert set(start.slot_ids) <= machines.usable(trial.where).ids
        assert not trial.where.single_node or len(_nodes(start.slot_ids)) == 1


@given(_situations(), st.sampled_from(Policy))
def test_who_makes_room_has_slots_that_somebody_who_waits_can_use(
    situation: tuple[list[Pending], list[Running], Machines], policy: Policy
) -> None:
    pending, running, machines = situation
    holders = {trial.trial_id: trial for trial in running}
    for action in plan(pending, running, machines, policy):
        if isinstance(action, Preempt):
            heads = [trial for trial in pending if trial.experiment_id == action.experiment_id]
            slots = set(holders[action.trial_id].slot_ids)
            assert not holders[action.trial_id].ending
            assert any(slots & machines.usable(trial.where).ids for trial in heads)


@given(_situations(), st.sampled_from(Policy))
def test_a_trial_alone_is_packed_or_spread_as_far_as_possible(
    situation: tuple[list[Pending], list[Running], Machines], policy: Policy
) -> None:
    pending, running, machines = situation
    taken = {slot for trial in running for slot in trial.slot_ids}
    for trial in pending:
        free = _nodes(tuple(machines.usable(trial.where).ids - taken))
        actions = plan([trial], [one for one in running if one.trial_id not in [trial.trial_id]], machines, policy)
        given = [action.slot_ids for action in actions if isinstance(action, Start)]
        able = max(free.values(), default=0) if trial.where.single_node else free.total()
        assert bool(given) == (trial.slots <= able)
        if not given:
            continue
        got = _nodes(given[0])
        if trial.where.spread and not trial.where.single_node:
            assert len(got) == min(trial.slots, len(free))
        else:
            fewest = next(
                count
                for count in range(1, len(free) + 1)
                if any(sum(free[name] for name in names) >= trial.slots for names in combinations(free, count))
            )
            assert len(got) == fewest
            if fewest == 1:
                [node] = got
                assert free[node] == min(count for count in free.values() if count >= trial.slots)


@given(_situations(), st.sampled_from(Policy))
def test_slots_that_one_who_waits_cannot_use_go_to_the_others(
    situation: tuple[list[Pending], list[Running], Machines], policy: Policy
) -> None:
    """Of all slots that stay free, none could start the next trial of an experiment unless it waits for its turn."""
    pending, running, machines = situation
    actions = plan(pending, running, machines, policy)
    started = {action.trial_id for action in actions if isinstance(action, Start)}
    taken = {slot for item in [*running, *actions] if not isinstance(item, Preempt) for slot in item.slot_ids}
    heads: dict[int, Pending] = {}
    for trial in pending:
        if trial.trial_id not in started:
            heads.setdefault(trial.experiment_id, trial)
    for head in heads.values():
        usable = machines.usable(head.where)
        free = _nodes(tuple(usable.ids - taken))
        able = max(free.values(), default=0) if head.where.single_node else free.total()
        if head.slots <= able:  # then another one that comes before it waits for some of these
            others = [other for other in heads.values() if other is not head]
            assert any(machines.usable(other.where).ids & usable.ids for other in others)


@given(_situations(), st.sampled_from(Policy), st.randoms())
def test_the_same_facts_give_the_same_plan_in_any_order(
    situation: tuple[list[Pending], list[Running], Machines], policy: Policy, random: object
) -> None:
    pending, running, machines = situation
    expected = plan(pending, running, machines, policy)
    random.shuffle(pending)  # type: ignore[attr-defined]
    random.shuffle(running)  # type: ignore[attr-defined]
    assert plan(pending, running, machines, policy) == expected


@given(_situations(), st.sampled_from(Policy))
def test_all_come_to_their_end_that_could_run(
    situation: tuple[list[Pending], list[Running], Machines], policy: Policy
) -> None:
    pending, running, machines = situation
    owners = {trial.trial_id: trial for trial in pending}
    for _ in range(100):
        actions = plan(pending, running, machines, policy)
        asked = {action.trial_id for action in actions if isinstance(action, Preempt)}
        running = [trial for trial in running if trial.trial_id not in asked]  # and does not come back
        for action in actions:
            if isinstance(action, Start):
                trial = owners[action.trial_id]
                running.append(Running(trial.trial_id, trial.experiment_id, action.slot_ids, priority=trial.priority))
        pending = [trial for trial in pending if trial.trial_id not in {one.trial_id for one in running}]
        if not running and not actions:  # those that made room are gone, and the next plan gives it away
            break
        running = running[1:]
    blocked = {trial.experiment_id for trial in pending if not _could_run(trial, machines)}
    assert all(trial.experiment_id in blocked for trial in pending)


def _could_run(trial: Pending, machines: Machines) -> bool:
    return machines.usable(trial.where).fits(trial.slots, single_node=trial.where.single_node)


def test_a_gpu_comes_before_processors_and_they_are_never_mixed() -> None:
    machines = _machines(head=(8, ""), a=(2, "H100"))
    assert plan([Pending(1, 1, 2, 0)], [], machines) == [Start(1, ("a/0", "a/1"))]
    assert plan([Pending(1, 1, 3, 0)], [], machines) == []
    assert plan([Pending(1, 1, 1, 0, where=Where(accelerator="cpu"))], [], machines) == [Start(1, ("head/0",))]
    assert plan([Pending(1, 1, 1, 0, where=Where(node="head"))], [], machines) == [Start(1, ("head/0",))]


def test_only_those_make_room_whose_slots_can_be_used() -> None:
    machines = _machines(a=(2, "H100"), b=(2, "A100"))
    running = [Running(1, 1, ("a/0", "a/1"), started="1"), Running(2, 2, ("b/0", "b/1"), started="2")]
    wanted = Pending(9, 9, 1, 0, priority=1, where=Where(accelerator="H100"))
    assert plan([wanted], running, machines) == [Preempt(1, 9)]


def test_room_on_one_machine_is_made_where_it_costs_least() -> None:
    machines = _machines(a=(4, "H100"), b=(4, "H100"))
    running = [
        Running(1, 1, ("a/0", "a/1"), started="1"),
        Running(2, 2, ("a/2", "a/3"), started="2"),
        Running(3, 3, ("b/0",), started="3"),
    ]
    gang = Pending(9, 9, 4, 0, priority=1, where=Where(single_node=True))
    assert plan([gang], running, machines) == [Preempt(3, 9)]


def test_one_who_waits_for_a_machine_holds_back_one_only() -> None:
    machines = _machines(a=(4, "H100"), b=(4, "H100"))
    running = [Running(1, 1, ("a/0",)), Running(2, 2, ("b/0", "b/1"))]
    gang = Pending(8, 8, 4, 0, where=Where(single_node=True))
    small = [Pending(9, 9, 2, 0), Pending(10, 10, 1, 0)]
    assert plan([gang, *small], running, machines) == [Start(9, ("b/2", "b/3"))]


def test_what_is_not_there_is_said_and_wanted_the_most_important_first() -> None:
    machines = _machines(a=(2, "H100"), b=(4, "A100"))
    running = [Running(1, 1, ("a/0",))]
    pending = [
        Pending(7, 7, 8, 0, priority=50),
        Pending(8, 8, 4, 0, where=Where(accelerator="H100")),
        Pending(9, 9, 2, 0, where=Where(accelerator="H100")),
        Pending(10, 10, 4, 0, max_slots=3),
        Pending(11, 11, 8, 0, priority=60, where=Where(node="zone=b", single_node=True)),
        Pending(12, 12, 1, 0, where=Where(node="c")),
    ]
    asked = "Ray's autoscaler"
    assert waits(pending, running, machines, asked=asked) == {
        7: "8 slots: the cluster has 6; Ray's autoscaler has been asked",
        8: "4 slots of H100: the cluster has 2; Ray's autoscaler has been asked",
        9: "2 of 2 slots of H100: #1 has them",
        10: "4 slots: its max_slots is 3",
        11: "8 slots on zone=b: the cluster has none (see `det nodes`); Ray's autoscaler has been asked",
        12: "1 slot on c: the cluster has none (see `det nodes`)",
    }
    assert missing_slots(pending, running, machines) == [
        SlotsWanted(slots=4, accelerator="H100"),
        SlotsWanted(slots=2, accelerator="H100"),
        SlotsWanted(slots=8),
        SlotsWanted(slots=8, node="zone=b", single_node=True),
    ]
