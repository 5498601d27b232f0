"""The schedule, driven by drawn histories."""

from __future__ import annotations

import json
from typing import Any

import pytest
from det_harness.trial.schedule import Action, Finish, Periods, Policy, SaveCheckpoint, Schedule, Train, Validate
from hypothesis import given
from hypothesis import strategies as st

periods = st.builds(
    Periods,
    length=st.integers(1, 60),
    scheduling_unit=st.integers(1, 20),
    validation_period=st.integers(0, 15),
    checkpoint_period=st.integers(0, 15),
    initial_validation=st.booleans(),
    policy=st.sampled_from(["best", "all", "none"]),
)
# Of one number: hypothesis takes its time to draw a list.
bests = st.integers(0, 2**200 - 1).map(lambda bits: [bool(bits >> batch & 1) for batch in range(200)])


def step(schedule: Schedule, best: bool) -> Action:
    """Do what is due; returns it."""
    action = schedule.next()
    match action:
        case Train(until):
            schedule.trained(until)
        case Validate():
            schedule.validated(best=best)
        case SaveCheckpoint():
            schedule.checkpointed()
    return action


def history(schedule: Schedule, best: list[bool]) -> list[tuple[int, Action]]:
    """Run to the end; every action with the batches done after it."""
    done: list[tuple[int, Action]] = []
    while len(done) < 1000:
        action = step(schedule, best[schedule.progress.batches])
        done.append((schedule.progress.batches, action))
        if isinstance(action, Finish):
            return done
    raise AssertionError("the schedule does not end")


@given(periods, bests)
def test_it_trains_the_whole_length_and_ends_validated_and_saved(periods: Periods, best: list[bool]) -> None:
    schedule = Schedule(periods)
    actions = history(schedule, best)
    assert schedule.progress.batches == periods.length
    assert max(batch for batch, _ in actions) == periods.length
    assert any(isinstance(action, Validate) and batch == periods.length for batch, action in actions)
    assert any(isinstance(action, SaveCheckpoint) and batch == periods.length for batch, action in actions)
    assert actions[-1][1] == Finish(stopped=False)


@given(periods, bests)
def test_no_stretch_is_longer_than_a_unit_or_a_period(periods: Periods, best: list[bool]) -> None:
    schedule = Schedule(periods)
    validated = saved = before = 0
    for batch, action in history(schedule, best):
        match action:
            case Train():
                assert 0 < batch - before <= periods.scheduling_unit
                before = batch
                if periods.validation_period:
                    assert batch - validated <= periods.validation_period
                if periods.checkpoint_period:
                    assert batch - saved <= periods.checkpoint_period
            case Validate():
                validated = batch
            case SaveCheckpoint():
                assert batch > saved, "a checkpoint of nothing new"
                saved = batch


@given(periods, bests)
def test_a_validation_of_the_best_is_followed_by_a_checkpoint(periods: Periods, best: list[bool]) -> None:
    actions = history(Schedule(periods), best)
    saved = {batch for batch, action in actions if isinstance(action, SaveCheckpoint)}
    for batch, action in actions:
        if isinstance(action, Validate) and batch > 0:
            wanted = periods.policy == "all" or (periods.policy == "best" and best[batch])
            if wanted:
                assert batch in saved


@given(periods, bests, st.data())
def test_a_snapshot_continues_with_the_same_actions(periods: Periods, best: list[bool], data: st.DataObject) -> None:
    schedule = Schedule(periods)
    snapshots: list[tuple[int, dict[str, Any]]] = []
    actions: list[tuple[int, Action]] = []
    while True:
        if isinstance(schedule.next(), SaveCheckpoint):
            snapshots.append((len(actions), json.loads(json.dumps(schedule.snapshot()))))
        action = step(schedule, best[schedule.progress.batches])
        actions.append((schedule.progress.batches, action))
        if isinstance(action, Finish):
            break
    position, snapshot = data.draw(st.sampled_from(snapshots))
    restored = Schedule(periods)
    restored.restore(snapshot)
    assert history(restored, best) == actions[position + 1 :]


@given(periods, bests, st.integers(0, 60))
def test_a_stop_saves_what_is_unsaved_and_ends(periods: Periods, best: list[bool], after: int) -> None:
    schedule = Schedule(periods)
    for _ in range(after):
        step(schedule, best[schedule.progress.batches])
    schedule.request_stop()
    batches = schedule.progress.batches
    rest = [action for _, action in history(schedule, best)]
    assert len(rest) <= 2
    assert schedule.progress.batches == batches
    assert schedule.progress.last_checkpointed == batches
    assert rest[-1] == Finish(stopped=not schedule.progress.validated_at_end)


def test_initial_validation_comes_first() -> None:
    schedule = Schedule(Periods(length=5, initial_validation=True))
    assert schedule.next() == Validate()
    schedule.validated(best=False)
    assert schedule.next() == Train(until=5)


def test_a_trial_that_its_search_trains_on_is_validated_at_each_end() -> None:
    first = Schedule(Periods(length=4))
    history(first, [True] * 10)
    assert first.progress.validated_at_end
    second = Schedule(Periods(length=9))
    second.restore(json.loads(json.dumps(first.snapshot())))
    assert [action for _, action in history(second, [True] * 10)] == [
        Train(until=9),
        SaveCheckpoint(),
        Validate(),
        Finish(stopped=False),
    ]


@given(periods, bests, st.integers(1, 12), st.booleans())
def test_where_it_is_ended_it_is_saved_and_validated_once(
    periods: Periods, best: list[bool], after: int, validate: bool
) -> None:
    schedule = Schedule(periods)
    done = [(schedule.progress.batches, step(schedule, best[0])) for _ in range(after)]
    batches = schedule.progress.batches
    schedule.end_here(validate=validate)
    assert schedule.ends_workload(batches)
    continued = Schedule(periods)
    continued.restore(json.loads(json.dumps(schedule.snapshot())))
    rest = history(schedule, best)
    assert {batch for batch, _ in rest} == {batches}
    assert not any(isinstance(action, Train) for _, action in rest)
    assert schedule.progress.last_checkpointed == batches
    validations = [batch for batch, action in done + rest if isinstance(action, Validate)]
    assert len(validations) == len(set(validations))
    assert not validate or schedule.progress.last_validated == batches
    assert rest[-1][1] == Finish(stopped=False)
    assert not any(isinstance(action, Train) for _, action in history(continued, best))


SAVE, VALIDATE, FINISH = SaveCheckpoint(), Validate(), Finish()


def actions_of(schedule: Schedule, *, best: bool = False) -> list[Action]:
    return [action for _, action in history(schedule, [best] * 100)]


def test_periods_cut_the_training() -> None:
    assert actions_of(Schedule(Periods(length=5, scheduling_unit=2))) == [
        *(Train(2), Train(4), Train(5)),
        *(SAVE, VALIDATE, FINISH),
    ]
    assert actions_of(Schedule(Periods(length=5, checkpoint_period=2))) == [
        *(Train(2), SAVE, Train(4), SAVE, Train(5)),
        *(SAVE, VALIDATE, FINISH),
    ]
    assert actions_of(Schedule(Periods(length=5, validation_period=2))) == [
        *(Train(2), VALIDATE, Train(4), VALIDATE, Train(5)),
        *(SAVE, VALIDATE, FINISH),
    ]


@pytest.mark.parametrize(
    ("policy", "best", "saved"),
    [("all", False, True), ("all", True, True), ("best", False, False), ("best", True, True), ("none", True, False)],
)
def test_the_policy_says_which_validations_are_saved(policy: Policy, best: bool, saved: bool) -> None:
    schedule = Schedule(Periods(length=4, validation_period=2, policy=policy))
    middle = [SAVE] if saved else []
    assert actions_of(schedule, best=best) == [Train(2), VALIDATE, *middle, Train(4), SAVE, VALIDATE, FINISH]


def test_an_initial_validation_saves_nothing_and_is_not_repeated() -> None:
    schedule = Schedule(Periods(length=2, validation_period=2, initial_validation=True, policy="all"))
    assert actions_of(schedule, best=True) == [VALIDATE, Train(2), SAVE, VALIDATE, FINISH]
    continued = Schedule(Periods(length=4, initial_validation=True))
    continued.trained(2)
    assert continued.next() == Train(4)


def test_a_checkpoint_that_was_asked_for_comes_before_the_next_batch() -> None:
    schedule = Schedule(Periods(length=4, scheduling_unit=2))
    schedule.request_checkpoint()
    assert schedule.next() == Train(2), "there is nothing to save"
    schedule.trained(2)
    assert schedule.next() == SAVE
    schedule.checkpointed()
    assert schedule.next() == Train(4)
    schedule.request_checkpoint()
    assert schedule.next() == Train(4)


def test_a_workload_ends_at_units_validations_and_the_end() -> None:
    schedule = Schedule(Periods(length=10, scheduling_unit=4))
    assert [batch for batch in range(1, 12) if schedule.ends_workload(batch)] == [4, 8, 10, 11]
    schedule = Schedule(Periods(length=10, scheduling_unit=4, validation_period=3))
    assert [batch for batch in range(1, 5) if schedule.ends_workload(batch)] == [3, 4]
    schedule.trained(3)
    schedule.validated(best=False)
    assert [batch for batch in range(4, 8) if schedule.ends_workload(batch)] == [4, 6, 7]
    schedule.end_here()
    assert schedule.ends_workload(5)


def test_a_validation_is_due_after_its_period_and_at_the_end_but_not_at_a_stop() -> None:
    schedule = Schedule(Periods(length=10, validation_period=3))
    assert [batch for batch in range(1, 5) if schedule.validates_at(batch)] == [3, 4]
    schedule.trained(3)
    schedule.validated(best=False)
    assert [batch for batch in range(4, 8) if schedule.validates_at(batch)] == [6, 7]
    schedule.request_stop()
    assert not any(schedule.validates_at(batch) for batch in range(1, 12))
    at_end = Schedule(Periods(length=10))
    assert [batch for batch in range(1, 12) if at_end.validates_at(batch)] == [10, 11]


def test_batches_only_grow_and_the_same_number_takes_no_validation_back() -> None:
    schedule = Schedule(Periods(length=2))
    history(schedule, [True] * 10)
    with pytest.raises(ValueError, match="went back from 2 to 1"):
        schedule.trained(1)
    schedule.trained(2)
    assert schedule.next() == FINISH
    schedule.trained(3)
    assert actions_of(schedule) == [SAVE, VALIDATE, FINISH]


def test_an_end_by_the_users_code_is_validated_unless_it_just_was_or_is_not_wanted() -> None:
    def ended(*, validated: bool, validate: bool) -> list[Action]:
        schedule = Schedule(Periods(length=9))
        schedule.trained(3)
        if validated:
            schedule.validated(best=False)
        schedule.end_here(validate=validate)
        return actions_of(schedule)

    assert ended(validated=False, validate=True) == [SAVE, VALIDATE, FINISH]
    assert ended(validated=False, validate=False) == [SAVE, FINISH]
    assert ended(validated=True, validate=True) == [SAVE, FINISH]


def test_a_stop_after_the_last_validation_is_no_early_end() -> None:
    schedule = Schedule(Periods(length=2))
    history(schedule, [True] * 10)
    schedule.request_stop()
    assert schedule.next() == Finish(stopped=False)
    early = Schedule(Periods(length=2))
    early.request_stop()
    assert early.next() == Finish(stopped=True)


def test_a_snapshot_says_what_its_checkpoint_will_be() -> None:
    schedule = Schedule(Periods(length=4, policy="all"))
    schedule.trained(2)
    schedule.validated(best=True)
    assert schedule.snapshot() == {
        "batches": 2,
        "last_validated": 2,
        "last_checkpointed": 2,
        "save_after_validation": False,
        "validated_at_end": False,
        "ended": False,
    }
    assert schedule.next() == SAVE, "nothing is saved by that"
