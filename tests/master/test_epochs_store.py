"""What the store promises of the epochs of a framework's own history."""

from __future__ import annotations

from typing import Any

import pytest
from store_parts import Fixture

from det_native.errors import NotFoundError
from det_native.master.store import epochs
from det_native.master.store.database import Database


@pytest.fixture
def fixture(database: Database) -> Fixture:
    """Give an experiment with a trial."""
    return Fixture(database)


def report(batch: int, **logs: Any) -> dict[str, Any]:
    row = {"batch": batch, "epoch": batch // 5 - 1, "logs": logs, "params": {"steps": 5}}
    return {"type": "epoch", "row": row}


def shown(fixture: Fixture, trial_id: int | None = None) -> list[tuple[int, int, dict[str, Any]]]:
    with fixture.database.read() as connection:
        found = epochs.read(connection, trial_id or fixture.trial_id)
    return [(row.epoch, row.batch, row.logs) for row in found]


def test_names_keep_their_order_and_values_their_form(fixture: Fixture) -> None:
    run = fixture.run()
    logs = {"val_loss": "NaN", "loss": 0.1, "lr": {"float32": 0.10000000149011612}}
    run.say(report(5, **logs))
    ((_, _, found),) = shown(fixture)
    assert found == logs
    assert list(found) == list(logs)


def test_a_run_owns_the_epochs_that_end_after_its_beginning(fixture: Fixture) -> None:
    fixture.run().say(report(5, loss=1.0), report(10, loss=2.0), report(15, loss=3.0))
    assert [epoch for epoch, _, _ in shown(fixture)] == [0, 1, 2]
    new = fixture.run(start_batch=5)
    assert [epoch for epoch, _, _ in shown(fixture)] == [0]
    new.say(report(10, loss=4.0))
    assert [(batch, logs["loss"]) for _, batch, logs in shown(fixture)] == [(5, 1.0), (10, 4.0)]


def test_there_is_no_history_of_a_trial_that_is_not_there(fixture: Fixture) -> None:
    assert shown(fixture) == []
    with pytest.raises(NotFoundError):
        shown(fixture, 99)
