"""``local=True`` for what cannot train in the kernel: the master of this machine does, whatever ``DET_MASTER`` says."""

from __future__ import annotations

import pytest
from faults import Cluster, Kernel, ended

from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.long]

CALL = """
import os
import torch
import det_native as det

os.environ["DET_MASTER"] = "https://another.example:8443"

def begun(values=(), **changes):
    config = configuration(min_checkpoint_period={"batches": 0}) | changes
    context = det.experimental.pytorch.init(config, local=True, values=values)
    model = context.wrap_model(torch.nn.Linear(6, 3))
    optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.05))
    return context, model, optimizer

def loader():
    x = torch.randn(40, 6, generator=torch.Generator().manual_seed(3))
    data = torch.utils.data.TensorDataset(x, x[:, :3].argmax(1))
    return torch.utils.data.DataLoader(data, batch_size=context.get_per_slot_batch_size())

def train_batch(batch, epoch_idx, batch_idx):
    if batch_idx == 0:
        print("process", os.getpid(), "of", context.distributed.get_size(), flush=True)
    if batch_idx == 100:
        print("under way", flush=True)
    loss = torch.nn.functional.cross_entropy(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}

def evaluate_batch(batch):
    return {"val_loss": torch.nn.functional.cross_entropy(model(batch[0]), batch[1])}
"""
TWO = "context, model, optimizer = begun(resources={'slots_per_trial': 2})"
FIT = "experiment = context.fit(loader(), loader(), train_batch, evaluate_batch)"
LOOP = """
seen = 0
for batch in context.train(loader(), validation_loader=loader(), evaluate_batch=evaluate_batch):
    context.report(train_batch(batch, context.epoch_idx, context.batch_idx))
    seen += 1
experiment = context.experiment
"""
SEARCH = """
searcher = {"name": "grid", "metric": "val_loss", "max_length": {"batches": 5}}
grid = {"global_batch_size": 8, "x": det.Categorical([1, 2])}
context, model, optimizer = begun(searcher=searcher, hyperparameters=grid)
model.x = context.get_hparam("x")
before = model.weight.detach().clone()
"""


@pytest.fixture
def kernel(native_kernel: Kernel) -> Kernel:
    """The kernel with a call."""
    native_kernel.run(CALL)
    return native_kernel


def test_what_several_slots_have_trained_comes_home(kernel: Kernel, cluster: Cluster) -> None:
    weights = []
    for cell in (FIT, LOOP):
        kernel.run(TWO)
        told = kernel.run(cell).text
        assert "of 2" in told
        assert f"process {kernel.value('os.getpid()')} of" not in told
        trial = ended(cluster.attach(kernel.value("experiment.id")), ExperimentState.COMPLETED)
        assert trial.batches == 15
        weights.append(kernel.value("model.weight.tolist()"))
        assert kernel.value("experiment.top_checkpoint().load().weight.tolist()") == weights[-1]
    assert weights[0] == weights[1]
    assert kernel.value("seen") == 15


def test_a_search_leaves_the_model_as_it_was(kernel: Kernel, cluster: Cluster) -> None:
    kernel.run(SEARCH)
    told = kernel.run(FIT).text
    assert "The trials of this search have run in processes of their own: the model is as it was here." in told
    assert kernel.value("bool((model.weight == before).all())")
    experiment = cluster.attach(kernel.value("experiment.id"))
    assert sorted(trial.hparams["x"] for trial in experiment.trials) == [1, 2]
    assert kernel.value("experiment.top_checkpoint().load().x == experiment.best_trial.hparams['x']")


def test_ctrl_c_ends_the_waiting_and_not_the_training(kernel: Kernel, cluster: Cluster) -> None:
    kernel.run(TWO.replace("begun(", "begun(searcher={'metric': 'val_loss', 'max_length': {'batches': 10**6}}, "))
    running = kernel.begin(FIT)
    kernel.says(running, "under way")
    kernel.interrupt()
    kernel.finish(running, fails=True)
    experiment = cluster.attach(max(cluster.running()))
    assert f"KeyboardInterrupt: Experiment {experiment.id} goes on. det.last_experiment().wait()" in running.error
    assert experiment.state is ExperimentState.ACTIVE
    experiment.stop()


def test_what_cannot_be_here_says_why_and_what_to_do(kernel: Kernel) -> None:
    kernel.run(TWO.replace("'slots_per_trial': 2", "'slots_per_trial': 3"))
    said = kernel.run(FIT, fails=True).error
    assert "resources.slots_per_trial: 3 slots for each trial, but the cluster has 2 slots: ask for at most 2" in said
    assert "`det down`, then `det up --slots 3`" in said
    kernel.run("made = (number for number in range(3))\n" + TWO.replace("begun(", "begun(values=['made'], "))
    assert "Cannot send `made` (a generator)" in kernel.run(FIT, fails=True).error


CLASS = """
import os
import torch
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial

class Line(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("lr")))

    def data(self):
        x = torch.linspace(-1, 1, 16).reshape(-1, 1)
        return DataLoader(torch.utils.data.TensorDataset(x, 2 * x), self.context.get_per_slot_batch_size())

    build_training_data_loader = build_validation_data_loader = data

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        if self.context.get_hparam("lr") == 0.2:
            raise ZeroDivisionError("in the second trial")
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"error": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])}

os.environ["DET_MASTER"] = "https://another.example:8443"
config = {
    "searcher": {"name": "grid", "metric": "error", "max_length": {"batches": 4}},
    "hyperparameters": {"global_batch_size": 4, "lr": det.Categorical([0.1, 0.2])},
    "max_restarts": 0,
}
experiment = det.experimental.create(Line, config, local=True)
print(experiment.state, [trial.state.name for trial in experiment.trials])
config["hyperparameters"]["lr"] = 0.1
quick = det.experimental.create(Line, config, local=True, test=True)
"""


def test_a_class_waits_for_its_end_and_a_quick_check_of_a_search_is_one_trial_here(cluster: Cluster) -> None:
    printed = cluster.script(CLASS)
    assert "Completed ['COMPLETED', 'ERROR']" in printed
    assert "The quick check passed." in printed
