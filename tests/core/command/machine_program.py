"""One machine of a command on two, with the harness's own parts.

Started as ``python machine_program.py <specification.json> <rank>``; see `test_commands_on_machines`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from det_harness.frameworks.base import harness_of
from det_harness.trial.checkpoint import TrialCheckpoints
from det_harness.trial.lengths import periods_of
from det_harness.trial.of_job import environment_of, owner_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Services
from rows_reporter import RowsReporter
from two_machines import enter

from det_native.core.command import CommandCall
from det_native.schema.job import TrialJob
from det_native.storage.checkpoints import CheckpointStorage


def main(told: dict[str, Any], rank: int) -> dict[str, Any]:
    """Run the command on the machine of a rank, and return what it has reported."""
    enter(*told["machines"][rank])
    job = TrialJob.model_validate(told["jobs"][rank])
    assert job.gang is not None
    work = Path(job.directory) / "work"
    work.mkdir(parents=True)
    os.chdir(work)
    output = os.open(Path(job.directory) / "output.log", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    (work / "train.py").write_text(told["script"])
    environment = environment_of(job)
    harness, reporter = harness_of("core"), RowsReporter("val_loss")
    with harness.joined(job.gang, job.config, Path(job.gang.rendezvous).parent, None) as communicator:
        services = Services(
            environment=environment,
            schedule=Schedule(periods_of(environment)),
            reporter=reporter,
            checkpoints=TrialCheckpoints(CheckpointStorage(job.checkpoints), owner_of(job), reporter),
            stop_requested=lambda: False,
            communicator=communicator,
            job=job,
        )
        outcome = harness.controller(CommandCall(tuple(told["command"])), services).run()
    losses = [row.metrics["loss"] for row in reporter.training_rows]
    return {"batches": outcome.batches, "losses": losses, "checkpoints": len(reporter.checkpoints)}


if __name__ == "__main__":
    specification, own = Path(sys.argv[1]), int(sys.argv[2])
    found = main(json.loads(specification.read_text()), own)
    (specification.parent / f"found.{own}.json").write_text(json.dumps(found))
