"""Directories that were written for Determined, run as they are from code that imports only det_native."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from journey_kernel import Notebook, Script

import det_native as det
from det_native.errors import DetError
from det_native.schema.home import Home

pytestmark = pytest.mark.slow

MODEL_DEF = '''
"""MNIST in Determined's own example, with data made up."""
from typing import Any, Dict, Sequence, Union

import determined as det
import torch
from determined.pytorch import DataLoader, LRScheduler, PyTorchTrial, PyTorchTrialContext
from torch import nn

import data
from layers import Flatten

TorchData = Union[Dict[str, torch.Tensor], Sequence[torch.Tensor], torch.Tensor]


class MNistTrial(PyTorchTrial):
    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.url = context.get_data_config()["url"]
        assert det.pytorch.PyTorchTrial is PyTorchTrial
        self.model = context.wrap_model(nn.Sequential(Flatten(), nn.Linear(4, context.get_hparam("n_filters1"))))
        self.optimizer = context.wrap_optimizer(
            torch.optim.Adadelta(self.model.parameters(), lr=context.get_hparam("learning_rate"))
        )

    def build_training_data_loader(self) -> DataLoader:
        return DataLoader(data.get_dataset(self.url, train=True), batch_size=self.context.get_per_slot_batch_size())

    def build_validation_data_loader(self) -> DataLoader:
        from helpers.late import validation_set

        return DataLoader(validation_set(self.url), batch_size=self.context.get_per_slot_batch_size())

    def train_batch(self, batch: TorchData, epoch_idx: int, batch_idx: int) -> Dict[str, torch.Tensor]:
        inputs, labels = batch
        loss = nn.functional.cross_entropy(self.model(inputs), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch: TorchData) -> Dict[str, Any]:
        inputs, labels = batch
        output = self.model(inputs)
        accuracy = (output.argmax(dim=1) == labels).float().mean().item()
        return {"validation_loss": nn.functional.cross_entropy(output, labels).item(), "accuracy": accuracy}
'''

DATA = """
import determined
import torch


def get_dataset(url: str, train: bool) -> torch.utils.data.TensorDataset:
    assert url.startswith("https://")
    inputs = torch.linspace(-1, 1, 64).reshape(-1, 2, 2)
    return torch.utils.data.TensorDataset(inputs, torch.arange(len(inputs)) % 3)
"""

LAYERS = """
import torch
from torch import nn


class Flatten(nn.Module):
    def forward(self, *args: torch.Tensor, **kwargs: object) -> torch.Tensor:
        return args[0].contiguous().view(args[0].size(0), -1)
"""

LATE = """
from determined.pytorch import DataLoader

import data


def validation_set(url):
    return data.get_dataset(url, train=False)
"""

CONST = """
description: mnist_pytorch_const
labels: [example, mnist]
data:
  url: https://s3-us-west-2.amazonaws.com/determined-ai-test-data/pytorch_mnist.tar.gz
hyperparameters:
  learning_rate: 1.0
  global_batch_size: 8
  n_filters1: 3
searcher:
  name: single
  metric: validation_loss
  max_length:
    batches: 4
  smaller_is_better: true
min_validation_period:
  batches: 2
environment:
  image: determinedai/environments:cuda-11.1-pytorch-1.9-lightning-1.3-tf-2.4-gpu-0.16.3
  force_pull_image: false
bind_mounts:
  - host_path: /mnt/data
    container_path: /data
    read_only: true
resources:
  slots_per_trial: 1
  agent_label: gpu-box
  shm_size: 4294967296
max_restarts: 0
reproducibility:
  experiment_seed: 777
entrypoint: model_def:MNistTrial
"""

SCRIPT = """
import det_native as det

named = det.experimental.create("model_def:MNistTrial", "const.yaml", context_dir=".")
by_entrypoint = det.experimental.create(config="const.yaml", context_dir=".")
here = det.experimental.create(config="const.yaml", context_dir=".", local=True)
print("submitted", [named.id, by_entrypoint.id])
print("here", here.state, here.history)
"""


def write_directory(folder: Path, **changes: str) -> Path:
    """Write what Determined calls a model definition directory."""
    (folder / "helpers").mkdir(parents=True)
    contents = {"model_def": MODEL_DEF, "data": DATA, "layers": LAYERS, "helpers/late": LATE} | changes
    for name, content in contents.items():
        (folder / f"{name}.py").write_text(content)
    (folder / "const.yaml").write_text(CONST)
    return folder


@pytest.mark.long
def test_from_a_script_whose_output_goes_into_the_directory_that_is_sent(
    tmp_path: Path, script: Script, at_home: Home
) -> None:
    folder = write_directory(tmp_path / "mnist")
    (folder / "run.py").write_text(SCRIPT)
    shell = "subprocess.call([sys.executable, '-u', 'run.py'], stdout=open('log.txt', 'w'))"
    done = script("-c", f"import subprocess, sys; sys.exit({shell})", folder=folder)
    printed = (folder / "log.txt").read_text()
    numbers = ast.literal_eval(re.findall(r"submitted (\[.*\])", printed)[0])
    (state, history) = re.findall(r"here (\w+) (\{.*\})", printed)[0]
    assert state == "Completed"
    for number in numbers:
        experiment = det.attach(number).wait()
        assert experiment.state == "Completed", str(experiment.logs())
        assert experiment.trials[0].hparams["learning_rate"] == 1.0
        assert len(experiment.metrics()) == 2
        assert experiment.history.keys() == ast.literal_eval(history).keys()
        assert {row.what for row in experiment.report} >= {"helpers/", "model_def.py", "const.yaml", "log.txt"}
    assert "environment.image" in done.stderr, "it is told what has no effect here"
    assert "bind_mounts" in done.stderr
    assert "entrypoint (" not in done.stderr


@pytest.mark.long
def test_from_a_notebook_beside_another_directory_of_the_same_names(notebook: Notebook) -> None:
    folder = write_directory(notebook.folder / "mnist")
    notebook.run("import det_native as det")
    notebook.run(
        "one = det.experimental.create(config='mnist/const.yaml', context_dir='mnist')\n"
        "here = det.experimental.create('model_def:MNistTrial', 'mnist/const.yaml', context_dir='mnist', local=True)"
    )
    assert "'Completed'" in notebook.run("print(repr(one.wait().state))").text
    assert "True True" in notebook.run("print(here.state == 'Completed', one.history == here.history)").text
    # The names of the second are those of the first, which this kernel has imported already.
    write_directory(
        notebook.folder / "other", model_def=MODEL_DEF.replace('"accuracy": accuracy', '"error": 1 - accuracy')
    )
    notebook.run("two = det.experimental.create(config='other/const.yaml', context_dir='other', local=True)")
    assert "val_error" in notebook.run("print(sorted(two.history))").text
    (folder / "model_def.py").write_text(MODEL_DEF.replace('"accuracy": accuracy', '"edited": accuracy'))
    notebook.run("three = det.experimental.create(config='mnist/const.yaml', context_dir='mnist', local=True)")
    assert "val_edited" in notebook.run("print(sorted(three.history))").text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"config": {"searcher": {"metric": "loss"}}}, "create() has no Trial class: give it, or name it in the"),
        (
            {"config": {"entrypoint": "python3 train.py"}},
            "'python3 train.py' of the configuration names no Trial class",
        ),
        ({"trial_def": "mnist/const.yaml"}, "create(config='mnist/const.yaml') trains its entrypoint."),
    ],
)
def test_what_names_no_class_is_told(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DetError, match=re.escape(message)):
        det.experimental.create(**arguments, local=True)
