"""Stores of metrics that ours is compared with: mlflow's server over HTTP, and SQLite itself as the limit."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

COLUMNS = ("loss", "accuracy", "rate", "norm")
MLFLOW_PYTHON = os.environ.get("MLFLOW_PYTHON", "")
_START_SECONDS = 120.0


def values_of(batches: range) -> dict[str, list[float | None]]:
    """Return four values for each batch, the same for every store."""
    return {name: [(batch * (index + 7) % 1009) / 1009 for batch in batches] for index, name in enumerate(COLUMNS)}


class Mlflow:
    """One run at an mlflow server, spoken to as its REST interface is documented."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._http = requests.Session()
        created = self._post("api/2.0/mlflow/runs/create", experiment_id="0", start_time=1)
        self._run = created["run"]["info"]["run_id"]

    def _post(self, path: str, **body: Any) -> Any:
        response = self._http.post(f"{self._url}/{path}", json=body, timeout=120)
        response.raise_for_status()
        return response.json()

    def log(self, batches: range, names: tuple[str, ...] = COLUMNS) -> None:
        """Log rows in one request (mlflow takes at most 1000 values in one)."""
        values = values_of(batches)
        metrics = [
            {"key": name, "value": values[name][row], "timestamp": batch, "step": batch}
            for row, batch in enumerate(batches)
            for name in names
        ]
        self._post("api/2.0/mlflow/runs/log-batch", run_id=self._run, metrics=metrics)

    def sampled(self, name: str, points: int) -> int:
        """Read a metric down-sampled, as mlflow's own page does; return the number of points."""
        response = self._http.get(
            f"{self._url}/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval",
            params={"run_ids": self._run, "metric_key": name, "max_results": points},
            timeout=120,
        )
        response.raise_for_status()
        return len(response.json()["metrics"])


@contextmanager
def mlflow_server(folder: Path) -> Iterator[str]:
    """Run ``mlflow server`` on loopback with its defaults; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [MLFLOW_PYTHON, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    log = (folder / "mlflow.log").open("wb")
    with log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_up(url, process)
            yield url
        finally:
            process.terminate()


def _wait_until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            if requests.get(f"{url}/health", timeout=5).ok:
                return
        except requests.ConnectionError:
            time.sleep(0.2)
    raise RuntimeError("mlflow server did not start")


class Sqlite:
    """A plain table, each batch in a transaction that is on the disk before it returns."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("CREATE TABLE metrics (batch INTEGER PRIMARY KEY, loss, accuracy, rate, norm)")

    def log(self, batches: range) -> None:
        """Insert rows in one transaction."""
        rows = zip(batches, *values_of(batches).values(), strict=True)
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?)", rows)
        self._connection.execute("COMMIT")

    def sampled(self, rows: int, points: int) -> int:
        """Group the rows into buckets with minimum, maximum and mean; return the number of buckets."""
        query = (
            "SELECT max(batch), min(loss), max(loss), avg(loss) FROM metrics GROUP BY (batch - 1) * ? / ? ORDER BY 1"
        )
        return len(self._connection.execute(query, (points, rows)).fetchall())

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
