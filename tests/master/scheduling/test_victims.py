"""Which running trials make room: as few as possible of the least important, or of those that hold most."""

from __future__ import annotations

from dataclasses import replace

import pytest

from det_native.master.scheduling.facts import Pending, Policy, Preempt, Running
from det_native.master.scheduling.machines import ANYWHERE, Machines, Where
from det_native.master.scheduling.plan import plan
from det_native.schema.rest import SlotInfo

ONE_MACHINE = Where(single_node=True)


def machines(**counts: int) -> Machines:
    return Machines(
        SlotInfo(id=f"{name}{number}", node=name, device="cuda", accelerator="H100")
        for name, count in counts.items()
        for number in range(count)
    )


def holder(
    trial: int, slots: str, *, priority: int = 42, experiment: int | None = None, weight: float = 1.0
) -> Running:
    """Return a running trial of an experiment of its own; those of higher numbers are newer."""
    number = trial if experiment is None else experiment
    return Running(trial, number, tuple(slots.split()), started=f"{trial:02}", priority=priority, weight=weight)


def wanted(slots: int, *, priority: int = 42, where: Where = ANYWHERE, weight: float = 1.0) -> Pending:
    return Pending(99, 99, slots, 0, priority=priority, where=where, weight=weight)


def victims(
    pending: Pending | list[Pending], running: list[Running], slots: Machines, policy: Policy = Policy.PRIORITY
) -> list[int]:
    waiting = [pending] if isinstance(pending, Pending) else pending
    return [action.trial_id for action in plan(waiting, running, slots, policy) if isinstance(action, Preempt)]


FOUR = [holder(1, "a0", priority=50), holder(2, "a1", priority=60), holder(3, "a2", priority=60), holder(4, "a3")]


@pytest.mark.parametrize(
    ("slots", "priority", "asked"),
    [(1, 42, [3]), (2, 42, [3, 2]), (3, 42, [3, 2, 1]), (4, 42, []), (4, 41, [3, 2, 1, 4]), (1, 60, []), (1, 59, [3])],
)
def test_the_least_important_go_first_and_the_newest_of_equals(slots: int, priority: int, asked: list[int]) -> None:
    assert victims(wanted(slots, priority=priority), FOUR, machines(a=4)) == asked


def test_a_small_one_stays_where_a_large_one_has_to_go_anyway() -> None:
    running = [holder(1, "a0 a1 a2", priority=60), holder(2, "a3", priority=60)]
    assert victims(wanted(3), running, machines(a=4)) == [1]
    assert victims(wanted(4), running, machines(a=4)) == [2, 1]


def test_what_is_coming_already_is_not_asked_for_again() -> None:
    ending = [*FOUR[:2], replace(FOUR[2], ending=True), FOUR[3]]
    assert victims(wanted(1), ending, machines(a=4)) == []
    assert victims(wanted(2), ending, machines(a=4)) == [2]
    assert victims(wanted(4), ending, machines(a=4)) == []


def test_slots_on_machines_that_are_gone_are_no_room() -> None:
    running = [holder(1, "a0", priority=60), holder(2, "gone0", priority=60)]
    assert victims(wanted(1), running, machines(a=1)) == [1]


@pytest.mark.parametrize(("slots", "asked"), [(1, [4]), (2, [4, 3]), (3, [])])
def test_by_fair_share_whoever_holds_most_spares_what_leaves_it_no_less_than_the_other(
    slots: int, asked: list[int]
) -> None:
    most = [holder(number + 1, f"a{number}", experiment=1) for number in range(4)]
    running = [*most, holder(5, "a4", experiment=2), holder(6, "a5", experiment=2)]
    assert victims(wanted(slots, priority=1), running, machines(a=6), Policy.FAIR_SHARE) == asked


def test_by_fair_share_weights_count_on_both_sides() -> None:
    heavy = [holder(number + 1, f"a{number}", experiment=1, weight=3.0) for number in range(4)]
    running = [*heavy, holder(5, "a4", experiment=2), holder(6, "a5", experiment=2)]
    assert victims(wanted(1), running, machines(a=6), Policy.FAIR_SHARE) == [6]
    assert victims(wanted(2), running, machines(a=6), Policy.FAIR_SHARE) == []
    assert victims(wanted(2, weight=2.0), running, machines(a=6), Policy.FAIR_SHARE) == [6, 4]


@pytest.mark.parametrize(
    ("running", "asked"),
    [
        # Less important comes before fewer slots, and that before fewer trials.
        ([holder(1, "a0 a1", priority=50), holder(2, "b0", priority=60), holder(3, "b1", priority=60)], [3, 2]),
        ([holder(1, "a0 a1", priority=60), holder(2, "b0", priority=60), holder(3, "b1", priority=60)], [1]),
        ([holder(1, "a0 a1 a2", priority=60), holder(2, "b0 b1", priority=60)], [2]),
        ([holder(1, "a0 a1", priority=50), holder(2, "b0 b1 b2", priority=60)], [2]),
        ([holder(1, "a0", priority=60), holder(2, "a1", priority=60), holder(3, "b0 b1", priority=60)], [3]),
        # The most important of those that would end there counts.
        ([holder(1, "a0 a1", priority=55), holder(2, "b0", priority=50), holder(3, "b1", priority=60)], [1]),
        # What is free there is not made free.
        ([holder(1, "a0 a1", priority=60), holder(2, "b0", priority=60)], [2]),
    ],
)
def test_one_machine_is_made_free_where_it_costs_least(running: list[Running], asked: list[int]) -> None:
    slots = {slot for trial in running for slot in trial.slot_ids} | {"a0", "a1", "b0", "b1"}
    counts = {name: sum(slot[0] == name for slot in slots) for name in "ab"}
    assert victims(wanted(2, where=ONE_MACHINE), running, machines(**counts)) == asked


def test_no_machine_is_made_free_of_those_that_are_as_important() -> None:
    running = [holder(1, "a0"), holder(2, "a1", priority=60), holder(3, "b0", priority=60), holder(4, "b1")]
    assert victims(wanted(2, where=ONE_MACHINE), running, machines(a=2, b=2)) == []
    assert victims(wanted(2, where=ONE_MACHINE, priority=41), running, machines(a=2, b=2)) == [2, 1]
    assert victims(wanted(1, where=ONE_MACHINE, priority=60), running, machines(a=2, b=2)) == []


def test_each_of_several_that_wait_for_a_machine_gets_another_one() -> None:
    running = [holder(1, "a0 a1", priority=60), holder(2, "b0 b1", priority=70)]
    gangs = [replace(wanted(2, where=ONE_MACHINE), trial_id=number, experiment_id=number) for number in (7, 8, 9)]
    assert victims(gangs[:1], running, machines(a=2, b=2)) == [2]
    assert victims(gangs[:2], running, machines(a=2, b=2)) == [2, 1]
    assert victims(gangs, running, machines(a=2, b=2)) == [2, 1]


def test_by_fair_share_a_machine_is_made_free_by_who_can_spare_it() -> None:
    most = [holder(number + 3, f"b{number}", experiment=2) for number in range(4)]
    running = [holder(1, "a0", experiment=1), holder(2, "a1", experiment=1), *most]
    assert victims(wanted(2, where=ONE_MACHINE), running, machines(a=2, b=4), Policy.FAIR_SHARE) == [6, 5]
    assert victims(wanted(3, where=ONE_MACHINE), running, machines(a=2, b=4), Policy.FAIR_SHARE) == []


def test_by_fair_share_a_machine_that_one_may_not_have_goes_to_another_of_more_weight() -> None:
    running = [
        holder(number + 1, slot, experiment=number % 2 + 1) for number, slot in enumerate(("a0", "a1", "b0", "b1"))
    ]
    light = replace(wanted(2, where=ONE_MACHINE), trial_id=7, experiment_id=7)
    heavy = replace(wanted(2, where=ONE_MACHINE, weight=4.0), trial_id=8, experiment_id=8)
    assert victims([light], running, machines(a=2, b=2), Policy.FAIR_SHARE) == []
    # One machine is held back for the first.
    assert victims([light, heavy], running, machines(a=2, b=2), Policy.FAIR_SHARE) == [4, 3]


def test_an_experiment_above_its_limit_gives_up_its_newest() -> None:
    running = [replace(holder(number + 1, f"a{number}", experiment=1), max_slots=2) for number in range(4)]
    assert victims([], running, machines(a=4)) == [4, 3]
    assert victims([], [replace(trial, ending=trial.trial_id == 4) for trial in running], machines(a=4)) == [3]
