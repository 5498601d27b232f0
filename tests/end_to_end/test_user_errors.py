"""An exception in a user's cell: in the notebook within two seconds, with cell and line, and tried once more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from faults import GATE_CELL, Cluster, Executed, Kernel, assert_complete_rows, ended, line_of
from programs import (
    BATCHES,
    CONFIG,
    KERAS_CALLBACK,
    KERAS_DATA,
    KERAS_FIT,
    KERAS_SETUP,
    TORCH_SETUP,
    TORCH_TRIAL,
)

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

SECONDS = 2.0

# The moment of raising is written to a file, since an error with another message would be another error.
STAMP = """
import time

def stamp(path):
    with open(path, "a") as file:
        print(time.time(), file=file)
"""

IN_TRAINING = """
class Broken(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx + 1 == 7:
            stamp(self.context.get_hparam("stamps"))
            raise ValueError("no seventh batch")
        return super().train_batch(batch, epoch_idx, batch_idx)
"""

DATA = """
def records(path):
    stamp(path)
    return {"x": 1}["y"]
"""

IN_DATA = """
class Unread(Digits):
    def build_training_data_loader(self):
        return records(self.context.get_hparam("stamps"))
"""

ONCE = """
class Flaky(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        path = self.context.get_hparam("stamps")
        if batch_idx + 1 == 7 and not os.path.exists(path):
            stamp(path)
            raise ConnectionError("the disk of the data was away")
        return super().train_batch(batch, epoch_idx, batch_idx)
"""

IN_CALLBACK = """
class Watch(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if int(self.model.optimizer.iterations) == 7:
            stamp(context.get_hparam("stamps"))
            raise RuntimeError("seen enough")
"""


@pytest.fixture(scope="module")
def torch_kernel(module_kernel: Kernel) -> Kernel:
    """The module's kernel, with the PyTorch program defined."""
    for source in (TORCH_SETUP, STAMP, CONFIG, GATE_CELL, TORCH_TRIAL):
        module_kernel.run(source)
    return module_kernel


def _create(kernel: Kernel, name: str, stamps: Path) -> int:
    settings = {"stamps": str(stamps)}
    return kernel.submit(f"experiment = det.experimental.create({name}, configuration(hyperparameters={settings}))")


def _check_shown(waited: Executed, stamps: Path, place: str, message: str) -> None:
    """Check that an error that always comes was raised twice, shown at once, and once in full."""
    raised = [float(line) for line in stamps.read_text().split()]
    assert len(raised) == 2
    assert waited.when(message) - raised[0] < SECONDS
    assert waited.text.count(message) == 1
    assert re.search(rf"failed .*, in {re.escape(place.lower())}:\n", waited.text)
    assert place in waited.text
    assert "failed again" in waited.text
    assert waited.error.startswith("UserCodeError: Experiment")
    assert message in waited.error
    assert place.lower() in waited.error
    assert waited.text.count(place) == 1


def test_in_a_batch(torch_kernel: Kernel, cluster: Cluster, tmp_path: Path) -> None:
    cell = torch_kernel.run(IN_TRAINING).number
    number = _create(torch_kernel, "Broken", tmp_path / "stamps")
    waited = torch_kernel.run("experiment.wait()", fails=True)
    place = f"Cell [{cell}], line {line_of(IN_TRAINING, 'raise')}"
    _check_shown(waited, tmp_path / "stamps", place, "ValueError: no seventh batch")
    trial = ended(cluster.attach(number), ExperimentState.ERROR)
    assert trial.restarts == 1
    assert trial.error is not None
    assert (trial.error.cell, trial.error.batch) == (cell, 7)
    assert [row["batch"] for row in cluster.attach(number).trials[0].metrics()] == list(range(1, 7))


def test_in_a_function_of_another_cell_before_the_first_batch(
    torch_kernel: Kernel, cluster: Cluster, tmp_path: Path
) -> None:
    data = torch_kernel.run(DATA).number
    trial_cell = torch_kernel.run(IN_DATA).number
    number = _create(torch_kernel, "Unread", tmp_path / "stamps")
    waited = torch_kernel.run("experiment.wait()", fails=True)
    place = f"Cell [{data}], line {line_of(DATA, 'return')}"
    _check_shown(waited, tmp_path / "stamps", place, "KeyError: 'y'")
    assert f"Cell [{trial_cell}], line {line_of(IN_DATA, 'return')}, in build_training_data_loader" in waited.text
    assert ended(cluster.attach(number), ExperimentState.ERROR).restarts == 1


def test_one_that_does_not_come_again_costs_a_restart_only(
    torch_kernel: Kernel, cluster: Cluster, tmp_path: Path
) -> None:
    torch_kernel.run(ONCE)
    number = _create(torch_kernel, "Flaky", tmp_path / "stamps")
    waited = torch_kernel.run("experiment.wait()")
    assert waited.when("ConnectionError") - float((tmp_path / "stamps").read_text()) < SECONDS
    experiment = cluster.attach(number)
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert_complete_rows(experiment, BATCHES)


def test_in_a_keras_callback(module_kernel: Kernel, cluster: Cluster, tmp_path: Path) -> None:
    stamps = tmp_path / "stamps"
    for source in (KERAS_SETUP, STAMP, CONFIG, KERAS_DATA, KERAS_CALLBACK, f"settings = {{'stamps': {str(stamps)!r}}}"):
        module_kernel.run(source)
    cell = module_kernel.run(IN_CALLBACK).number
    number = module_kernel.submit(KERAS_FIT.replace("[Visit()]", "[Watch()]"))
    waited = module_kernel.run("experiment.wait()", fails=True)
    place = f"Cell [{cell}], line {line_of(IN_CALLBACK, 'raise')}"
    _check_shown(waited, stamps, place, "RuntimeError: seen enough")
    trial = ended(cluster.attach(number), ExperimentState.ERROR)
    assert trial.restarts == 1
    assert trial.error is not None
    assert (trial.error.cell, trial.error.batch) == (cell, 7)
    assert [row["batch"] for row in cluster.attach(number).trials[0].metrics()] == list(range(1, 7))
