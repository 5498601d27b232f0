"""A table of experiments: rows, names for queries, groups with statistics, and views; on every database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from master_parts import Master, manifest
from sqlalchemy import update
from store_parts import OWNER

from det_native.errors import ArgumentError
from det_native.master.store import bundles, experiment_rows, experiments, finding, grouping, reports, runs, trials
from det_native.master.store.database import Database
from det_native.master.store.tables import experiments as experiment_columns
from det_native.schema import rest
from det_native.schema.experiment_table import ExperimentGroups
from det_native.schema.query import parse, parse_order
from det_native.schema.run_ids import new_id
from det_native.schema.states import MetricKind

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)

# Name, labels, hyperparameters, loss.
MADE: list[tuple[str, tuple[str, ...], dict[str, Any], float | None]] = [
    ("digits", ("baseline",), {"lr": 0.1, "optimizer": {"name": "adam"}}, 1.0),
    ("digits", ("baseline", "wide"), {"lr": 0.1}, 3.0),
    ("letters", (), {"lr": 0.2}, 0.5),
    ("", ("wide",), {"lr": "auto"}, None),
]


@pytest.fixture
def filled(database: Database) -> Database:
    """Give four experiments, and one of another user."""
    with database.write() as transaction:
        bundles.add(transaction, manifest())
        for name, labels, hparams, loss in MADE:
            make(transaction, OWNER, name, labels, hparams, loss)
        make(transaction, "somebody", "secret", ("secret",), {"secret": 1}, 0.0)
    return database


def make(
    transaction: Any, owner: str, name: str, labels: tuple[str, ...], hparams: dict[str, Any], loss: float | None
) -> None:
    new = experiments.NewExperiment(owner, name, {}, manifest().id, "torch", "loss", True, [], labels=labels)
    number = experiments.create(transaction, new)
    trial_id = trials.create(transaction, number, request=0, hparams=hparams, seed=1, target_batches=9)
    run_id = new_id()
    runs.create(transaction, trial_id, run_id, token_hash="", slots=["cpu:0"])
    if loss is not None:
        told: list[rest.Report] = [
            rest.StartedReport(seq=1, batch=0),
            rest.MetricsReport(seq=2, kind=MetricKind.VALIDATION, batches=[1, 2], metrics={"loss": [loss, loss + 1]}),
        ]
        reports.accept(transaction, run_id, rest.ReportBatch(reports=told))


def grouped(database: Database, by: str, query: str | None = None, **how: Any) -> ExperimentGroups:
    tree = None if query is None else parse(query)
    with database.read() as connection:
        return grouping.groups(connection, OWNER, tree, NOW, by=by, measure=parse_order("metric:loss"), **how)


def test_names_for_queries_are_those_of_this_user_only_with_counts(filled: Database) -> None:
    with filled.read() as connection:
        names = experiment_rows.names(connection, OWNER)
    assert [(each.name, each.count) for each in names.labels] == [("baseline", 2), ("wide", 2)]
    assert ("loss", 3) in [(each.name, each.count) for each in names.metrics]
    assert [each.name for each in names.names] == ["digits", "letters"]
    found = {each.name: each.count for each in names.hyperparameters}
    assert found["lr"] >= 3
    assert "optimizer.name" in found
    assert "secret" not in names.model_dump_json()


def test_groups_have_count_mean_deviation_and_the_best_first(filled: Database) -> None:
    by_name = grouped(filled, "name")
    assert [(each.value, each.count, each.measured) for each in by_name.groups] == [
        ("letters", 1, 1),
        ("digits", 2, 2),
        ("Experiment 4", 1, 0),
    ]
    letters, digits, unmeasured = by_name.groups
    assert (letters.mean, letters.deviation, letters.best) == (0.5, None, 0.5)
    assert (digits.mean, digits.best, digits.ids) == (2.0, 1.0, [1, 2])
    assert digits.deviation == pytest.approx(2**0.5)
    assert (unmeasured.mean, unmeasured.best, unmeasured.ids) == (None, None, [4])


def test_an_experiment_with_two_labels_is_in_two_groups_and_others_in_that_without(filled: Database) -> None:
    found = {each.value: each.ids for each in grouped(filled, "label").groups}
    assert found == {"baseline": [1, 2], "wide": [2, 4], None: [3]}


def test_hyperparameters_make_groups_nested_ones_too(filled: Database) -> None:
    found = {each.value: sorted(each.ids) for each in grouped(filled, "hp:lr", "loss > 0").groups}
    assert found == {0.1: [1, 2], 0.2: [3]}
    found = {each.value: sorted(each.ids) for each in grouped(filled, "hp:optimizer.name", "loss > 0").groups}
    assert found == {"adam": [1], None: [2, 3]}


def test_only_so_many_experiments_are_grouped_and_it_says_so(filled: Database) -> None:
    found = grouped(filled, "name", most=2)
    assert (found.total, found.grouped) == (4, 2)


@pytest.mark.long
@pytest.mark.parametrize("by", ["", "hp:", "config", "state"])
def test_a_grouping_that_is_not_known_is_refused_with_those_that_are(filled: Database, by: str) -> None:
    with pytest.raises(ArgumentError, match="there are name, project, framework, label and hp:<name>"):
        grouped(filled, by)


def test_a_text_has_no_mean(filled: Database) -> None:
    with filled.read() as connection, pytest.raises(ArgumentError, match="measure='name' is not a number"):
        grouping.groups(connection, OWNER, None, NOW, by="name", measure=parse_order("name"))


def test_rows_have_what_columns_show_and_nothing_of_others(filled: Database) -> None:
    with filled.write() as transaction:
        change = update(experiment_columns).where(experiment_columns.c.id == 2)
        transaction.connection.execute(change.values(notes="\n  First line \nmore"))
    with filled.read() as connection:
        rows = experiment_rows.rows_of(
            connection, OWNER, [3, 2, 99, 5], hparams=True, metrics={"loss"}, told=lambda experiment: experiment
        )
    assert [row.experiment.id for row in rows] == [3, 2]
    assert (rows[1].notes, rows[1].owner, rows[1].hparams) == ("First line", OWNER, {"lr": 0.1})
    (loss,) = rows[1].metrics
    assert (loss.last, loss.minimum, loss.maximum) == (4.0, 3.0, 4.0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("order", "ids"),
    [
        *(("last:loss", [3, 1, 2, 4]), ("max:loss desc", [2, 1, 3, 4]), ("min:loss", [3, 1, 2, 4])),
        *(("best", [3, 1, 2, 4]), ("trials", [4, 3, 2, 1]), ("project", [4, 3, 2, 1])),
    ],
)
def test_all_ids_come_in_the_order_that_is_asked_for(filled: Database, order: str, ids: list[int]) -> None:
    with filled.read() as connection:
        listed = finding.in_order(connection, OWNER, None, NOW, order=parse_order(order), limit=10)
        first = finding.in_order(connection, OWNER, None, NOW, order=parse_order(order), limit=2)
    assert listed.ids == ids
    assert (first.ids, first.total) == (ids[:2], 4)


@pytest.mark.long
def test_the_routes_of_the_table_answer(master: Master) -> None:
    for number in range(3):
        master.create({"name": f"experiment {number}", "labels": ["baseline"] if number else []})
    listed = master.get("/experiment-list", label="baseline", rows=1, order_by="id asc")
    assert (listed["ids"], listed["total"]) == ([2, 3], 2)
    assert [row["experiment"]["name"] for row in listed["rows"]] == ["experiment 1"]
    rows = master.get("/experiment-rows", id=[3, 1, 3, 77], hparams=True)
    assert [row["experiment"]["id"] for row in rows] == [3, 1]
    groups = master.get("/experiment-groups", by="label", measure="duration")
    assert {group["value"]: group["count"] for group in groups["groups"]} == {"baseline": 2, None: 1}
    assert [label["name"] for label in master.get("/experiment-names")["labels"]] == ["baseline"]
    answer = master.client.get("/api/v1/experiment-list", params={"query": "lr >"})
    assert answer.status_code == 400
    assert "does not parse at character 5" in answer.json()["error"]


@pytest.mark.long
def test_views_are_saved_replaced_and_deleted(master: Master) -> None:
    url = "/api/v1/experiment-views"
    name = "Best & newest / <b>"
    assert master.client.get(url).json() == []
    for columns in ("id,name", "id"):
        answer = master.client.put(url, json={"name": name, "parameters": {"columns": columns, "query": "lr > 0"}})
        assert answer.status_code == 200, answer.text
    (view,) = master.client.get(url).json()
    assert (view["name"], view["parameters"]) == (name, {"columns": "id", "query": "lr > 0"})
    assert master.client.delete(url, params={"name": name}).json() == []
    assert master.client.delete(url, params={"name": name}).status_code == 404
    too_long = master.client.put(url, json={"name": name, "parameters": {"query": "x" * 20_001}})
    assert too_long.status_code == 422
