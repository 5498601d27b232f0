"""Workers that report by the harness's own reporter, many in a process. Not a test.

Standard input: a line of JSON with `url`, `folder`, `rows_per_second` and `runs` (of `run_id`, `trial_id`, `token`).
A line says when they begin. They report until standard input ends; then comes a line of JSON: rows by trial, and how
long each request took.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from det_harness.trial.report import SpoolReporter
from det_harness.trial.spool import Spool
from det_harness.worker.connection import MasterConnection, session_of_run

from det_native.schema.rest import ReportsAccepted


class TimedConnection(MasterConnection):
    """Notes how long the master takes."""

    def __init__(self, url: str, token: str, run_id: str, times: list[tuple[float, int]]) -> None:
        super().__init__(session_of_run(url, token), run_id)
        self._times = times

    def send(self, reports: list[str], progress: int | None = None, waiting: str | None = None) -> ReportsAccepted:
        """Send reports, and note how long it took."""
        begun = time.perf_counter()
        try:
            return super().send(reports, progress, waiting)
        finally:
            self._times.append((time.perf_counter() - begun, len(reports)))


def loss_of(trial_id: int, batch: int) -> float:
    """Return the loss that a trial reports after a batch."""
    return (trial_id * 31 + batch * 7) % 1009 / 1009


def main() -> None:
    """Report until standard input ends."""
    given: dict[str, Any] = json.loads(sys.stdin.readline())
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    times: list[tuple[float, int]] = []
    reporters = {}
    for run in given["runs"]:
        connection = TimedConnection(given["url"], run["token"], run["run_id"], times)
        spool = Spool(Path(given["folder"]) / run["run_id"])
        reporters[run["trial_id"]] = SpoolReporter(connection, spool, metric="loss")
        reporters[run["trial_id"]].started(0)
    print(json.dumps({"ready": True}), flush=True)
    pause, due, batch = 1 / given["rows_per_second"], time.monotonic(), 0
    while not ended.is_set():
        batch += 1
        for trial_id, reporter in reporters.items():
            reporter.training([batch], {"loss": [loss_of(trial_id, batch)], "rate": [1 / batch]})
            if batch % 100 == 0:
                reporter.validation(batch, {"loss": loss_of(trial_id, batch)})
        due += pause
        ended.wait(max(due - time.monotonic(), 0))
    complete = [reporter.close(timeout=120) for reporter in reporters.values()]
    print(json.dumps({"rows": batch, "trials": list(reporters), "complete": all(complete), "times": times}), flush=True)


if __name__ == "__main__":
    main()
