"""Summaries of metrics, on SQLite alone: what a report adds, when training is summarised, and whose are given."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fresh_databases import put_database
from sqlalchemy import insert, select
from store_parts import OWNER, Fixture, metrics_report

from det_native.master.store import summaries
from det_native.master.store.database import Database
from det_native.master.store.pyramid import Key
from det_native.master.store.tables import metric_summaries, unsummarised
from det_native.schema.rest import MetricsReport
from det_native.schema.states import MetricKind


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(put_database(tmp_path / "det.db"))
    yield opened
    opened.close()


def stored(database: Database, trial_id: int) -> dict[str, tuple[Any, ...]]:
    with database.read() as connection:
        rows = connection.execute(select(metric_summaries).where(metric_summaries.c.trial_id == trial_id))
        return {row.name: (row.last_batch, row.last, row.minimum, row.maximum) for row in rows}


def extend(fixture: Fixture, new: int, batches: list[int], **columns: list[float | None]) -> dict[str, tuple[Any, ...]]:
    report = MetricsReport.model_validate({"seq": 1, **metrics_report("logged", batches, **columns)})
    run = SimpleNamespace(trial_id=fixture.trial_id, experiment_id=fixture.experiment_id)
    with fixture.database.write() as transaction:
        summaries.extend(transaction, run, report, new)  # type: ignore[arg-type]
    return stored(fixture.database, fixture.trial_id)


def test_only_the_new_rows_of_a_report_are_added(database: Database) -> None:
    fixture = Fixture(database)
    assert extend(fixture, 2, [1, 2, 3], a=[9.0, 2.0, 4.0], b=[1.0, None, None]) == {"a": (3, 4.0, 2.0, 4.0)}
    assert extend(fixture, 1, [3, 4], a=[-9.0, 3.0]) == {"a": (4, 3.0, 2.0, 4.0)}


def test_no_number_is_no_extreme_and_no_last_value(database: Database) -> None:
    fixture = Fixture(database)
    assert extend(fixture, 2, [1, 2], a=[math.nan, 5.0], b=[5.0, math.nan], c=[math.nan, math.nan]) == {
        "a": (2, 5.0, 5.0, 5.0),
        "b": (2, None, 5.0, 5.0),
        "c": (2, None, None, None),
    }


def test_names_that_are_too_long_are_left_out(database: Database) -> None:
    longest, longer = "a" * summaries.LONGEST_NAME, "b" * (summaries.LONGEST_NAME + 1)
    fixture = Fixture(database)
    assert extend(fixture, 1, [1], **{longest: [1.0], longer: [1.0]}).keys() == {longest}
    run = fixture.run()
    run.say({"type": "started", "batch": 0}, metrics_report("training", [1], **{longest: [1.0], longer: [1.0]}))
    run.say({"type": "exit", "reason": "COMPLETED", "batch": 1})
    assert stored(database, fixture.trial_id).keys() == {longest}


def test_training_is_summarised_when_the_interval_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(summaries.time, "monotonic", lambda: now)
    run: Any = SimpleNamespace(trial_id=3, number=2)
    tail = SimpleNamespace(summarised=0.0)
    transaction: Any = SimpleNamespace(tails={Key(3, 2, "training"): tail})
    assert not summaries.is_due(transaction, run), "the first time only begins the interval"
    now += summaries.INTERVAL - 1
    assert not summaries.is_due(transaction, run)
    now += 1
    assert summaries.is_due(transaction, run)
    now += summaries.INTERVAL - 1
    assert not summaries.is_due(transaction, run)
    assert not summaries.is_due(SimpleNamespace(tails={}), run)  # type: ignore[arg-type]


def test_the_last_value_of_a_metric_is_looked_for_in_the_newest_rows(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture = Fixture(database)
    run = fixture.run()
    run.say(
        {"type": "started", "batch": 0},
        metrics_report("training", [1, 2, 3], often=[3.0, 1.0, 2.0], seldom=[7.0, None, None]),
    )

    def refreshed(rows: int) -> dict[str, tuple[Any, ...]]:
        monkeypatch.setattr(summaries, "_MOST_ROWS", rows)
        with database.write() as transaction:
            summaries.refresh(transaction, fixture.trial_id, [MetricKind.TRAINING])
        return stored(database, fixture.trial_id)

    assert refreshed(3) == {"often": (3, 2.0, 1.0, 3.0), "seldom": (1, 7.0, 7.0, 7.0)}
    assert refreshed(2)["often"] == (3, 2.0, 1.0, 3.0)
    assert refreshed(2)["seldom"][1] is None


def test_a_refresh_replaces_the_kinds_that_are_named_only(database: Database) -> None:
    fixture = Fixture(database)
    run = fixture.run()
    run.say({"type": "started", "batch": 0}, metrics_report("logged", [1], a=[1.0]))
    run.say(metrics_report("validation", [1], loss=[2.0]))
    with database.write() as transaction:
        transaction.connection.execute(metric_summaries.update().values(last=99.0))
        summaries.refresh(transaction, fixture.trial_id, [])
        summaries.refresh(transaction, 999, list(MetricKind))
        summaries.refresh(transaction, fixture.trial_id, [MetricKind.VALIDATION])
    assert {name: row[1] for name, row in stored(database, fixture.trial_id).items()} == {"a": 99.0, "loss": 2.0}


def test_earlier_trials_are_summarised_newest_first_a_step_at_a_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture = Fixture(database)
    trials = [fixture.trial_id, fixture.add_trial(1), fixture.add_trial(2)]
    for trial_id in trials:
        run = fixture.run(trial_id=trial_id)
        run.say({"type": "started", "batch": 0}, metrics_report("validation", [1], loss=[1.0]))
    with database.write() as transaction:
        transaction.connection.execute(metric_summaries.delete())
        transaction.connection.execute(insert(unsummarised), [{"trial_id": trial_id} for trial_id in trials])
    monkeypatch.setattr(summaries, "_STEP", -1.0)
    assert summaries.summarise_earlier(database) == 2
    assert [bool(stored(database, trial_id)) for trial_id in trials] == [False, False, True]
    monkeypatch.setattr(summaries, "_STEP", 60.0)
    assert summaries.summarise_earlier(database) == 0
    assert all(stored(database, trial_id) for trial_id in trials)


def test_summaries_are_those_of_the_owner_and_of_the_best_trial_if_asked_for(database: Database) -> None:
    fixture, other = Fixture(database), Fixture(database, owner="other")
    second = fixture.add_trial(1)
    for trial_id, loss in ((fixture.trial_id, 2.0), (second, 1.0), (other.trial_id, 3.0)):
        run = fixture.run(trial_id=trial_id)
        run.say({"type": "started", "batch": 0}, metrics_report("validation", [1], loss=[loss], accuracy=[0.5]))
    experiments = [fixture.experiment_id, other.experiment_id]

    def given(owner: str | None, *, best: bool) -> list[tuple[int, list[str], float | None]]:
        with database.read() as connection:
            found = summaries.of_experiments(connection, owner, experiments, best=best)
        return [(one.trial_id, [metric.name for metric in one.metrics], one.metrics[-1].last) for one in found]

    names = ["accuracy", "loss"]
    assert given(OWNER, best=False) == [(fixture.trial_id, names, 2.0), (second, names, 1.0)]
    assert given(OWNER, best=True) == [(second, names, 1.0)]
    assert sorted(given(None, best=True)) == sorted([(second, names, 1.0), (other.trial_id, names, 3.0)])
    assert given("nobody", best=True) == given("nobody", best=False) == []
    with database.read() as connection:
        assert summaries.known_metrics(connection, ["none", "loss"])
        assert not summaries.known_metrics(connection, ["none"])
