"""How long an experiment will take from here."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.schema.time_left import TimeLeft


def test_a_steady_pace_goes_on() -> None:
    time_left = TimeLeft()
    assert time_left.observe(100.0, 0.1) is None
    assert time_left.observe(100.1, 0.11) is None  # too short to tell
    assert time_left.observe(102.0, 0.2) == pytest.approx(16.0)
    assert time_left.observe(104.0, 0.3) == pytest.approx(14.0)


def test_paused_time_does_not_count() -> None:
    time_left = TimeLeft()
    time_left.observe(0.0, 0.1)
    time_left.observe(2.0, 0.2)
    time_left.rest()
    assert time_left.observe(1000.0, 0.2) == pytest.approx(16.0)
    assert time_left.observe(1002.0, 0.3) == pytest.approx(14.0)


def test_lost_work_is_to_be_done_again_at_the_same_pace() -> None:
    time_left = TimeLeft()
    time_left.observe(0.0, 0.0)
    time_left.observe(4.0, 0.4)
    assert time_left.observe(4.0, 0.2) == pytest.approx(8.0)
    assert time_left.observe(5.0, 0.3) == pytest.approx(7.0)


def test_a_change_of_pace_is_followed() -> None:
    time_left = TimeLeft()
    left = [time_left.observe(second, 0.001 * second) for second in range(101)][-1]
    assert left == pytest.approx(900.0)
    for step in range(1, 51):  # three times as fast from here
        left = time_left.observe(100.0 + step, 0.1 + 0.003 * step)
    assert left is not None
    assert left < 500.0


def test_standing_still_is_no_pace() -> None:
    time_left = TimeLeft()
    assert [time_left.observe(float(second), 0.5) for second in range(5)] == [None] * 5


@given(st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 1), st.booleans()), max_size=60))
def test_the_time_left_is_never_negative_and_needs_little_memory(steps: list[tuple[float, float, bool]]) -> None:
    time_left, now = TimeLeft(), 0.0
    for seconds, progress, rests in steps:
        now += seconds
        left = time_left.observe(now, progress)
        assert left is None or left >= 0.0
        if rests:
            time_left.rest()


def test_long_experiments_need_no_more_memory() -> None:
    time_left = TimeLeft()
    for step in range(20_000):
        time_left.observe(step * 0.25, step / 40_000)
    assert len(time_left._marks) < 1000


@pytest.mark.parametrize(("between", "own"), [(0.3, 0.5), (0.15, 0.5), (0.5, 0.5)])
def test_for_short_trials_in_turn_it_is_steady(between: float, own: float) -> None:
    """Nothing moves while one trial ends and the next one starts, and yet the estimate stays near the truth."""
    time_left, trials = TimeLeft(), 40
    each = between + own
    ratios = []
    for step in range(int(trials * each / 0.25)):
        now = 0.25 * step
        done, within = divmod(now, each)
        left = time_left.observe(now, (done + max(within - between, 0.0) / own) / trials)
        remaining = trials * each - now
        if left is not None and now > 2 * each and remaining > 3 * each:
            ratios.append(left / remaining)
    assert len(ratios) > 50
    assert min(ratios) > 0.75
    assert max(ratios) < 1.3
