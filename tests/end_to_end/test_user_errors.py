"""An exception in a user's cell: in the notebook at once, with cell and line, and tried once more."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults import Cluster, Gate, Kernel, assert_complete_rows, ended, line_of
from programs import BATCHES
from shown_errors import assert_told, wait_while_the_second_attempt_stands

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

IN_TRAINING = """
class Broken(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx + 1 == 7:
            gate(self.context.get_hparam("port"))
            raise ValueError("no seventh batch")
        return super().train_batch(batch, epoch_idx, batch_idx)
"""

DATA = """
def records(port):
    gate(port)
    return {"x": 1}["y"]
"""

IN_DATA = """
class Unread(Digits):
    def build_training_data_loader(self):
        return records(self.context.get_hparam("port"))
"""

ONCE = """
class Flaky(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        path = self.context.get_hparam("once")
        if batch_idx + 1 == 7 and not os.path.exists(path):
            open(path, "x").close()
            raise ConnectionError("the disk of the data was away")
        return super().train_batch(batch, epoch_idx, batch_idx)
"""


def _create(kernel: Kernel, name: str, **settings: object) -> int:
    call = f"experiment = det.experimental.create({name}, configuration(hyperparameters=settings))"
    return kernel.submit_with(call, **settings)


def test_in_a_batch(kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    cell = kernel.run(IN_TRAINING).number
    number = _create(kernel, "Broken", port=gate.port)
    waited = wait_while_the_second_attempt_stands(kernel, gate, "ValueError: no seventh batch")
    assert_told(waited, f"Cell [{cell}], line {line_of(IN_TRAINING, 'raise')}", "ValueError: no seventh batch")
    trial = ended(cluster.attach(number), ExperimentState.ERROR)
    assert trial.restarts == 1
    assert trial.error is not None
    assert (trial.error.cell, trial.error.batch) == (cell, 7)
    assert [row["batch"] for row in cluster.attach(number).trials[0].metrics()] == list(range(1, 7))


@pytest.mark.long
def test_in_a_function_of_another_cell_before_the_first_batch(kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    data = kernel.run(DATA).number
    trial_cell = kernel.run(IN_DATA).number
    number = _create(kernel, "Unread", port=gate.port)
    waiting = kernel.begin("experiment.wait()")
    gate.next().go()
    waited = kernel.finish(waiting, fails=True)
    assert "KeyError: 'y'" in waited.error
    told = waited.text + waited.error  # by the error alone, if it had failed before the waiting began
    assert f"Cell [{data}], line {line_of(DATA, 'return')}" in told
    assert f"Cell [{trial_cell}], line {line_of(IN_DATA, 'return')}, in build_training_data_loader" in told
    trial = ended(cluster.attach(number), ExperimentState.ERROR)
    assert (trial.restarts, trial.batches) == (0, 0)


@pytest.mark.long
def test_one_that_does_not_come_again_costs_a_restart_only(
    kernel: Kernel, cluster: Cluster, gate: Gate, tmp_path: Path
) -> None:
    kernel.run(ONCE)
    number = _create(kernel, "Flaky", stops="8", port=gate.port, once=str(tmp_path / "once"))
    waiting = kernel.begin("experiment.wait()")
    again = gate.next()
    kernel.shows(waiting, "ConnectionError")
    again.go()
    kernel.finish(waiting)
    experiment = cluster.attach(number)
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert_complete_rows(experiment, BATCHES)
