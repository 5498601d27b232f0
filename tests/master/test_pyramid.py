"""Down-sampled series against numpy, for every way in which rows may come."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_databases import put_database
from hypothesis import given, settings
from hypothesis import strategies as st
from store_parts import Fixture, metrics_report

from det_native.master.store import series
from det_native.master.store.database import Database
from det_native.master.store.pyramid import BASE, Summary, Tail, merge_evenly, width
from det_native.schema.rest import MetricSeries
from det_native.schema.states import MetricKind

values = st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(math.nan))


@given(st.lists(values, max_size=200), st.lists(st.integers(1, 60), max_size=20))
def test_complete_buckets_do_not_depend_on_how_the_rows_come(column: list[float | None], pieces: list[int]) -> None:
    batches = list(range(10, 10 + len(column)))
    whole = Tail().extend(batches, {"loss": column})
    tail, parts, at = Tail(), [], 0
    for size in [*pieces, len(column)]:
        if at < len(column):
            parts += tail.extend(batches[at : at + size], {"loss": column[at : at + size]})
            at += size
    assert parts == whole
    for bucket in whole:
        start = bucket.position * width(bucket.level)
        inside = column[start : start + width(bucket.level)]
        numbers = np.array([value for value in inside if value is not None and value == value])
        assert bucket.summary.count == len(numbers)
        assert bucket.summary.nans == sum(value is not None and value != value for value in inside)
        if len(numbers):
            assert (bucket.summary.minimum, bucket.summary.maximum) == (numbers.min(), numbers.max())
            assert bucket.summary.mean == pytest.approx(numbers.mean(), rel=1e-9, abs=1e-9)
    assert sum(bucket.level == 0 for bucket in whole) == len(column) // BASE


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=100), st.integers(1, 40))
def test_merging_keeps_every_value_in_one_bucket(column: list[float], buckets: int) -> None:
    merged = list(merge_evenly([Summary.of([at], [value]) for at, value in enumerate(column)], buckets))
    assert len(merged) == min(buckets, len(column))
    assert sum(part.count for part in merged) == len(column)
    assert max(part.maximum for part in merged) == max(column)
    assert merged[-1].last_batch == len(column) - 1


def read(database: Database, fixture: Fixture, points: int, name: str = "loss") -> MetricSeries:
    with database.read() as connection:
        return series.read(connection, fixture.trial_id, MetricKind.TRAINING, name, points=points)


@settings(max_examples=max(12, settings.default.max_examples // 8))  # each with a database on disk
@given(data=st.data())
def test_a_series_read_from_the_store_is_exact(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _check_a_series(data, Path(folder) / "det.db")


def _check_a_series(data: st.DataObject, path: Path) -> None:
    shown: dict[int, float] = {}
    start = 0
    database = Database(put_database(path))
    try:
        fixture = Fixture(database)
        for _ in range(data.draw(st.integers(1, 3), "runs")):
            shown = {batch: value for batch, value in shown.items() if batch <= start}
            run = fixture.run(start_batch=start)
            at = start
            for _ in range(data.draw(st.integers(1, 4), "reports")):
                if data.draw(st.booleans(), "reopen"):
                    database.close()
                    run.database = fixture.database = database = Database(f"sqlite:///{path}")
                size = data.draw(st.integers(1, 150), "rows")
                step = data.draw(st.integers(1, 3), "step")
                batches = [at + step * (index + 1) for index in range(size)]
                column = data.draw(st.lists(st.floats(-1e3, 1e3), min_size=size, max_size=size), "values")
                run.say(metrics_report("training", batches, loss=list(column)))
                shown.update(zip(batches, column, strict=True))
                at = batches[-1]
            start = data.draw(st.integers(0, at), "checkpoint")
        points = data.draw(st.integers(1, 40), "points")
        found = read(database, fixture, points)
    finally:
        database.close()
    assert len(found.batch) <= points
    assert found.batch == sorted(set(found.batch))
    parts = list(zip(found.batch, found.minimum, found.maximum, found.mean, strict=True))
    assert are_buckets_of(sorted(shown.items()), parts)


def are_buckets_of(rows: Sequence[tuple[int, float]], found: Sequence[tuple[int, Any, Any, Any]]) -> bool:
    """Whether rows can be cut into stretches with these middle batches, minima, maxima and means."""
    if not rows or not found:
        return not rows and not found
    (middle, low, high, mean), *others = found
    for size in range(1, len(rows) + 1):
        inside = np.array([value for _, value in rows[:size]])
        if (rows[0][0] + rows[size - 1][0]) // 2 != middle or (low, high) != (inside.min(), inside.max()):
            continue
        if mean == pytest.approx(inside.mean(), abs=1e-6) and are_buckets_of(rows[size:], others):
            return True
    return False


def test_a_bucket_is_at_the_middle_of_its_rows(tmp_path: Path) -> None:
    database = Database(put_database(tmp_path / "det.db"))
    fixture = Fixture(database)
    rows = list(range(10, 2010, 10))
    fixture.run().say(metrics_report("training", rows, loss=[1000.0 - row for row in rows]))
    whole, some = read(database, fixture, len(rows)), read(database, fixture, 30)
    database.close()
    assert whole.batch == rows, "a row alone stays where it is"
    assert 10 < len(some.batch) <= 30
    line = [1000.0 - batch for batch in some.batch]
    assert some.mean == pytest.approx(line, abs=0.5), "of a straight line the means lie on it"


def test_a_name_that_comes_and_goes_is_found_again(tmp_path: Path) -> None:
    database = Database(put_database(tmp_path / "det.db"))
    fixture = Fixture(database)
    run = fixture.run()
    for batch in range(1, 201):
        columns: dict[str, list[float | None]] = {"loss": [float(batch)]}
        if 50 < batch <= 100 and batch % 10 == 0:
            columns["rare"] = [float(-batch)]
        run.say(metrics_report("training", [batch], **columns))
        if batch in (55, 95, 140):
            database.close()
            run.database = fixture.database = database = Database(f"sqlite:///{tmp_path / 'det.db'}")
    found = read(database, fixture, 10, "rare")
    database.close()
    assert (min(value for value in found.minimum if value is not None), found.maximum[0]) == (-100.0, -60.0)
    assert found.batch[-1] <= 128


def test_means_of_the_largest_numbers_are_numbers(tmp_path: Path) -> None:
    database = Database(put_database(tmp_path / "det.db"))
    fixture = Fixture(database)
    largest = [1e308] * 64
    column = [*largest, *(-value for value in largest), *([1.0, 3.0] * 32)]
    fixture.run().say(metrics_report("training", list(range(1, len(column) + 1)), loss=column))
    three, one = read(database, fixture, 3), read(database, fixture, 1)
    database.close()
    assert three.mean == [1e308, -1e308, 2.0], "a mean lies between minimum and maximum"
    assert one.mean == [0.0]


def test_not_a_numbers_leave_a_gap_and_infinities_stay(tmp_path: Path) -> None:
    database = Database(put_database(tmp_path / "det.db"))
    fixture = Fixture(database)
    column: list[float | None] = [1.0] * 32 + [math.nan] * 32 + [math.inf, -math.inf] * 16
    fixture.run().say(metrics_report("training", list(range(1, 97)), loss=column))
    found = read(database, fixture, 6)
    database.close()
    assert found.minimum == [1.0, 1.0, None, None, -math.inf, -math.inf]
    assert found.maximum == [1.0, 1.0, None, None, math.inf, math.inf]
    assert '"maximum":[1.0,1.0,null,null,"Infinity","Infinity"]' in found.model_dump_json()
