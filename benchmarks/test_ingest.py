"""Rows of metrics over HTTP into a running master and back down-sampled, over mlflow or the limit of SQLite itself.

``MLFLOW_PYTHON`` names an interpreter with mlflow; without it the peer is SQLite in process.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from ingest_peers import COLUMNS, MLFLOW_PYTHON, Mlflow, Sqlite, mlflow_server, values_of
from ingest_server import Server, running_server

from det_native.schema import routes

ROWS, MLFLOW_ROWS, ONE_BY_ONE, POINTS = 100_000, 5_000, 100, 1000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("ingest") / "home") as running:
        yield running


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str | None]:
    """The address of an mlflow server, None without mlflow."""
    if not MLFLOW_PYTHON:
        yield None
        return
    with mlflow_server(tmp_path_factory.mktemp("mlflow")) as url:
        yield url


def _in_batches(log: Callable[[range], None], first: int, rows: int, size: int) -> None:
    for start in range(first, first + rows, size):
        log(range(start, start + size))


@pytest.mark.parametrize(("size", "goal"), [(1000, 1 / 25), (250, 0.1)])
def test_ingest(paired: Any, server: Server, mlflow: str | None, size: int, goal: float) -> None:
    if mlflow is None:
        pytest.skip("no mlflow here")
    run, peer = server.run(), Mlflow(mlflow)
    firsts, peer_firsts = iter(range(1, 10**9, ROWS)), iter(range(1, 10**9, ROWS))

    def ours() -> int:
        _in_batches(run.log, next(firsts), ROWS, size)
        return ROWS

    def through_mlflow() -> int:
        _in_batches(peer.log, next(peer_firsts), MLFLOW_ROWS, 250)
        return MLFLOW_ROWS

    row = f"one row of 4 values over HTTP, 100k rows in batches of {size}, over mlflow's server (batches of 250)"
    paired(row, ours, through_mlflow, goal=goal, rounds=5, value=_per_row)


def test_ingest_over_sqlite(paired: Any, server: Server, tmp_path: Path) -> None:
    run = server.run()
    firsts, peer_firsts = iter(range(1, 10**9, ROWS)), iter(range(1, 10**9, ROWS))

    def ours() -> int:
        _in_batches(run.log, next(firsts), ROWS, 1000)
        return ROWS

    with closing(Sqlite(tmp_path / "limit.db")) as limit:

        def into_sqlite() -> int:
            _in_batches(limit.log, next(peer_firsts), ROWS, 1000)
            return ROWS

        row = "one row of 4 values over HTTP, 100k rows in batches of 1000, over SQLite in process (0.3 of its rate)"
        paired(row, ours, into_sqlite, goal=1 / 0.3, rounds=7, value=_per_row)


def test_one_row_per_call(paired: Any, server: Server, mlflow: str | None) -> None:
    if mlflow is None:
        pytest.skip("no mlflow here")
    trial_id, reporter = server.reporter()
    peer = Mlflow(mlflow)
    firsts, peer_firsts = iter(range(1, 10**9, ROWS)), iter(range(1, 10**9, ROWS))

    def ours() -> int:
        first = next(firsts)
        for batch in range(first, first + ROWS):
            reporter.training([batch], values_of(range(batch, batch + 1)))
        while not _rows_after(server, trial_id, first + ROWS - 2):
            time.sleep(0.001)
        return ROWS

    def through_mlflow() -> int:
        _in_batches(peer.log, next(peer_firsts), ONE_BY_ONE, 1)
        return ONE_BY_ONE

    row = "one row of 4 values for each call, until the last is seen over HTTP, over mlflow's server"
    paired(row, ours, through_mlflow, goal=1 / 20, rounds=5, value=_per_row)
    reporter.close()


def test_a_row_is_soon_seen(figure: Any, server: Server) -> None:
    trial_id, reporter = server.reporter()
    times = []
    for batch in range(1, 202):
        time.sleep(0.1 + 0.0007 * (batch % 100))  # at any moment between two requests of the reporter
        begun = time.perf_counter()
        reporter.training([batch], values_of(range(batch, batch + 1)))
        while not _rows_after(server, trial_id, batch - 1):
            pass
        times.append(time.perf_counter() - begun)
    reporter.close()
    middle, late = statistics.median(times[1:]), statistics.quantiles(times[1:], n=20)[-1]
    value = f"{middle * 1e3:.0f} ms, p95 {late * 1e3:.0f} ms"
    figure("from the call that logs one row until it is seen over HTTP, 200 rows", value, "≤ 100 ms", middle <= 0.1)


def test_what_a_logging_call_costs_the_training(figure: Any, server: Server) -> None:
    _, reporter = server.reporter()
    calls, times = 20_000, []
    for first in range(1, 7 * calls, calls):
        rows = [([batch], values_of(range(batch, batch + 1))) for batch in range(first, first + calls)]
        begun = time.thread_time()
        for batches, values in rows:
            reporter.training(batches, values)
        times.append((time.thread_time() - begun) / calls)
    reporter.close()
    seconds = statistics.median(times)
    what = "processor time of the training thread for a call that logs one row of 4 values, a master receiving"
    figure(what, f"{seconds * 1e6:.1f} us", "≤ 3 us", seconds <= 3e-6)


def _rows_after(server: Server, trial_id: int, batch: int) -> Any:
    return server.session.call(routes.GET_METRICS, trial_id=trial_id, after_batch=batch)


def _per_row(rows: Any, seconds: float) -> float:
    return seconds / float(rows)


def test_read_sampled(paired: Any, server: Server, mlflow: str | None, tmp_path: Path) -> None:
    run = server.run()
    _in_batches(run.log, 1, ROWS, 1000)

    def ours() -> None:
        found = server.session.call(routes.GET_SERIES, trial_id=run.trial_id, name="loss", buckets=POINTS)
        assert len(found.batch) > POINTS / 4

    what = "100k series to at most 1000 buckets over HTTP,"
    if mlflow is not None:
        peer = Mlflow(mlflow)
        _in_batches(lambda batches: peer.log(batches, COLUMNS[:1]), 1, ROWS, 1000)
        paired(
            f"{what} over mlflow's down-sampled read",
            ours,
            lambda: peer.sampled("loss", POINTS),
            goal=1 / 35,
            rounds=15,
        )
        return
    with closing(Sqlite(tmp_path / "limit.db")) as limit:
        _in_batches(limit.log, 1, ROWS, 1000)
        row = f"{what} over GROUP BY of SQLite in process (no mlflow here)"
        paired(row, ours, lambda: limit.sampled(ROWS, POINTS), goal=0.88, rounds=11)
