"""When a trial had done how much, as curves over time need it; and curves of a stretch."""

from __future__ import annotations

from datetime import datetime

import pytest
from store_parts import Fixture, Voice, metrics_report

from det_native.errors import NotFoundError
from det_native.master.store import clocks, experiments, series, trials
from det_native.master.store.database import Database
from det_native.schema.clocks import TrialClock
from det_native.schema.states import MetricKind

#: Stretches of which one more is like the first: at the beginning, in the middle, and beyond the end.
OTHERS = ((100, 160), (30_000, 50_000), (39_900, 90_000))


@pytest.fixture
def fixture(database: Database) -> Fixture:
    """Give an experiment with a trial."""
    return Fixture(database)


def clock(fixture: Fixture, points: int = 300) -> TrialClock:
    with fixture.database.read() as connection:
        (found,) = clocks.read(connection, [fixture.trial_id], points=points)
    return found


CREATED = "2026-01-01T00:00:00.000Z"
BEGIN = datetime.fromisoformat(CREATED).timestamp()


def note(fixture: Fixture, batch: int, seconds: float, run: int = 1) -> None:
    with fixture.database.write() as transaction:
        clocks.note(transaction, fixture.trial_id, run, batch, created=CREATED, now=BEGIN + seconds)


def test_a_report_tells_the_time_of_its_last_batch(fixture: Fixture) -> None:
    run = fixture.run()
    run.say(metrics_report("training", [1, 2, 3], loss=[3.0, 2.0, 1.0]))
    found = clock(fixture)
    assert found.batch == [3]
    assert abs(found.time[0] - datetime.now().timestamp()) < 600
    run.say(metrics_report("validation", [3], loss=[2.0]))
    assert clock(fixture).batch == [3], "a validation does not move the time of a batch"


def test_a_row_a_second_and_fewer_later(fixture: Fixture) -> None:
    fixture.run()
    for tenth in range(50):
        note(fixture, tenth + 1, tenth / 10)
    assert clock(fixture).batch == [1, 11, 21, 31, 41, 50]
    for second in range(10_000, 10_100):
        note(fixture, second, second)
    later = [batch for batch in clock(fixture).batch if batch >= 10_000]
    assert 9 <= len(later) <= 11, "a thousandth of ten thousand seconds apart"


def test_a_short_run_has_the_times_of_its_first_and_its_last_report(fixture: Fixture) -> None:
    fixture.run()
    for hundredth in range(1, 60):
        note(fixture, hundredth, hundredth / 100)
    found = clock(fixture)
    assert (found.batch, [round(at - BEGIN, 2) for at in found.time]) == ([1, 59], [0.01, 0.59])


def test_a_clock_that_is_set_back_within_a_run_keeps_its_last_batch(fixture: Fixture) -> None:
    fixture.run()
    for batch, seconds in [(1, 10), (2, 12), (3, 12), (4, 5)]:
        note(fixture, batch, seconds)
    found = clock(fixture)
    assert (found.batch, [round(at - BEGIN) for at in found.time]) == ([1, 4], [10, 12])


def test_a_run_owns_the_batches_after_its_beginning(fixture: Fixture) -> None:
    fixture.run()
    for batch in (10, 20, 30):
        note(fixture, batch, batch)
    fixture.run(start_batch=15)
    note(fixture, 25, 100, run=2)
    note(fixture, 35, 110, run=2)
    found = clock(fixture)
    assert found.batch == [10, 25, 35]
    assert [round(at - BEGIN) for at in found.time] == [10, 100, 110]


def test_a_clock_that_is_set_back_lets_no_time_go_back(fixture: Fixture) -> None:
    fixture.run()
    note(fixture, 1, 100)
    fixture.run(start_batch=5)
    note(fixture, 10, 50, run=2)
    found = clock(fixture)
    assert found.time == sorted(found.time)


def test_many_points_are_thinned_with_both_ends(fixture: Fixture) -> None:
    fixture.run()
    for second in range(100):
        note(fixture, second + 1, second)
    found = clock(fixture, points=7)
    assert (len(found.batch), found.batch[0], found.batch[-1]) == (7, 1, 100)


def test_ends_of_epochs_are_counted(fixture: Fixture) -> None:
    run = fixture.run()
    for batch in (5, 10, 15):
        row = {"batch": batch, "epoch": batch // 5 - 1, "logs": {}, "params": {}}
        run.say({"type": "epoch", "row": row})
    found = clock(fixture)
    assert (found.epoch_batch, found.epoch) == ([5, 10, 15], [1, 2, 3])


def many(run: Voice, rows: int = 20_000) -> None:
    for first in range(0, rows, 5000):
        part = [batch * 2 for batch in range(first + 1, first + 5001)]
        run.say(metrics_report("training", part, loss=[float(batch) for batch in part]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "last"), [(10_000, 19_000), *(pytest.param(*ends, marks=pytest.mark.soak) for ends in OTHERS)]
)
def test_a_stretch_is_finer_than_the_whole_and_reaches_its_ends(fixture: Fixture, first: int, last: int) -> None:
    many(fixture.run())
    with fixture.database.read() as connection:
        (found,) = series.curves(connection, fixture.trial_id, [MetricKind.TRAINING], points=100, within=(first, last))
    end = min(last, 40_000)
    inside = [batch for batch in found.batch if first <= batch <= last]
    assert min(len(inside), 100) >= min(25, (end - first) // 2 - 2)
    assert len(found.batch) <= 101
    step = max(later - batch for batch, later in zip(found.batch, found.batch[1:], strict=False))
    assert found.batch[0] <= first + step
    assert found.batch[-1] >= end - step
    assert all(
        value is not None and abs(value - batch) <= step for batch, value in zip(found.batch, found.mean, strict=True)
    )


def test_there_is_nothing_in_a_stretch_beyond_the_end(fixture: Fixture) -> None:
    fixture.run().say(metrics_report("training", [1, 2], loss=[1.0, 2.0]))
    with fixture.database.read() as connection:
        assert series.curves(connection, fixture.trial_id, [MetricKind.TRAINING], points=10, within=(50, 60)) == []


def test_only_the_trials_that_are_asked_for_and_are_the_experiments(fixture: Fixture) -> None:
    with fixture.database.read() as connection:
        experiment = experiments.get(connection, fixture.experiment_id)
        assert trials.chosen(connection, experiment, 50, [fixture.trial_id, 999]) == [fixture.trial_id]
        assert trials.chosen(connection, experiment, 50, [999]) == []
        assert trials.chosen(connection, experiment, 50, None) == [fixture.trial_id]
        with pytest.raises(NotFoundError):
            trials.get(connection, 999)
