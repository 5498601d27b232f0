"""Directories with an ``entrypoint``, trained here in processes of their own: ``det experiment create ... --local``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

from det_native.client.handles import Experiment  # noqa: E402 (after the check for TensorFlow)
from det_native.client.local_source import LocalSource  # noqa: E402
from det_native.local.store import LocalStore  # noqa: E402

pytestmark = pytest.mark.slow

ESTIMATOR = """
from typing import Dict

import tensorflow as tf
from determined import estimator
from data import records


class Line(estimator.EstimatorTrial):
    def __init__(self, context: estimator.EstimatorTrialContext) -> None:
        self.context = context

    def build_estimator(self) -> tf.estimator.Estimator:
        optimizer = self.context.wrap_optimizer(tf.compat.v1.train.AdamOptimizer(self.context.get_hparam("rate")))
        columns = [tf.feature_column.numeric_column("x")]
        return tf.compat.v1.estimator.DNNClassifier([4], columns, optimizer=optimizer)

    def data(self):
        made = self.context.wrap_dataset(tf.data.Dataset.from_tensor_slices(records()))
        return made.batch(self.context.get_per_slot_batch_size())

    def build_train_spec(self) -> tf.estimator.TrainSpec:
        return tf.estimator.TrainSpec(self.data)

    def build_validation_spec(self) -> tf.estimator.EvalSpec:
        return tf.estimator.EvalSpec(self.data, steps=None)

    def build_serving_input_receiver_fns(self) -> Dict[str, estimator.ServingInputReceiverFn]:
        given = {"x": tf.compat.v1.placeholder(tf.float32, [None])}
        return {"raw": tf.estimator.export.build_raw_serving_input_receiver_fn(given)}
"""
DATA = """
def records():
    return {"x": [0.0, 1.0, 2.0, 3.0]}, [0, 0, 1, 1]
"""
TORCH = """
import torch
from determined.pytorch import DataLoader, PyTorchTrial
from data import records


class Line(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 2))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("rate")))

    def loader(self):
        x, y = records()
        data = torch.utils.data.TensorDataset(torch.tensor(x["x"]).reshape(-1, 1), torch.tensor(y))
        return DataLoader(data, batch_size=self.context.get_per_slot_batch_size())

    build_training_data_loader = build_validation_data_loader = loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss, "records": float(len(batch[0]))}

    def evaluate_batch(self, batch):
        return {"accuracy": (self.model(batch[0]).argmax(1) == batch[1]).float().mean()}
"""


def trained(folder: Path, source: str, *options: str, **config: Any) -> Experiment:
    """Train a directory by the command; return its experiment."""
    code = folder / "code"
    code.mkdir()
    (code / "model_def.py").write_text(source)
    (code / "data.py").write_text(DATA)
    searcher = {"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": 4}}
    hyperparameters = {"global_batch_size": 4, "rate": 0.1}
    said = {"entrypoint": "model_def:Line", "searcher": searcher, "hyperparameters": hyperparameters, **config}
    (folder / "const.yaml").write_text(json.dumps(said))
    command = [Path(sys.executable).with_name("det"), "experiment", "create", "const.yaml", "code", "--local", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return Experiment(LocalSource(LocalStore.find("local-1")), "local-1")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the runs of this machine in a folder of the test's."""
    monkeypatch.setenv("DET_HOME", str(tmp_path / "home"))


@pytest.mark.long
def test_an_estimator_of_a_directory_trains_here_and_serves(tmp_path: Path) -> None:
    experiment = trained(tmp_path, ESTIMATOR)
    assert experiment.state == "Completed"
    [trial] = experiment.trials
    assert [row["batch"] for row in trial.metrics("training")] == [1, 2, 3, 4]
    assert trial.metrics("validation")[-1]["batch"] == 4
    folder = trial.checkpoints[-1].download(tmp_path / "checkpoint")
    [model] = (folder / "raw").iterdir()
    served = tf.saved_model.load(str(model)).signatures["predict"]
    assert served(x=tf.constant([0.0, 3.0]))["class_ids"].shape == (2, 1)


@pytest.mark.long
def test_a_directory_trains_here_on_two_slots(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    experiment = trained(tmp_path, TORCH, resources={"slots_per_trial": 2})
    assert experiment.state == "Completed"
    [trial] = experiment.trials
    assert [row["records"] for row in trial.metrics("training")] == [2.0] * 4
    assert trial.metrics("validation")[-1]["batch"] == 4
