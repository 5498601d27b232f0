"""Scripts whose second training uses results of the first: the worker has the values that the script had."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from faults import Cluster, running_cluster

pytestmark = [pytest.mark.slow, pytest.mark.long]

MODULE = """
import json
from pathlib import Path
import torch
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial

class Trial(PyTorchTrial):
    taken = None

    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))
        if self.taken is not None:
            print("TAKEN " + json.dumps(self.taken))

    def build_training_data_loader(self):
        return DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 1)), batch_size=4)

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = self.model(batch[0]).square().mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"val": self.model(batch[0]).square().mean()}

CONFIG = {
    "hyperparameters": {"global_batch_size": 4},
    "searcher": {"name": "single", "metric": "val", "max_length": {"batches": 4}},
    "min_validation_period": {"batches": 2}, "min_checkpoint_period": {"batches": 2},
    "checkpoint_storage": {"save_trial_latest": 9}, "reproducibility": {"experiment_seed": 3}, "max_restarts": 0,
}
"""
FIRST = """
from trials import *

for seed in (4, 3):
    other = first if seed == 3 else None
    first = det.experimental.create(Trial, CONFIG | {"reproducibility": {"experiment_seed": seed}})
    first.wait()
"""
SECOND = """
second = det.experimental.create(Trial, CONFIG)
try:
    second.wait()
except det.errors.DetError as error:
    print("REFUSED " + " ".join(str(error).split()))
else:
    print("LOADED", second.top_checkpoint().load().taken == Trial.taken)
    print(*[line for line in map(str, second.trials[0].logs()) if "TAKEN" in line], sep="\\n")
"""
FACTS = """
trial = first.trials[0]
at_two = [checkpoint for checkpoint in trial.checkpoints if checkpoint.batch == 2][0]
weights = torch.load(at_two.download("two") / "state_dict.pth", weights_only=False, map_location="cpu")
Trial.taken = [
    len(trial.metrics()), len(first.metrics()), trial.metrics("validation")[-1]["val"], str(first.state),
    [experiment.best_trial.best_validation for experiment in (other, first)], at_two.uuid, trial.hparams, first.id,
    first.top_checkpoint().batch, sorted(weights), json.dumps(first.config, sort_keys=True)[:80],
]
print("MADE " + json.dumps(Trial.taken))
"""
MODEL = """
import copy
trial = first.top_checkpoint().load()
net = Trial.teacher = trial.model
torch.save(net.state_dict(), "net.pt")
Trial.taken = [
    len(net.state_dict()), isinstance(net, torch.nn.Linear), net.training is False,
    [name for name, parameter in net.named_parameters()], f"{net.weight.item():.6f}", copy.deepcopy(net).bias.item(),
    torch.load("net.pt")["weight"].item(), other.top_checkpoint().load().model.weight.item(), trial.taken,
]
print("MADE " + json.dumps(Trial.taken))
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Any:
    with running_cluster(tmp_path, "pytorch") as started:
        (started.folder / "trials.py").write_text(MODULE)
        yield started


def test_a_script_takes_the_results_of_its_first_training_to_the_worker_of_the_second(cluster: Cluster) -> None:
    printed = cluster.script(FIRST + FACTS + SECOND)
    made, taken = (json.loads(printed.partition(word)[2].splitlines()[0]) for word in ("MADE ", "TAKEN "))
    assert taken == made
    assert made[:2] == [4, 2]
    assert made[4][0] != made[4][1]
    assert "LOADED True" in printed


def test_a_script_loads_the_model_of_its_first_training_on_the_worker_of_the_second(cluster: Cluster) -> None:
    printed = cluster.script(FIRST + MODEL + SECOND)
    made, taken = (json.loads(printed.partition(word)[2].splitlines()[0]) for word in ("MADE ", "TAKEN "))
    assert taken == made
    assert made[:4] == [2, True, True, ["weight", "bias"]]
    assert "LOADED True" in printed


def test_a_model_that_stands_for_one_of_a_local_training_never_trains(cluster: Cluster) -> None:
    local = FIRST.replace("create(Trial,", "create(Trial, local=True, config=")
    printed = cluster.script(f"{local}\nTrial.teacher = first.top_checkpoint().load()\n{SECOND}")
    assert "TrialDefinitionError: Trial uses `Trial.teacher`, which comes of the training call in" in printed
    assert "script.py, line 6" in printed
