"""Curves: every metric in one answer, exact while there are few rows, with their extremes for ever."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from master_parts import Master, Worker
from store_parts import Fixture, metrics_report

from det_native.master.store import experiments, series, trials
from det_native.master.store.database import Database
from det_native.schema.rest import MetricCurve
from det_native.schema.states import MetricKind

pytestmark = pytest.mark.slow  # a whole master for each test

BOTH = list(MetricKind)


@pytest.fixture
def fixture(database: Database) -> Fixture:
    """Give an experiment with one trial."""
    return Fixture(database)


def curves(fixture: Fixture, points: int, name: str | None = None) -> dict[tuple[str, str], MetricCurve]:
    with fixture.database.read() as connection:
        found = series.curves(connection, fixture.trial_id, BOTH, points=points, name=name)
    return {(curve.kind.value, curve.name): curve for curve in found}


def test_few_rows_are_all_there(fixture: Fixture) -> None:
    run = fixture.run()
    run.say(
        metrics_report("training", [1, 2, 3], loss=[3.0, math.nan, 1.0], accuracy=[None, 0.5, None]),
        metrics_report("validation", [3], val_loss=[2.0]),
    )
    found = curves(fixture, 3)
    assert list(found) == [("training", "accuracy"), ("training", "loss"), ("validation", "val_loss")]
    loss = found["training", "loss"]
    assert (loss.batch, loss.minimum, loss.maximum, loss.mean) == (
        [1, 2, 3],
        [3.0, None, 1.0],
        [3.0, None, 1.0],
        [3.0, None, 1.0],
    )
    assert found["training", "accuracy"].batch == [2]
    assert (found["validation", "val_loss"].batch, found["validation", "val_loss"].trial_id) == ([3], fixture.trial_id)
    assert list(curves(fixture, 3, "loss")) == [("training", "loss")]
    assert curves(fixture, 3, "nothing") == {}


def test_many_rows_keep_their_extremes(fixture: Fixture) -> None:
    run = fixture.run()
    values = [math.sin(number) for number in range(20_000)]
    values[12_345], values[17_000] = 50.0, -50.0
    for first in range(0, 20_000, 5_000):
        part = list(range(first + 1, first + 5_001))
        run.say(metrics_report("training", part, loss=values[first : first + 5_000], late=late(part)))
    found = curves(fixture, 100)
    loss = found["training", "loss"]
    assert 50 < len(loss.batch) <= 100
    assert loss.batch == sorted(set(loss.batch))
    assert 19_800 < loss.batch[-1] < 20_000, "the middle of the last stretch"
    assert (min(some(loss.minimum)), max(some(loss.maximum))) == (-50.0, 50.0)
    assert found["training", "late"].batch[0] > 19_000
    assert max(some(found["training", "late"].maximum)) == 20_000


@pytest.mark.long
def test_a_look_at_a_long_series_reads_what_it_shows_not_all_that_is_kept(fixture: Fixture) -> None:
    if not fixture.database.url.drivername.startswith("sqlite"):
        pytest.skip("SQLite alone counts its steps")
    run = fixture.run()
    for first in range(0, 60_000, 10_000):
        part = list(range(first + 1, first + 10_001))
        run.say(metrics_report("training", part, **{name: [float(row) for row in part] for name in ("a", "b", "c")}))
    hundreds = [0]

    def count() -> int:
        hundreds[0] += 1
        return 0

    with fixture.database.read() as connection:
        driver = connection.connection.driver_connection
        driver.set_progress_handler(count, 100)
        found = series.curves(connection, fixture.trial_id, [MetricKind.TRAINING], points=60)
        driver.set_progress_handler(None, 0)
    assert [len(curve.batch) for curve in found] == [60] * 3
    assert hundreds[0] < 1_000, "each bucket of each level was looked at"


def late(batches: list[int]) -> list[float | None]:
    return [float(batch) if batch > 19_000 else None for batch in batches]


def some(values: list[float | None]) -> list[float]:
    return [value for value in values if value is not None]


@pytest.mark.long
def test_a_run_that_was_taken_over_from_does_not_make_the_rest_coarse(fixture: Fixture) -> None:
    rows = list(range(1, 5_001))
    fixture.run().say(metrics_report("training", rows, loss=[float(row) for row in rows]))
    fixture.run(start_batch=5).say(metrics_report("training", list(range(6, 46)), loss=[0.5] * 40))
    loss = curves(fixture, 50)["training", "loss"]
    assert loss.batch == list(range(1, 46))
    assert loss.mean == [1.0, 2.0, 3.0, 4.0, 5.0] + [0.5] * 40


@pytest.mark.long
@settings(
    max_examples=max(25, settings.default.max_examples // 8),  # each with a trial in the database
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(st.tuples(st.integers(1, 400), st.sampled_from(["a", "ab", "b"])), min_size=1, max_size=4),
    st.integers(1, 60),
)
def test_all_curves_are_what_one_series_after_the_other_is(
    fixture: Fixture, parts: list[tuple[int, str]], points: int
) -> None:
    trial_id = fixture.add_trial(_next())
    run, batch = fixture.run(trial_id=trial_id), 0
    for count, names in parts:
        batches = list(range(batch + 1, batch + count + 1))
        run.say(metrics_report("training", batches, **{name: [float(one) for one in batches] for name in names}))
        batch += count
    with fixture.database.read() as connection:
        together = series.curves(connection, trial_id, [MetricKind.TRAINING], points=points)
        for curve in together:
            alone = series.read(connection, trial_id, MetricKind.TRAINING, curve.name, points=points)
            assert (curve.minimum[0], curve.maximum[-1]) == (alone.minimum[0], alone.maximum[-1])
            assert (curve.batch[-1], len(curve.batch) <= points) == (alone.batch[-1], True)
    assert {curve.name for curve in together} == set("".join(names for _, names in parts))


_requests = iter(range(1, 10**9))


def _next() -> int:
    return next(_requests)


@pytest.mark.parametrize(("smaller_is_better", "best"), [(True, 2), (False, 1)])
def test_the_best_trial_and_the_newest_ones_are_shown(database: Database, smaller_is_better: bool, best: int) -> None:
    fixture = Fixture(database, smaller_is_better=smaller_is_better)
    ids = [fixture.trial_id, *(fixture.add_trial(request) for request in range(1, 6))]
    with database.read() as connection:
        experiment = experiments.get(connection, fixture.experiment_id)
        assert trials.best_and_newest(connection, experiment, 2) == ids[-2:]
    for at, value in ((1, 0.9), (2, 0.1), (3, 0.5)):
        fixture.run(trial_id=ids[at]).say(metrics_report("validation", [1], loss=[value]))
    with database.read() as connection:
        assert trials.best_and_newest(connection, experiment, 2) == [ids[best], ids[-1]]
        assert trials.best_and_newest(connection, experiment, 1) == [ids[best]]
        assert trials.best_and_newest(connection, experiment, 50) == ids


@pytest.mark.long
def test_curves_over_http(master: Master) -> None:
    experiment = master.create({"searcher": {"name": "random", "max_trials": 2}})
    for job, loss in zip(master.world.wait_for_jobs(2), (0.25, 0.75), strict=True):
        worker = Worker(master, job)
        worker.start()
        worker.train(1, 3, loss=[1.0, "NaN", 3.0], accuracy=[0.0, 0.5, 1.0])  # type: ignore[list-item]
        worker.validate(3, loss=loss)
    found = master.get("/trials/1/curves")
    assert [(one["kind"], one["name"]) for one in found] == [
        ("training", "accuracy"),
        ("training", "loss"),
        ("validation", "loss"),
    ]
    assert found[1] == {
        "trial_id": 1,
        "kind": "training",
        "name": "loss",
        "batch": [1, 2, 3],
        "minimum": [1.0, None, 3.0],
        "maximum": [1.0, None, 3.0],
        "mean": [1.0, None, 3.0],
        "last": 3.0,
    }
    assert master.get("/trials/1/curves", kind="validation") == found[2:]
    assert [len(one["batch"]) for one in master.get("/trials/1/curves", buckets=2)] == [2, 2, 1]
    path = f"/experiments/{experiment['id']}/curves"
    both: list[dict[str, Any]] = master.get(path)
    assert [one["trial_id"] for one in both] == [1] * 3 + [2] * 3
    assert both[:3] == found
    assert [(one["trial_id"], one["name"]) for one in master.get(path, metric="accuracy", trials=1)] == [
        (1, "accuracy")
    ]
    assert [one["kind"] for one in master.get(path, kind="training", metric="loss")] == ["training"] * 2
    for missing in ("/trials/9/curves", "/experiments/9/curves"):
        assert master.client.get(f"/api/v1{missing}").status_code == 404
    assert master.client.get(f"/api/v1{path}", params={"buckets": 0}).status_code == 422


@pytest.mark.long
def test_very_many_curves_have_fewer_points_each(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    fixture = Fixture(database)
    ids = [fixture.trial_id, *(fixture.add_trial(request) for request in range(1, 4))]
    rows = list(range(1, 101))
    for trial_id in ids[1:]:  # the first one has failed before it reported
        fixture.run(trial_id=trial_id).say(metrics_report("training", rows, loss=rows, error=rows))
    kinds = list(MetricKind)

    def points(wanted: int, name: str | None = None) -> set[int]:
        with database.read() as connection:
            found = series.curves_of_many(connection, ids, kinds, points=wanted, name=name)
        assert len(found) == 3 * (1 if name else 2)
        assert all((min(one.minimum), max(one.maximum)) == (1, 100) for one in found)  # type: ignore[type-var]
        return {len(one.batch) for one in found}

    assert points(50) == {50}
    monkeypatch.setattr(series, "MOST_POINTS", 160)
    assert points(50) == {30}, "what 8 curves would get is too few to see anything"
    monkeypatch.setattr(series, "MOST_POINTS", 320)
    assert points(50) == {40}
    assert points(20) == {20}
    assert points(100, "loss") == {80}
