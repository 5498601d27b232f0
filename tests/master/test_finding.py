"""What is found by a query: the same on every database as a plain look at each experiment finds."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from IPython.lib.pretty import pretty
from master_parts import Master, Worker, manifest
from postgres_server import PostgresServer
from sqlalchemy import insert, select, text, update
from store_parts import OWNER, Fixture, Voice, metrics_report

import det_native as det
from det_native.client import http_source
from det_native.errors import ArgumentError, NotFoundError
from det_native.master.store import bundles, experiments, finding, reports, runs, series, summaries, trials
from det_native.master.store.database import Database
from det_native.master.store.query_sql import Translator
from det_native.master.store.tables import experiments as experiment_table
from det_native.master.store.tables import metric_summaries, unsummarised
from det_native.master.store.tables import trials as trial_table
from det_native.schema import rest
from det_native.schema.query import Facts, matches, parse, parse_order
from det_native.schema.query.filters import Filters
from det_native.schema.query.ordering import key_of
from det_native.schema.run_ids import new_id
from det_native.schema.states import ExitReason, ExperimentState, MetricKind
from det_native.schema.summaries import MetricSummary

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
COUNT = 60


@dataclass
class Home:
    """A database with many different experiments, and what is known of each, newest first."""

    database: Database
    everything: list[Facts]

    def ids(self, query: str | None, **how: Any) -> list[int]:
        """Return what is found, all pages together."""
        tree = None if query is None else parse(query)
        with self.database.read() as connection:
            page = finding.find(connection, OWNER, tree, NOW, limit=1000, **how)
        assert page.total == len(page.experiments)
        return [experiment.id for experiment in page.experiments]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Give many experiments that differ in everything."""
    url = f"sqlite:///{tmp_path_factory.mktemp('home') / 'det.db'}"
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.new_database()
    database = Database(url)
    chance = random.Random(0)
    with database.write() as transaction:
        bundles.add(transaction, manifest())
        for number in range(1, COUNT + 1):
            make_experiment(transaction, number, chance)
    with database.read() as connection:
        everything = list(finding.facts_of(connection, OWNER, range(COUNT, 0, -1)))
    assert len(everything) == COUNT
    yield Home(database, everything)
    database.close()


def make_experiment(transaction: Any, number: int, chance: random.Random) -> None:
    smaller = chance.random() < 0.5
    config = {"searcher": {"name": chance.choice(["single", "random"])}, "resources": {"slots_per_trial": number % 4}}
    if number % 3:
        config["data"] = {"path": f"/data/{number % 5}", "sha": True, "0": "zero"}
    new = experiments.NewExperiment(
        owner=OWNER,
        name=chance.choice(["", "digits", "Digits 100%", "über", "a_b", 'with "quotes"']),
        config=config,
        bundle_id=manifest().id,
        framework=chance.choice(["torch", "keras"]),
        metric=chance.choice(["loss", "val_loss", "accuracy"]),
        smaller_is_better=smaller,
        report=[],
        labels=tuple(chance.sample(["baseline", "Best", "größe", "x:y", "with space"], k=chance.randrange(4))),
        project=chance.choice(["", "vision", "vision/digits", "visionary"]),
        description=chance.choice(["", "first try", "Second"]),
        forked_from=chance.choice([None, 1, 2]),
    )
    experiment_id = experiments.create(transaction, new)
    hours = chance.randrange(24 * 30)
    times: dict[str, Any] = {"created": moment(hours), "archived": chance.random() < 0.2}
    state = chance.choice([ExperimentState.ACTIVE, ExperimentState.COMPLETED, ExperimentState.ERROR])
    if state.terminal:
        times["ended"] = moment(hours + chance.randrange(1, 9), chance.randrange(60))
    transaction.connection.execute(
        update(experiment_table).where(experiment_table.c.id == experiment_id).values(state=state, **times)
    )
    for request in range(chance.randrange(4)):
        trial_id = trials.create(
            transaction, experiment_id, request=request, hparams=hyperparameters(chance), seed=1, target_batches=9
        )
        if chance.random() < 0.8:
            values = {"started": moment(hours, chance.randrange(60))}
            transaction.connection.execute(update(trial_table).where(trial_table.c.id == trial_id).values(**values))
        if chance.random() < 0.8:
            report_metrics(transaction, trial_id, chance)


def hyperparameters(chance: random.Random) -> dict[str, Any]:
    every = {
        "lr": chance.choice([1e-4, 1e-2, 1, "auto"]),
        "optimizer": chance.choice(["adam", "SGD", {"name": "adam", "lr": 0.5}]),
        "deep.name": chance.choice([1, 2]),
        "deep": {"name": 3},
        "nesterov": chance.choice([True, False]),
        "loss": 0.25,
        "nothing": None,
        "learning rate": chance.choice([0.1, 0.2]),
    }
    return {name: value for name, value in every.items() if chance.random() < 0.7}


def report_metrics(transaction: Any, trial_id: int, chance: random.Random) -> None:
    run_id = new_id()
    runs.create(transaction, trial_id, run_id, token_hash="", slots=[])
    names = chance.sample(["loss", "accuracy", "val_loss", "with space"], k=3)
    columns = {name: [chance.choice([0.1, 0.25, 0.5, 0.9, math.nan, None]) for _ in range(4)] for name in names}
    told: list[rest.Report] = [
        rest.StartedReport(seq=1, batch=0),
        rest.MetricsReport(seq=2, kind=MetricKind.VALIDATION, batches=[1, 2, 3, 4], metrics=columns),
        rest.MetricsReport(
            seq=3, kind=MetricKind.TRAINING, batches=[1, 2, 3], metrics={"loss": [3.0, 1.0, 2.0], "grad": [1.0] * 3}
        ),
        rest.ExitReport(seq=4, reason=ExitReason.COMPLETED, batch=4),
    ]
    reports.accept(transaction, run_id, rest.ReportBatch(reports=told))


def moment(hours: int, minute: int = 0) -> str:
    return f"2026-{10 + hours // 720 % 2:02}-{hours // 24 % 30 + 1:02}T{hours % 24:02}:{minute:02}:00.{minute:03}Z"


IN_SQL = [
    "val_loss < 0.3 and lr > 1e-3 and label:baseline",
    "val_loss < 0.3",
    "not val_loss < 0.3",
    "metric.accuracy > 0.5",
    "metric.loss = 0.25",
    "loss = 0.25",
    "loss >= 0.5 or accuracy != 0.9",
    "grad <= 1",
    "metric.nothing > 0",
    "lr = auto",
    "lr in (0.01, AUTO)",
    "lr not in (0.01, 1)",
    "lr ~ ut",
    "hp.lr != 1",
    "hp.optimizer = adam",
    "optimizer contains d",
    "hp.optimizer.name = adam",
    "hp.deep.name = 3",
    "deep.name > 1",
    "nesterov = true",
    "hp.nesterov != false",
    "nothing = null",
    '"learning rate" = 0.1 and "with space" < 0.5',
    'hp."learning rate" > 0.15',
    "config.searcher.name = random",
    "config.data.path ~ data/1",
    "config.data.sha = true",
    "searcher:single and slots >= 2",
    "label:baseline and not label:best",
    "label != baseline",
    "label = x:y or label in ('with space', best)",
    "label ~ SPACE",
    "project:vision",
    "project = vision",
    "project ~ sion",
    "project = ''",
    "name:digits",
    "name = digits",
    "name ~ '100%'",
    "name ~ a_b",
    "name ~ 'experiment 1'",
    """name ~ '"'""",
    "description:try",
    "framework:keras or framework = TORCH",
    "user:user",
    "user != user",
    "state:Queued",
    "state:Running",
    "state != COMPLETED",
    "state in (Failed, Completed)",
    "archived:yes",
    "archived:no and not archived = true",
    "test:no",
    "id in (3, 4, 900)",
    "id > 50",
    "forked_from:1",
    "forked_from != 1",
    "trials = 2",
    "trials < 1",
    "progress < 0.5",
    "created > 2026-10-12",
    "created >= 2026-10-12 and created <= 2026-10-14",
    "created = 2026-10-12",
    "created < 30d",
    "created > 2026-10-12T10:30",
    "ended > 2026-10-20",
    "not ended > 2026-10-20",
    "duration > 3h",
    "duration <= 2h30m",
    "not duration > 3h",
]
IN_PYTHON = ["name = über", "label:Größe or lr = 1", "not name ~ Ü", "archived:no and label ~ ß", 'hp."a\\"b" = 1']
NO_DIGITS_ON_POSTGRES = ["config.data.0 = zero", "not config.data.0 = zero"]


@pytest.mark.parametrize("query", [*IN_SQL, *IN_PYTHON, *NO_DIGITS_ON_POSTGRES])
def test_a_query_finds_what_a_look_at_each_experiment_finds(home: Home, query: str) -> None:
    tree = parse(query)
    assert home.ids(query) == [facts.experiment.id for facts in home.everything if matches(tree, facts, NOW)]
    translator = Translator(home.database.dialect, NOW)
    translator.condition(tree)
    if query in IN_SQL and '"' not in query.replace('"learning rate"', "").replace('"with space"', ""):
        assert translator.exact


@pytest.mark.parametrize(
    "query", ["val_loss < 0.3", "deep.name > 1", "label:baseline", "duration > 3h", "state:Queued"]
)
def test_queries_divide_the_experiments(home: Home, query: str) -> None:
    some, others = home.ids(query), home.ids(f"not ({query})")
    assert some
    assert others
    assert sorted(some + others) == list(range(1, COUNT + 1))


@pytest.mark.long
@pytest.mark.parametrize(
    "order",
    [
        *("id", "id asc", "name", "name desc", "created", "created asc", "duration", "duration asc"),
        *("metric:loss", "metric:accuracy", "metric:val_loss desc", "hp:lr", "hp:deep.name desc", "hp:learning rate"),
        *("best", "best desc", "framework", "project desc", "progress", "trials", "trials asc", "state", "state desc"),
        *("last:loss", "min:accuracy desc", "max:val_loss"),
    ],
)
def test_what_is_found_is_ordered_and_paged(home: Home, order: str) -> None:
    wanted = parse_order(order)
    keys: dict[int, Any] = {facts.experiment.id: key_of(facts, wanted, NOW) for facts in home.everything}
    ids = home.ids(None, order=wanted)
    having = [number for number in ids if keys[number] is not None]
    assert ids[: len(having)] == having
    assert sorted(ids) == list(range(1, COUNT + 1))
    for first, second in itertools.pairwise(having):
        one, other = keys[first], keys[second]
        assert first > second if one == other else (one > other) is wanted.descending
    paged: list[int] = []
    after = None
    while True:
        with home.database.read() as connection:
            page = finding.find(connection, OWNER, None, NOW, order=wanted, limit=7, after=after)
        paged += [experiment.id for experiment in page.experiments]
        assert page.total == COUNT
        if not page.next:
            break
        after = page.next
    assert paged == ids


def test_a_page_of_another_order_is_refused(home: Home) -> None:
    with home.database.read() as connection, pytest.raises(ArgumentError, match="is not the X-Next of an answer"):
        finding.find(connection, OWNER, None, NOW, limit=7, after="zzz")


def test_filters_are_parts_of_a_query(home: Home) -> None:
    def ids(**filters: Any) -> list[int]:
        with home.database.read() as connection:
            page = finding.find(connection, OWNER, Filters(**filters).tree(), NOW, limit=1000)
        return [experiment.id for experiment in page.experiments]

    assert ids() == home.ids("archived:no")
    assert ids(archived=True) == home.ids(None)
    assert ids(query="archived:yes") == home.ids("archived:yes")
    assert ids(state="ACTIVE", name="DIGITS") == home.ids("state:Running and name:digits and archived:no")
    assert ids(labels=("best", "baseline")) == home.ids("label:best and label:baseline and archived:no")
    assert ids(project="vision/", metric="grad", archived=True) == home.ids("project:vision and grad >= 1")
    assert ids(since="2026-10-12") == home.ids("created >= 2026-10-12 and archived:no")


def kept(database: Database, trial_id: int) -> dict[tuple[str, str], tuple[Any, ...]]:
    with database.read() as connection:
        rows = connection.execute(select(metric_summaries).where(metric_summaries.c.trial_id == trial_id))
        return {(row.kind, row.name): (row.last_batch, row.last, row.minimum, row.maximum) for row in rows}


def expected(database: Database, trial_id: int) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Return the same from the rows that are shown."""
    found: dict[tuple[str, str], tuple[Any, ...]] = {}
    with database.read() as connection:
        for kind in MetricKind:
            for curve in series.curves(connection, trial_id, [kind], points=10_000):
                values = [value for value in curve.minimum if value is not None]
                found[kind.value, curve.name] = (curve.batch[-1], curve.last, min(values), max(values))
    return found


def test_metrics_are_summarised_as_they_are_reported(database: Database) -> None:
    fixture = Fixture(database)
    run = fixture.run()
    run.say({"type": "started", "batch": 0}, metrics_report("validation", [10], loss=[3.0], accuracy=[0.5]))
    assert kept(database, fixture.trial_id) == {
        ("validation", "loss"): (10, 3.0, 3.0, 3.0),
        ("validation", "accuracy"): (10, 0.5, 0.5, 0.5),
    }
    run.say(metrics_report("validation", [20, 30], loss=[1.0, 2.0]), metrics_report("logged", [5, 6], a=[1.0, None]))
    run.say(metrics_report("logged", [6], b=[2.0]), metrics_report("logged", [6], a=[-1.0]))
    assert kept(database, fixture.trial_id) == {
        ("validation", "loss"): (30, 2.0, 1.0, 3.0),
        ("validation", "accuracy"): (10, 0.5, 0.5, 0.5),
        ("logged", "a"): (6, -1.0, -1.0, 1.0),
        ("logged", "b"): (6, 2.0, 2.0, 2.0),
    }
    run.say(metrics_report("logged", [6], a=[0.5]), metrics_report("validation", [40], loss=[math.nan]))
    assert kept(database, fixture.trial_id)["logged", "a"] == (6, 0.5, 0.5, 1.0)
    assert kept(database, fixture.trial_id)["validation", "loss"] == (40, None, 1.0, 3.0)


def test_training_metrics_are_summarised_at_the_end_of_a_run(database: Database) -> None:
    fixture = Fixture(database)
    run = fixture.run()
    batches = list(range(1, 301))
    run.say({"type": "started", "batch": 0}, metrics_report("training", batches, loss=[1 / each for each in batches]))
    assert kept(database, fixture.trial_id) == {}
    run.say({"type": "exit", "reason": "COMPLETED", "batch": 300})
    assert kept(database, fixture.trial_id) == {("training", "loss"): (300, 1 / 300, 1 / 300, 1.0)}


def test_training_metrics_of_a_long_run_are_summarised_now_and_then(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summaries, "INTERVAL", 0.0)
    fixture = Fixture(database)
    run = fixture.run()
    run.say({"type": "started", "batch": 0}, metrics_report("training", [1], loss=[1.0]))
    run.say(metrics_report("training", [2], loss=[0.5]))
    assert kept(database, fixture.trial_id) == {("training", "loss"): (2, 0.5, 0.5, 1.0)}


def test_what_lies_behind_a_restart_does_not_count(database: Database) -> None:
    fixture = Fixture(database)
    run = fixture.run()
    run.say(
        {"type": "started", "batch": 0},
        metrics_report("validation", [10, 20, 30], loss=[5.0, 3.0, 0.1]),
        metrics_report("logged", [10, 20, 30], a=[5.0, 3.0, 0.1]),
        metrics_report("training", [10, 20, 30], loss=[5.0, 3.0, 0.1]),
    )
    run = fixture.run(start_batch=20)
    run.say({"type": "started", "batch": 20})
    assert kept(database, fixture.trial_id) == expected(database, fixture.trial_id)
    assert kept(database, fixture.trial_id)["validation", "loss"] == (20, 3.0, 3.0, 5.0)
    run.say(metrics_report("validation", [20, 25], loss=[4.0, 2.0]), metrics_report("logged", [20], a=[4.5]))
    run.say({"type": "exit", "reason": "COMPLETED", "batch": 25})
    assert kept(database, fixture.trial_id) == expected(database, fixture.trial_id)
    assert kept(database, fixture.trial_id)["validation", "loss"] == (25, 2.0, 2.0, 5.0)


def test_the_best_trial_is_kept(database: Database) -> None:
    fixture = Fixture(database)
    first, second = fixture.trial_id, fixture.add_trial(1)

    def best() -> int | None:
        with database.read() as connection:
            query = select(experiment_table.c.best_trial).where(experiment_table.c.id == fixture.experiment_id)
            return connection.execute(query).scalar()

    assert best() == first
    fixture.run(trial_id=second).say({"type": "started", "batch": 0}, metrics_report("validation", [1], loss=[2.0]))
    assert best() == second
    run: Voice = fixture.run(trial_id=first)
    run.say({"type": "started", "batch": 0}, metrics_report("validation", [1, 2], loss=[3.0, 1.0]))
    assert best() == first
    fixture.run(start_batch=1, trial_id=first).say({"type": "started", "batch": 1})
    assert best() == second


def test_experiments_of_an_earlier_version_are_found_by_metric(database: Database) -> None:
    fixture = Fixture(database)
    run = fixture.run()
    run.say({"type": "started", "batch": 0}, metrics_report("validation", [10, 20], loss=[3.0, 1.0]))
    run.say({"type": "exit", "reason": "COMPLETED", "batch": 20})
    with database.write() as transaction:
        transaction.connection.execute(text("DELETE FROM metric_summaries"))
        transaction.connection.execute(insert(unsummarised).values(trial_id=fixture.trial_id))
        transaction.connection.execute(insert(unsummarised).values(trial_id=999))  # deleted meanwhile
    tree = parse("loss < 2")
    with database.read() as connection:
        page = finding.find(connection, OWNER, tree, NOW, limit=10)
    assert page.total == 0
    assert "2 trials of an earlier version are still being read" in page.notice
    while summaries.summarise_earlier(database):
        pass
    with database.read() as connection:
        page = finding.find(connection, OWNER, tree, NOW, limit=10)
        (of_trial,) = summaries.of_experiments(connection, OWNER, [fixture.experiment_id], best=True)
    assert (page.total, page.notice) == (1, "")
    assert of_trial.hparams == {"x": 1}
    assert of_trial.metrics == [
        MetricSummary(kind=MetricKind.VALIDATION, name="loss", last_batch=20, last=1.0, minimum=1.0, maximum=3.0)
    ]


def test_a_damaged_row_does_not_hide_the_others(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'det.db'}")
    for _ in range(2):
        Fixture(database)
    with database.write() as transaction:
        transaction.connection.execute(text("UPDATE experiments SET config = '{', labels = '{' WHERE id = 1"))
    for query in ("config.a = 1 or label:x or id > 0", "id > 0 and not config.a = 1", "id > 0 and not name = ü"):
        with database.read() as connection:
            page = finding.find(connection, OWNER, parse(query), NOW, limit=10)
        assert [experiment.id for experiment in page.experiments] == [2, 1]
    database.close()


@pytest.mark.long
def test_a_list_tells_how_many_there_are_and_where_it_goes_on(master: Master) -> None:
    for number in range(5):
        master.create({"name": f"experiment of number {number}"})
    url = "/api/v1/experiments"
    answer = master.client.get(url, params={"limit": 2})
    assert [each["id"] for each in answer.json()] == [5, 4]
    assert answer.headers["X-Total-Count"] == "5"
    answer = master.client.get(url, params={"limit": 2, "after": answer.headers["X-Next"]})
    assert [each["id"] for each in answer.json()] == [3, 2]
    answer = master.client.get(url, params={"limit": 2, "after": answer.headers["X-Next"]})
    assert [each["id"] for each in answer.json()] == [1]
    assert "X-Next" not in answer.headers
    answer = master.client.get(url, params={"query": "name:'number 3' or id = 1", "order_by": "id asc"})
    assert [each["id"] for each in answer.json()] == [1, 4]
    answer = master.client.get(url, params={"order_by": "metric:loss", "before": 3})
    assert [each["id"] for each in answer.json()] == [2, 1]
    assert "None of these experiments has a value for metric:loss" in answer.headers["X-Notice"]
    (of_trial,) = master.get("/trial-summaries", experiment_id=2, best=True)
    assert (of_trial["experiment_id"], of_trial["metrics"]) == (2, [])


@pytest.mark.long
def test_what_is_wrong_with_a_question_is_one_sentence(master: Master) -> None:
    for name, value, sentence in (
        ("query", "val_loss <", "does not parse at character 11, where it ends: expected a value"),
        ("query", "state:Foo", "expected a state: Queued, Running"),
        ("state", "Foo", "'Foo' is not a state; there are Queued, Running"),
        ("since", "yesterday", "since='yesterday' is not a time: write a date"),
        ("order_by", "val_loss", "order_by='val_loss' is not known"),
        ("after", "zzz", "after='zzz' is not the X-Next of an answer"),
    ):
        answer = master.client.get("/api/v1/experiments", params={name: value})
        assert answer.status_code == 400
        assert sentence in answer.json()["error"]


@pytest.mark.long
def test_python_finds_experiments_of_the_master(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_TOKEN", master.token)
    monkeypatch.setattr(http_source, "_EXPERIMENTS", 2)  # several pages
    url = str(master.client.base_url)
    for number in range(4):
        master.create({"name": f"number {number}"})
    job = master.world.wait_for_jobs(1)[0]
    worker = Worker(master, job)
    worker.start()
    worker.train(1, 10)
    worker.validate(10, loss=0.25)
    worker.exit(batch=10)

    def ids(**how: Any) -> list[int]:
        return [experiment.id for experiment in det.experiments(master_url=url, **how)]

    assert ids() == [4, 3, 2, 1]
    assert pretty(det.experiments(3, url)).splitlines()[-1] == "3 of 4; det.experiments(limit=None) has all."
    assert ids(query="loss < 2", order_by="metric:loss") == [job.experiment_id]
    assert ids(query="name:number", order_by="name", limit=None) == [1, 2, 3, 4]
    assert ids(order_by="name desc", limit=2) == [4, 3]
    with pytest.warns(UserWarning, match="None of these experiments has a value for hp:nothing"):
        det.experiments(master_url=url, query="name:number", order_by="hp:nothing")
    with pytest.raises(ArgumentError, match="at character 8: expected a number"):
        det.experiments(master_url=url, query="loss < x")
    with pytest.raises(NotFoundError, match="There is no experiment 99"):
        det.compare([1, 99], url)
    compared = det.compare([job.experiment_id, 2], url)
    assert compared.metrics.set_index(["experiment", "metric", "kind"])["best"].to_dict() == {
        (job.experiment_id, "loss", "validation"): 0.25,
        (job.experiment_id, "loss", "training"): 0.1,
    }
    frame = det.to_dataframe("name:number", master_url=url)
    assert frame.set_index("id")["metric.loss"].dropna().to_dict() == {job.experiment_id: 0.25}
