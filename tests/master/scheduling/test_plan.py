"""The plan never over-assigns, lets no slot idle without need, and shares fairly."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from det_native.master.scheduling.facts import DEFAULT_PRIORITY, Pending, Running, Start
from det_native.master.scheduling.plan import plan as plan_all
from det_native.master.scheduling.waits import waits

SLOTS = tuple(f"cpu:{index}" for index in range(6))


def plan(pending: list[Pending], running: list[Running], slots: tuple[str, ...]) -> list[Start]:
    """Plan where nobody makes room."""
    return [action for action in plan_all(pending, running, slots) if isinstance(action, Start)]


@st.composite
def _situations(draw: st.DrawFn) -> tuple[list[Pending], list[Running], tuple[str, ...]]:
    slots = SLOTS[: draw(st.integers(0, len(SLOTS)))]
    experiments = {
        number: {
            "priority": draw(st.none() | st.integers(1, 99)),
            "weight": draw(st.sampled_from([0.5, 1.0, 2.0])),
            "max_slots": draw(st.none() | st.integers(0, 4)),
            "served": draw(st.sampled_from(["", "01A", "01B"])),
        }
        for number in range(1, 5)
    }
    numbers = st.integers(1, 4)
    free = list(slots)
    running = []
    for trial_id in range(draw(st.integers(0, 4))):
        size = draw(st.integers(1, 2))
        running.append(Running(trial_id, draw(numbers), tuple(free[:size]), priority=1))
        del free[:size]
    pending = []
    for trial_id in range(2, 2 + draw(st.integers(0, 10))):
        number = draw(numbers)
        size, order = draw(st.integers(1, 4)), draw(st.integers(0, 9))
        pending.append(Pending(trial_id, number, size, order, **experiments[number]))
    return pending, running, slots


@given(_situations())
def test_slots_are_never_assigned_twice_and_no_trial_starts_twice(
    situation: tuple[list[Pending], list[Running], tuple[str, ...]],
) -> None:
    pending, running, slots = situation
    starts = plan(pending, running, slots)
    used = Counter(slot for item in [*starts, *running] for slot in item.slot_ids)
    assert all(count == 1 for count in used.values())
    assert set(used) <= set(slots)
    trials = [start.trial_id for start in starts]
    assert len(trials) == len(set(trials))
    assert not set(trials) & {trial.trial_id for trial in running}
    wanted = {trial.trial_id: trial.slots for trial in pending}
    assert all(len(start.slot_ids) == wanted[start.trial_id] for start in starts)


@given(_situations())
def test_no_slot_idles_while_a_trial_could_have_it_but_for_one_whose_turn_it_is(
    situation: tuple[list[Pending], list[Running], tuple[str, ...]],
) -> None:
    pending, running, slots = situation
    starts = plan(pending, running, slots)
    started = {start.trial_id: start for start in starts}
    free = len(slots) - sum(len(item.slot_ids) for item in [*starts, *running])
    held = Counter[int]()
    for trial in running:
        held[trial.experiment_id] += len(trial.slot_ids)
    for trial in pending:
        if trial.trial_id in started:
            held[trial.experiment_id] += trial.slots
    busy = set(started) | {trial.trial_id for trial in running}
    waiting = []
    for number in range(1, 5):
        queue = [trial for trial in pending if trial.experiment_id == number and trial.trial_id not in busy]
        if queue:
            first = min(queue, key=lambda trial: (trial.order, trial.trial_id))
            limit = first.max_slots if first.max_slots is not None else float("inf")
            if first.slots <= len(slots) and held[number] + first.slots <= limit:
                priority = first.priority or DEFAULT_PRIORITY
                waiting.append((priority, held[number] / first.weight, first.served, number, first.slots))
    # Of all that could run some time, the one whose turn it is needs more than there is.
    assert not waiting or min(waiting)[-1] > free


@given(_situations(), st.randoms())
def test_the_same_facts_give_the_same_plan_in_any_order(
    situation: tuple[list[Pending], list[Running], tuple[str, ...]], random: object
) -> None:
    pending, running, slots = situation
    expected = plan(pending, running, slots)
    random.shuffle(pending)  # type: ignore[attr-defined]
    random.shuffle(running)  # type: ignore[attr-defined]
    assert plan(pending, running, slots) == expected


@given(_situations())
def test_an_experiment_keeps_to_its_limit_and_order(
    situation: tuple[list[Pending], list[Running], tuple[str, ...]],
) -> None:
    pending, running, slots = situation
    by_id = {trial.trial_id: trial for trial in pending}
    held = Counter[int]()
    for trial in running:
        held[trial.experiment_id] += len(trial.slot_ids)
    last: dict[int, tuple[int, int]] = {}
    for start in plan(pending, running, slots):
        trial = by_id[start.trial_id]
        held[trial.experiment_id] += trial.slots
        assert trial.max_slots is None or held[trial.experiment_id] <= trial.max_slots
        assert last.get(trial.experiment_id, (-1, -1)) < (trial.order, trial.trial_id)
        last[trial.experiment_id] = (trial.order, trial.trial_id)


def _experiment(number: int, trials: int, **fields: object) -> list[Pending]:
    return [Pending(number * 100 + order, number, 1, order, **fields) for order in range(trials)]  # type: ignore[arg-type]


def _counts(starts: list[Start]) -> Counter[int]:
    return Counter(start.trial_id // 100 for start in starts)


def test_equal_experiments_get_equal_shares() -> None:
    starts = plan([*_experiment(1, 9), *_experiment(2, 9)], [], SLOTS)
    assert _counts(starts) == {1: 3, 2: 3}


def test_what_runs_already_counts() -> None:
    running = [Running(100 + index, 1, (SLOTS[index],)) for index in range(3)]
    starts = plan([*_experiment(1, 9), *_experiment(2, 9)], running, SLOTS)
    assert _counts(starts) == {2: 3}


def test_a_small_experiment_leaves_its_share_to_the_others() -> None:
    starts = plan([*_experiment(1, 9), *_experiment(2, 1)], [], SLOTS)
    assert _counts(starts) == {1: 5, 2: 1}


def test_weights_divide_the_slots() -> None:
    starts = plan([*_experiment(1, 9, weight=2.0), *_experiment(2, 9)], [], SLOTS)
    assert _counts(starts) == {1: 4, 2: 2}


def test_a_limit_is_kept_and_the_rest_goes_on() -> None:
    starts = plan([*_experiment(1, 9, max_slots=1), *_experiment(2, 9)], [], SLOTS)
    assert _counts(starts) == {1: 1, 2: 5}


def test_priority_comes_before_fairness() -> None:
    starts = plan([*_experiment(1, 9), *_experiment(2, 9, priority=1)], [], SLOTS)
    assert _counts(starts) == {2: 6}


def test_a_search_of_small_trials_and_one_of_gangs_take_turns() -> None:
    slots = SLOTS[:2]
    queues = {1: _experiment(1, 4), 2: [Pending(200 + order, 2, 2, order) for order in range(2)]}
    served = {1: "", 2: ""}
    running: list[Running] = []
    order = []
    while running or any(queues.values()):
        pending = [replace(trial, served=served[number]) for number in queues for trial in queues[number]]
        for start in plan(pending, running, slots):
            number = start.trial_id // 100
            order.append(start.trial_id)
            served[number] = f"{len(order):04}"
            running.append(Running(start.trial_id, number, start.slot_ids))
            queues[number] = [trial for trial in queues[number] if trial.trial_id != start.trial_id]
        del running[0]
    assert order == [100, 200, 101, 201, 102, 103]


def test_a_gang_that_never_fits_lets_others_pass_but_not_its_own() -> None:
    gang = replace(_experiment(1, 1)[0], slots=7)
    behind = Pending(199, 1, 1, 5)
    starts = plan([gang, behind, *_experiment(2, 2)], [], SLOTS)
    assert [start.trial_id for start in starts] == [200, 201]


def test_a_gang_gets_all_its_slots_at_once() -> None:
    gang = Pending(1, 1, 4, 0)
    assert plan([gang], [], SLOTS) == [Start(1, SLOTS[:4])]


def test_a_queued_experiment_says_what_it_waits_for() -> None:
    slots = ("0", "1", "2", "3")
    full = [Running(1, 7, ("0", "1", "2", "3"))]
    assert waits([Pending(2, 8, 2, 0)], full, slots) == {8: "2 of 4 slots: #7 has them"}
    assert waits([Pending(2, 8, 1, 0)], [Running(1, 7, ("0",))], ("0",)) == {8: "1 of 1 slot: #7 has it"}
    several = [Running(trial, trial, (str(trial),)) for trial in range(4)]
    assert waits([Pending(9, 9, 3, 0)], several, slots) == {9: "3 of 4 slots: #0, #1 and 2 others have them"}
    assert waits([Pending(9, 9, 3, 0)], several[:2], slots) == {9: "3 of 4 slots: #0 and #1 have them"}


def test_what_waits_behind_another_or_can_never_run_says_so() -> None:
    slots = ("0", "1", "2", "3")
    some = [Running(1, 7, ("0", "1"))]
    pending = [Pending(2, 8, 4, 0), Pending(3, 9, 1, 0)]
    said = waits(pending, some, slots)
    assert said == {8: "4 of 4 slots: #7 has them", 9: "1 of 4 slots: #8, which waits for 4, is before it"}
    assert waits([Pending(2, 8, 5, 0)], [], slots) == {8: "5 slots: the cluster has 4"}
    assert waits([Pending(2, 8, 2, 0, max_slots=1)], [], slots) == {8: "2 slots: its max_slots is 1"}


@given(_situations())
def test_only_who_holds_nothing_after_the_plan_waits(
    situation: tuple[list[Pending], list[Running], tuple[str, ...]],
) -> None:
    pending, running, slots = situation
    owners = {trial.trial_id: trial.experiment_id for trial in pending}
    started = [Running(one.trial_id, owners[one.trial_id], one.slot_ids) for one in plan(pending, running, slots)]
    said = waits(pending, [*running, *started], slots)
    holding = {trial.experiment_id for trial in [*running, *started]}
    left = {trial.experiment_id for trial in pending if trial.trial_id not in {one.trial_id for one in running}}
    assert set(said) == left - holding
    assert all(said.values())
