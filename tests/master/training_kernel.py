"""A kernel that trains, for the tests: a batch for each line that it reads; it reports as a kernel does.

Whether a master is there, and where, stands in a file: address and the user's token.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import httpx
from det_harness.trial.report import SpoolReporter
from det_harness.trial.spool import Spool
from kernel_parts import kernel_run, process_facts, wait_to_be_taken_in

from det_native.errors import MasterError
from det_native.schema.kernel_runs import KernelRun
from det_native.schema.rest import ReportsAccepted


class Connection:
    """Sends reports, once a master has the run."""

    def __init__(self, asked: KernelRun, address: Path) -> None:
        self._asked = asked
        self._address = address
        self._client = httpx.Client(timeout=10, verify=False)
        self._recorded = False

    def send(self, reports: list[str], progress: int | None = None, waiting: str | None = None) -> ReportsAccepted:
        """Have the run recorded, and send its reports."""
        try:
            url, token = self._address.read_text().split()
            if not self._recorded:
                self._post(f"{url}/api/v1/kernel-runs", token, self._asked.model_dump(mode="json"))
                self._recorded = True
            body = {"progress": progress, "reports": [json.loads(report) for report in reports]}
            answer = self._post(f"{url}/api/v1/runs/{self._asked.run_id}/reports", self._asked.token, body)
        except (OSError, httpx.HTTPError) as error:
            raise MasterError(f"no master: {error}") from error
        return ReportsAccepted.model_validate(answer)

    def best(self) -> float | None:
        """Return nothing."""
        return None

    def _post(self, url: str, token: str, body: object) -> object:
        answer = self._client.post(url, json=body, headers={"Authorization": f"Bearer {token}"})
        answer.raise_for_status()
        return answer.json()


def main(home: Path, address: Path) -> None:
    """Train until the process is killed; say of each batch that it is in the spool."""
    asked = kernel_run(home, process_facts(os.getpid()), length=100_000)
    folder = wait_to_be_taken_in(asked)
    spool = Spool(folder / "spool")
    reporter = SpoolReporter(Connection(asked, address), spool, metric="loss", smaller_is_better=True)
    reporter.started(0, 100_000)
    with (folder / "output.log").open("a") as output:
        for batch, _ in enumerate(sys.stdin, 1):
            reporter.training([batch], {"loss": [1.0 / batch]})
            reporter.validation(batch, {"loss": 1.0 / batch})
            print(f"batch {batch}", file=output, flush=True)
            print(batch, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
