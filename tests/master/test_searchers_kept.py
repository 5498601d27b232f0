"""What a search knows is in the store after each event, and little is written for one."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from store_parts import Fixture

from det_native.master.flow import searchers
from det_native.master.flow.searchers import Searchers
from det_native.master.store import experiments, searches
from det_native.master.store.database import Database
from det_native.schema import rest
from det_native.search import Action, CreateTrial, Event, Shutdown, Started, TrialCompleted

CONFIG = {
    "searcher": {
        "name": "async_halving",
        "metric": "loss",
        "max_length": {"batches": 16},
        "divisor": 2,
        "num_rungs": 3,
        "max_trials": 20,
        "max_concurrent_trials": 4,
    },
    "hyperparameters": {"global_batch_size": 32, "x": {"type": "double", "minval": 0, "maxval": 1}},
    "reproducibility": {"experiment_seed": 5},
}


@pytest.fixture
def experiment(database: Database) -> rest.Experiment:
    fixture = Fixture(database)
    with database.read() as connection:
        found = experiments.get(connection, fixture.experiment_id)
    return found.model_copy(update={"config": CONFIG})


def told_in_vain(database: Database, known: Searchers, experiment: rest.Experiment, event: Event) -> list[Action]:
    """Tell of an event in a transaction that fails, as on a full disk."""
    actions: list[Action] = []
    with suppress(InterruptedError), database.write() as transaction:
        actions = known.tell(transaction, experiment, event)
        raise InterruptedError
    return actions


def test_a_search_goes_on_alike_wherever_the_master_has_ended(
    database: Database, experiment: rest.Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searchers, "EVENTS_PER_SNAPSHOT", 5)
    lasting, todo, over, most = Searchers(database), [], False, 0
    with database.write() as transaction:
        actions = lasting.tell(transaction, experiment, Started())
    while True:
        for action in actions:
            over = over or isinstance(action, Shutdown)
            units = getattr(action, "units", None)
            if units is not None:
                todo.append((getattr(action, "request"), units))  # noqa: B009 (actions of several classes)
        if not todo:
            break
        request, units = todo.pop(0)
        event = TrialCompleted(request, (request * 7 % 11) / 11, units)
        expected = told_in_vain(database, Searchers(database), experiment, event)
        with database.write() as transaction:
            actions = lasting.tell(transaction, experiment, event)
        assert expected == actions
        with database.read() as connection:
            snapshot, events = searches.known(connection, experiment.id)
        most = max(most, len(events))
        assert most < 5
    assert over
    assert most == 4
    assert events == [], "nothing is left beside the last snapshot"
    assert snapshot is not None
    assert snapshot["shut_down"] is True


def test_an_event_of_a_large_search_writes_little(database: Database, experiment: rest.Experiment) -> None:
    many = {**CONFIG["searcher"], "max_trials": 2000, "max_concurrent_trials": 2000}
    experiment = experiment.model_copy(update={"config": {**CONFIG, "searcher": many}})
    known = Searchers(database)
    with database.write() as transaction:
        begun = known.tell(transaction, experiment, Started())
        for number in range(10):
            known.tell(transaction, experiment, TrialCompleted(number, 0.5, 4))
    assert sum(isinstance(action, CreateTrial) for action in begun) == 2000
    with database.read() as connection:
        _, events = searches.known(connection, experiment.id)
    assert len(events) == 11
    assert all(len(json.dumps(event)) < 200 for event in events)


def test_a_failed_transaction_is_forgotten(database: Database, experiment: rest.Experiment) -> None:
    known = Searchers(database)
    with database.write() as transaction:
        known.tell(transaction, experiment, Started())
    told = told_in_vain(database, known, experiment, TrialCompleted(0, 0.5, 4))
    known.forget(experiment.id)
    with database.write() as transaction:
        assert known.tell(transaction, experiment, TrialCompleted(0, 0.5, 4)) == told
