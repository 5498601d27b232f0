"""Files that trials write on a real cluster: of one that completes, and of those that are killed before they say so."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from faults import Cluster, Gate, Kernel, ended

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

WRITING = """
class Writing(Digits):
    def visit(self, batch_idx):
        with open("log.csv", "a") as log:
            log.write(f"{batch_idx}\\n")
        os.makedirs("samples", exist_ok=True)
        torch.save(self.model.state_dict(), "samples/best.pt")
        super().visit(batch_idx)
"""
CREATE = "experiment = det.experimental.create(Writing, configuration(hyperparameters=settings, max_restarts=0))"


def test_files_are_kept_of_a_whole_training_and_of_killed_ones(
    kernel: Kernel, cluster: Cluster, gate: Gate, tmp_path: Path
) -> None:
    kernel.run(WRITING)
    whole = cluster.attach(kernel.submit_with(CREATE))
    killed = cluster.attach(kernel.submit_with(CREATE, stops="8", port=gate.port))
    visitor = gate.next()  # it stops as long as this object lives
    killed.kill()
    crashed = cluster.attach(kernel.submit_with(CREATE, stops="8", port=gate.port))
    gate.next().die(signal.SIGKILL)
    ends = (
        (whole, ExperimentState.COMPLETED),
        (killed, ExperimentState.CANCELED),
        (crashed, ExperimentState.ERROR),
    )
    for experiment, state in ends:
        ended(experiment, state)
        assert experiment.artifacts.paths == ["log.csv", "samples/best.pt"]
        lines = experiment.artifacts["log.csv"].download(tmp_path / str(experiment.id)).read_text().splitlines()
        assert lines == [str(number) for number in range(len(lines))]
        assert "weight" in str(list(experiment.artifacts["samples/best.pt"].load()))
        assert len(lines) == (experiment.trials[0].detail().batches if experiment is whole else 8)
    assert visitor.text == "8"
    shown = cluster.shown("trial", "files", str(killed.trials[0].id))
    assert "samples/best.pt" in shown
