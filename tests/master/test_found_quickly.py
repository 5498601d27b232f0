"""A home with 10,000 experiments: they are listed, found and described in a moment."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from det_native.master.store import experiments, finding, summaries, trials
from det_native.master.store.database import Database
from det_native.schema.query import parse, parse_order
from det_native.schema.query.filters import Filters

sys.path.append(str(Path(__file__).parent / "load"))

from load_home import OWNER, fill

COUNT = 10_000
MOST_SECONDS = 0.1
TRIES = 7

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Give a home of very many experiments that differ in hyperparameters, metrics, labels, names and times."""
    home = tmp_path_factory.mktemp("home")
    fill(home, COUNT)
    opened = Database(f"sqlite:///{home / 'det.db'}")
    with opened.write() as transaction:
        for statement in (
            "UPDATE experiments SET name = 'experiment of number ' || id, best_trial = id, "
            "labels = CASE WHEN id % 3 = 0 THEN '[\"baseline\"]' ELSE '[]' END, archived = id % 50 = 0",
            'UPDATE trials SET hparams = \'{"lr":\' || ((id % 100) / 1000.0) || \',"optimizer":"adam"}\'',
            "UPDATE metric_summaries SET minimum = (trial_id % 1000) / 1000.0",
        ):
            transaction.connection.execute(text(statement))
    yield opened
    opened.close()


def seconds(database: Database, ask: Callable[[Any], Any]) -> float:
    """Return the median of several, of the time of this process: others on the machine do not count."""
    taken = []
    for _ in range(TRIES):
        begin = time.process_time()
        with database.read() as connection:
            ask(connection)
        taken.append(time.process_time() - begin)
    return statistics.median(taken)


@pytest.mark.parametrize(
    ("query", "order", "count"),
    [
        (None, "id", 9800),
        (None, "metric:loss", 9800),
        (None, "duration", 9800),
        ("loss < 0.3 and lr > 1e-3 and label:baseline", "id", None),
        ("lr > 0.05", "hp:lr desc", None),
        ("metric.loss < 0.01", "metric:loss", None),
        ("name ~ 'number 77' or config.searcher.name = random", "name", None),
        ("created > 7d and duration < 1h and state:Completed", "created", None),
    ],
)
def test_a_query_over_ten_thousand_experiments_is_quick(
    database: Database, query: str | None, order: str, count: int | None
) -> None:
    tree, by, now = Filters(query).tree(), parse_order(order), datetime.now(UTC)
    with database.read() as connection:
        page = finding.find(connection, OWNER, tree, now, order=by, limit=50)
    assert count is None or page.total == count
    assert page.total
    assert seconds(database, lambda c: finding.find(c, OWNER, tree, now, order=by, limit=50)) < MOST_SECONDS


def test_one_of_ten_thousand_experiments_is_described_quickly(database: Database) -> None:
    def describe(connection: Any) -> None:
        experiments.get_detail(connection, 5000, OWNER)
        trials.of_experiment(connection, 5000, OWNER)
        assert summaries.of_experiments(connection, OWNER, [5000], best=False)[0].metrics

    assert seconds(database, describe) < MOST_SECONDS


def test_the_metrics_of_a_page_are_there_quickly(database: Database) -> None:
    ids = list(range(1, 1001))
    assert seconds(database, lambda c: summaries.of_experiments(c, OWNER, ids, best=True)) < MOST_SECONDS


def test_a_page_far_behind_is_as_quick(database: Database) -> None:
    with database.read() as connection:
        after = finding.find(connection, OWNER, None, datetime.now(UTC), limit=9000).next
    now = datetime.now(UTC)
    assert (
        seconds(database, lambda c: finding.find(c, OWNER, parse("id > 0"), now, limit=50, after=after)) < MOST_SECONDS
    )
