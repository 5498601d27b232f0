"""Many experiments that have ended: what is asked of the store takes as many steps of the database as with few."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection

from det_native.master.store import experiments, finding, trials, unfinished
from det_native.master.store.database import Database
from det_native.schema.query.filters import Filters

sys.path.append(str(Path(__file__).parent / "load"))

from load_home import OWNER, fill

FEW, MANY = 100, 1500
STEP = 10
NOW = datetime.now(UTC)
LISTED, QUEUED = Filters().tree(), Filters(state="Queued").tree()


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Database]]:
    """Give a database of few experiments and one of many."""
    opened = []
    for count in (FEW, MANY):
        home = tmp_path_factory.mktemp("home")
        fill(home, count)
        opened.append(Database(f"sqlite:///{home / 'det.db'}"))
    yield opened
    for database in opened:
        database.close()


def steps(database: Database, ask: Callable[[Connection], object]) -> int:
    """Return how many steps of SQLite's machine an answer takes, in tens."""
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    with database.read() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.set_progress_handler(count, STEP)
        try:
            ask(connection)
        finally:
            driver.set_progress_handler(None, STEP)
    return counted


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda connection: finding.newest(connection, OWNER, LISTED, NOW, limit=50), id="list"),
        pytest.param(
            lambda connection: finding.newest(connection, OWNER, LISTED, NOW, limit=50, before=90), id="older"
        ),
        pytest.param(lambda connection: finding.newest(connection, OWNER, QUEUED, NOW, limit=50), id="queued"),
        pytest.param(lambda connection: experiments.with_ids(connection, range(90, 40, -1)), id="what is listed"),
        pytest.param(lambda connection: experiments.get_detail(connection, 50, OWNER), id="describe"),
        pytest.param(unfinished.ids, id="ids of unfinished"),
        pytest.param(unfinished.count, id="count of unfinished"),
        pytest.param(unfinished.configs, id="what unfinished want"),
        pytest.param(unfinished.bundles, id="bundles of unfinished"),
        pytest.param(lambda connection: trials.queued(connection, 100), id="queued trials"),
        pytest.param(trials.last_runs, id="last runs"),
    ],
)
def test_an_answer_takes_no_longer_with_many(databases: list[Database], ask: Callable[[Connection], object]) -> None:
    few, many = (steps(database, ask) for database in databases)
    assert many <= few * 1.5 + 20


def test_what_is_long_is_read_only_where_it_is_shown(databases: list[Database]) -> None:
    shown = {column.name for column in experiments._query(None).selected_columns}
    assert not shown & {"report", "searcher"}
    with databases[0].read() as connection:
        assert len(experiments.get_detail(connection, 50, OWNER).report) == 20
