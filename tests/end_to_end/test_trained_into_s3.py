"""A training writes its checkpoints to S3, is killed, goes on from there, and is loaded and downloaded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import Cluster, Gate, Kernel, checkpoint_at, ended
from s3_server import KEY, S3, SECRET, running_s3

from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.long]

CREATE = """
import json
options = json.loads(os.environ.get("S3_OPTIONS", "{{}}"))
storage = {{"type": "url", "url": "s3://{bucket}/checkpoints", "options": options}}
experiment = det.experimental.create(Digits, configuration(hyperparameters=settings, checkpoint_storage=storage))
"""
# Another process, which knows nothing of the training but the folder.
LOAD = """
import sys, torch
from det_native.experimental import Checkpoint
trial = Checkpoint.load_from_path(sys.argv[1], map_location="cpu")
print([round(value.double().sum().item(), 6) for value in trial.model.state_dict().values()])
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """Run an S3."""
    with running_s3() as server:
        yield server


def test_a_killed_training_goes_on_from_the_bucket(
    kernel: Kernel, torch_end: Any, cluster: Cluster, gate: Gate, s3: S3, tmp_path: Path
) -> None:
    bucket = s3.bucket()
    # As where the kernel was started with it: no cell has it.
    kernel.finish(kernel.begin(f"os.environ['S3_OPTIONS'] = {json.dumps(s3.options)!r}", silent=True))
    create = CREATE.format(bucket=bucket)
    experiment = cluster.attach(kernel.submit_with(create, stops="8", port=gate.port))
    visitor = gate.next()
    checkpoint_at(experiment, 6)
    visitor.die(signal.SIGKILL)
    gate.next().go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert "at batch 6." in str(experiment.logs())
    assert kernel.end_of(experiment.id) == torch_end
    kept = {one.uuid for one in experiment.checkpoints}
    deadline = 200
    while {key.split("/")[1] for key in s3.sizes(bucket)} != kept:  # the master collects when it comes to it
        deadline -= 1
        assert deadline, (sorted(s3.sizes(bucket)), kept)
        experiment.checkpoints[0].verify()
    last = experiment.select_checkpoint(latest=True)
    folder = last.download(tmp_path / "files")
    command, environment = [sys.executable, "-c", LOAD, str(folder)], {**os.environ, "TMPDIR": str(tmp_path)}
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    loaded = f"det.attach({experiment.id}).select_checkpoint(latest=True).load(map_location='cpu').model.state_dict()"
    sums = kernel.run(f"print([round(value.double().sum().item(), 6) for value in {loaded}.values()])").text
    assert shown.stdout.strip() == sums.strip()
    for shown_text in (str(experiment.config), str(experiment.logs()), (folder / "metadata.json").read_text()):
        assert SECRET not in shown_text
        assert KEY not in shown_text
