"""The schedule, driven by drawn histories."""

from __future__ import annotations

import json
from typing import Any

from det_harness.trial.schedule import Action, Finish, Periods, SaveCheckpoint, Schedule, Train, Validate
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
