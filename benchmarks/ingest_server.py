"""A master without workers, in a process of its own, and the runs that a benchmark has in it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import psutil
from det_harness.trial.report import SpoolReporter
from det_harness.trial.spool import Spool
from det_harness.worker.connection import MasterConnection, session_of_run
from ingest_peers import values_of

from det_native import PROTOCOL
from det_native.client.session import Session
from det_native.schema import routes
from det_native.schema.manifests import BundleManifest, Interpreter, Program
from det_native.schema.rest import ExperimentCreate


class Run:
    """Reports one run's metrics, each call in a request of its own."""

    def __init__(self, url: str, run: dict[str, Any]) -> None:
        self.trial_id = run["trial_id"]
        self._run_id = run["run_id"]
        self._session = Session(url, run["token"])
        self._seq = 0
        self._send({"type": "started", "batch": 0})

    def _send(self, report: dict[str, Any]) -> None:
        self._seq += 1
        body = json.dumps({"reports": [{"seq": self._seq, **report}]}).encode()
        answer = self._session.call(routes.POST_REPORTS, body, run_id=self._run_id)
        assert answer.through == self._seq

    def log(self, batches: range) -> None:
        """Report rows in one request."""
        values = values_of(batches)
        self._send({"type": "metrics", "kind": "training", "batches": list(batches), "metrics": values})


class Server:
    """The master under test."""

    def __init__(self, answers: IO[str], home: Path, pid: int) -> None:
        self._answers = answers
        self.process = psutil.Process(pid)
        address = json.loads(answers.readline())
        self.url, self.token = address["url"], address["token"]
        self.session = Session(self.url, self.token)
        self._home = home

    def run(self) -> Run:
        """Begin an experiment of one trial."""
        return Run(self.url, self._begin())

    def reporter(self) -> tuple[int, SpoolReporter]:
        """Begin an experiment of one trial; return its id and what a worker reports by."""
        run = self._begin()
        connection = MasterConnection(session_of_run(self.url, run["token"]), run["run_id"])
        reporter = SpoolReporter(connection, Spool(self._home / run["run_id"]), metric="loss")
        reporter.started(0)
        return run["trial_id"], reporter

    def _begin(self) -> dict[str, Any]:
        bundle = BundleManifest(
            protocol=PROTOCOL,
            interpreter=Interpreter(python="3.11", executable=""),
            program=Program(kind="cells", framework="torch"),
        )
        created = self.session.call(routes.CREATE_BUNDLE, bundle)
        config = {
            "hyperparameters": {"global_batch_size": 32},
            "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 10**8}},
        }
        self.session.call(
            routes.CREATE_EXPERIMENT, ExperimentCreate(protocol=PROTOCOL, config=config, bundle_id=created.id)
        )
        begun: dict[str, Any] = json.loads(self._answers.readline())
        return begun


@contextmanager
def running_server(home: Path) -> Iterator[Server]:
    """Run a master in `home` until the end of the block."""
    command = [sys.executable, str(Path(__file__).with_name("bench_master.py")), str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Server(process.stdout, home, process.pid)
