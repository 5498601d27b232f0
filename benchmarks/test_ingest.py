"""Rows of metrics over HTTP into a running master and back down-sampled, over mlflow or the limit of SQLite itself.

``MLFLOW_PYTHON`` names an interpreter with mlflow; without it the peer is SQLite in process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import pytest
from ingest_peers import COLUMNS, MLFLOW_PYTHON, Mlflow, Sqlite, mlflow_server, values_of

from det_native import PROTOCOL
from det_native.client.session import Session
from det_native.schema.manifests import BundleManifest, Interpreter, Program

ROWS, MLFLOW_ROWS, POINTS = 100_000, 5_000, 1000


class Run:
    """Reports one run's metrics, as a worker does."""

    def __init__(self, url: str, run: dict[str, Any]) -> None:
        self.trial_id = run["trial_id"]
        self._path = f"/runs/{run['run_id']}/reports"
        self._session = Session(url, run["token"])
        self._seq = 0
        self._send({"type": "started", "batch": 0})

    def _send(self, report: dict[str, Any]) -> None:
        self._seq += 1
        body = json.dumps({"reports": [{"seq": self._seq, **report}]}).encode()
        answer = self._session.post(self._path, data=body, headers={"Content-Type": "application/json"})
        assert answer["through"] == self._seq

    def log(self, batches: range) -> None:
        """Report rows in one request."""
        values = values_of(batches)
        self._send({"type": "metrics", "kind": "training", "batches": list(batches), "metrics": values})


class Server:
    """The master under test."""

    def __init__(self, answers: IO[str]) -> None:
        self._answers = answers
        address = json.loads(answers.readline())
        self._url = address["url"]
        self.session = Session(self._url, address["token"])

    def run(self) -> Run:
        """Begin an experiment of one trial."""
        bundle = BundleManifest(
            protocol=PROTOCOL,
            interpreter=Interpreter(python="3.11", executable=""),
            program=Program(kind="cells", framework="torch"),
        )
        created = self.session.post("/bundles", bundle.model_dump(mode="json"))
        config = {
            "hyperparameters": {"global_batch_size": 32},
            "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 10**8}},
        }
        body = {"protocol": PROTOCOL, "config": config, "bundle_id": created["id"]}
        self.session.post("/experiments", body)
        return Run(self._url, json.loads(self._answers.readline()))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    program = Path(__file__).with_name("bench_master.py")
    command = [sys.executable, str(program), str(tmp_path_factory.mktemp("ingest") / "home")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Server(process.stdout)


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


@pytest.mark.parametrize("size", [1000, 250])
def test_ingest(paired: Any, server: Server, mlflow: str | None, tmp_path: Path, size: int) -> None:
    run = server.run()
    firsts, peer_firsts = iter(range(1, 10**9, ROWS)), iter(range(1, 10**9, ROWS))

    def ours() -> int:
        _in_batches(run.log, next(firsts), ROWS, size)
        return ROWS

    what = f"one row of 4 values over HTTP, 100k rows in batches of {size},"
    if mlflow is not None:
        peer = Mlflow(mlflow)

        def through_mlflow() -> int:
            _in_batches(peer.log, next(peer_firsts), MLFLOW_ROWS, 250)
            return MLFLOW_ROWS

        row = f"{what} over mlflow's server (batches of 250)"
        paired(row, ours, through_mlflow, goal=0.1, rounds=3, value=_per_row)
        return
    with closing(Sqlite(tmp_path / "limit.db")) as limit:

        def into_sqlite() -> int:
            _in_batches(limit.log, next(peer_firsts), ROWS, size)
            return ROWS

        row = f"{what} over SQLite in process (no mlflow here; its limit: 0.3 of its rate)"
        paired(row, ours, into_sqlite, goal=1 / 0.3, rounds=3, value=_per_row)


def _per_row(rows: Any, seconds: float) -> float:
    return seconds / float(rows)


def test_read_sampled(paired: Any, server: Server, mlflow: str | None, tmp_path: Path) -> None:
    run = server.run()
    _in_batches(run.log, 1, ROWS, 1000)

    def ours() -> None:
        found = server.session.get(f"/trials/{run.trial_id}/series", name="loss", buckets=POINTS)
        assert len(found["batch"]) > POINTS / 4

    what = "100k series to at most 1000 buckets over HTTP,"
    if mlflow is not None:
        peer = Mlflow(mlflow)
        _in_batches(lambda batches: peer.log(batches, COLUMNS[:1]), 1, ROWS, 1000)
        paired(f"{what} over mlflow's down-sampled read", ours, lambda: peer.sampled("loss", POINTS), goal=0.1)
        return
    with closing(Sqlite(tmp_path / "limit.db")) as limit:
        _in_batches(limit.log, 1, ROWS, 1000)
        row = f"{what} over GROUP BY of SQLite in process (no mlflow here)"
        paired(row, ours, lambda: limit.sampled(ROWS, POINTS), goal=0.88, rounds=11)
