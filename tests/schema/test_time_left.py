"""How long an experiment will take from here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.schema.config import ExperimentConfig
from det_native.schema.time_left import Course, TimeLeft, about
from det_native.search import CreateTrial, Event, Shutdown, Started, TrainTo, TrialCompleted
from det_native.search.make import make_searcher, planned_trials


def test_a_steady_pace_goes_on() -> None:
    time_left = TimeLeft()
    shown = [time_left.observe(100.0 + step, 0.05 * step) for step in range(9)]
    assert shown[:4] == [None] * 4, "three seconds and three gains after the first say enough"
    assert shown[4:] == pytest.approx([16.0, 15.0, 14.0, 13.0, 12.0])


def test_paused_time_does_not_count() -> None:
    time_left = TimeLeft()
    for step in range(5):
        time_left.observe(float(step), 0.05 * step)
    time_left.rest()
    assert time_left.observe(1000.0, 0.2) == pytest.approx(16.0)
    assert time_left.observe(1001.0, 0.25) == pytest.approx(15.0)


def test_lost_work_is_to_be_done_again_at_the_same_pace() -> None:
    time_left = TimeLeft()
    for step in range(5):
        time_left.observe(float(step), 0.1 * step)
    assert time_left.observe(4.0, 0.2) == pytest.approx(8.0)
    assert time_left.observe(5.0, 0.3) == pytest.approx(7.0)


@dataclass(frozen=True)
class History:
    """How a training goes, as the master sees it."""

    seconds: float
    progress: Callable[[float], float]
    waves: float = 1.0

    def ratios(self) -> list[float]:
        """Return what was shown as left, by what was left; from 20 % of the training to 90 %, four times a second."""
        time_left, shown, before, found = TimeLeft(), None, -1.0, []
        for step in range(int(self.seconds * 4)):
            now = step / 4
            progress = self.progress(now)
            if progress != before:  # reports come with batches
                shown, before = time_left.observe(now, progress, Course(self.waves)), progress
            if 0.2 <= progress < 0.9:
                assert shown is not None
                found.append(shown / (self.seconds - now))
        return found


def first_batch_slow(start: float, rest: float) -> History:
    return History(start + rest, lambda now: max(now - start, 0.0) / rest)


def with_validations(epochs: int, training: float, validation: float, start: float = 20.0) -> History:
    def progress(now: float) -> float:
        done, within = divmod(max(now - start, 0.0), training + validation)
        return min((done + min(within / training, 1.0)) / epochs, 1.0)

    return History(start + epochs * (training + validation), progress)


def trials_in_turn(trials: int, start: float, training: float) -> History:
    def progress(now: float) -> float:
        done, within = divmod(now, start + training)
        return (done + max(within - start, 0.0) / training) / trials

    return History(trials * (start + training), progress, waves=trials)


@pytest.mark.parametrize(
    "history",
    [
        first_batch_slow(60.0, 100.0),
        first_batch_slow(60.0, 20.0),
        first_batch_slow(300.0, 3000.0),
        with_validations(10, 30.0, 30.0),
        with_validations(5, 30.0, 9.0),
        with_validations(20, 5.0, 10.0),
        trials_in_turn(10, 10.0, 10.0),
        trials_in_turn(5, 10.0, 50.0),
        trials_in_turn(40, 15.0, 5.0),
    ],
    ids=lambda history: f"{history.seconds:.0f} s in {history.waves:.0f}",
)
def test_after_a_fifth_it_is_within_a_half_of_the_truth(history: History) -> None:
    ratios = history.ratios()
    assert len(ratios) > 40
    assert min(ratios) > 1 / 1.5
    assert max(ratios) < 1.5


def test_compilation_of_the_first_batch_shows_nothing_at_all() -> None:
    time_left = TimeLeft()
    for second in range(120):
        assert time_left.observe(float(second), 0.0) is None
    assert time_left.observe(120.0, 0.001) is None, "hours, by the speed of the first batch"


@pytest.mark.parametrize("searcher", ["async_halving", "sync_halving"])
def test_a_search_that_stops_trials_early_is_within_a_half_of_the_truth(searcher: str) -> None:
    """Most trials end at the first rung; each stage of the others starts a process anew."""
    more = {"max_trials": 32} if searcher == "async_halving" else {"budget": {"batches": 2048}}
    config = ExperimentConfig.model_validate(
        {
            "searcher": {
                "name": searcher,
                "metric": "loss",
                "max_length": {"batches": 256},
                "num_rungs": 3,
                **more,
            },
            "hyperparameters": {"rate": {"type": "double", "minval": 0.0, "maxval": 1.0}},
            "reproducibility": {"experiment_seed": 7},
        }
    )
    ratios = searched(config, slots=4, start=2.0, speed=4.0)
    assert len(ratios) > 40
    assert min(ratios) > 1 / 1.5
    assert max(ratios) < 1.5


def searched(config: ExperimentConfig, *, slots: int, start: float, speed: float) -> list[float]:
    """Run a search by the clock; return what was shown as left by what was left, as ``History.ratios`` does."""
    searcher = make_searcher(config)
    waiting: list[tuple[int, int]] = []
    running: dict[int, tuple[float, int, int]] = {}  # when it began, from which unit and to which
    reached: dict[int, int] = {}
    rates: dict[int, float] = {}
    created, over, now = 0, False, 0.0
    time_left, shown, seen = TimeLeft(), None, []

    def take(event: Event) -> None:
        nonlocal created, over
        for action in searcher.handle(event):
            match action:
                case CreateTrial(request, hparams, _, units):
                    created += 1
                    rates[request] = hparams["rate"]
                    waiting.append((request, units or config.searcher.max_length.units))
                case TrainTo(request, units):
                    waiting.append((request, units))
                case Shutdown():
                    over = True

    take(Started())
    while not over:
        while waiting and len(running) < slots:
            request, units = waiting.pop(waiting.index(min(waiting)))  # the oldest trial first, as the master does
            running[request] = (now, reached.get(request, 0), units)
        shares = {}
        for request, (began, before, units) in list(running.items()):
            done = min(before + max(now - began - start, 0.0) * speed, units)
            if done < units:
                shares[request] = done / units
            else:
                del running[request]
                reached[request] = units
                take(TrialCompleted(request, rates[request], units=units))
        progress = searcher.progress(shares)
        planned = planned_trials(config) or created
        course = Course(planned / max(len(running), 1), len(running), searcher.last_stage)
        shown = time_left.observe(now, progress, course) or shown
        seen.append((now, progress, shown))
        now += 0.25
    return [left / (now - at) for at, progress, left in seen if left is not None and 0.2 <= progress < 0.9]


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


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (4.0, "a few seconds"),
        (18.0, "about 20 s"),
        (58.0, "about 1 min"),
        (125.0, "about 2 min"),
        (17 * 60.0, "about 15 min"),
        (59 * 60.0, "about 1 h"),
        (92 * 60.0, "about 1 h 30 min"),
        (11.2 * 3600, "about 11 h"),
        (71 * 3600.0, "about 3 days"),
    ],
)
def test_it_is_told_as_people_tell_times(seconds: float, text: str) -> None:
    assert about(seconds) == text
