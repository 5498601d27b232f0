"""Weights trained by a worker, in the notebook's objects: what a local run of the same cells leaves there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from faults import Cluster, Kernel, running_kernel
from programs import CONFIG, KERAS_DATA, KERAS_FIT, KERAS_SETUP, NATIVE_OBJECTS, NATIVE_SETUP

from det_native.client.handles import Experiment

pytestmark = [pytest.mark.slow, pytest.mark.long]

SETTINGS = "settings = {}"
HALVING = """
class Halving(tf.keras.callbacks.Callback):
    def on_train_end(self, logs=None):
        self.model.set_weights([weight / 2 for weight in self.model.get_weights()])
"""
KERAS_STATE = """
def state_of(model):
    values = [*model.get_weights(), *(np.array(value) for value in model.optimizer.variables)]
    return [value.tobytes().hex() for value in values] + [int(model.optimizer.iterations)]

def step_on(model):
    return float(np.ravel(type(model).train_on_batch(model, x[:8], y[:8]))[0])
"""
KERAS_FIT_HALVING = KERAS_FIT.replace("[Visit()]", "[Halving()]")

TORCH_FUNCTIONS = """
def train_batch(batch, epoch_idx, batch_idx):
    loss = loss_of(batch)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.state["seen"] = context.state.get("seen", 0) + 1
    return {"loss": loss}

class Halving(det.pytorch.PyTorchCallback):
    def on_validation_end(self, metrics):
        with torch.no_grad():
            model[0].weight.mul_(0.5)
"""
TORCH_FIT = "experiment = context.fit(loader(True), loader(False), train_batch, evaluate_batch, callbacks=[Halving()])"
TORCH_STATE = """
def state_of(model, optimizer):
    slots = [slot["momentum_buffer"] for slot in optimizer.state_dict()["state"].values()]
    values = [value.numpy().tobytes().hex() for value in (*model.state_dict().values(), *slots)]
    return [*values, optimizer.param_groups[0]["lr"], scheduler.last_epoch, dict(context.state), model.training]
"""

GROWING = """
class Tower(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.order = torch.nn.ModuleList([torch.nn.Linear(6, 6)]), []

    def forward(self, x):
        for layer in self.body:
            x = torch.tanh(layer(x))
        return x.sum() * (1 + sum(self.order))

storage = {"checkpoint_storage": {"save_trial_latest": 9}, "min_checkpoint_period": {"epochs": 1}}
context = det.experimental.pytorch.init(configuration(**storage, hyperparameters=settings))
model, x, seen = Tower(), torch.ones(2, 6), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = context.wrap(model, optimizer)
for epoch in context.epochs(3):
    if epoch:
        model.body.append(torch.nn.Linear(6, 6))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.order.append(epoch)
    loss = model(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen.append(model(x).item())
    context.report(val_loss=loss)
"""


def local(cell: str) -> str:
    """Return a cell that trains here."""
    return cell.replace("wait=False", "local=True").replace("settings))", "settings), local=True)")


@pytest.fixture
def keras_notebook(keras_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    """A notebook of its own: it trains here, too."""
    monkeypatch.setenv("DET_HOME", str(keras_cluster.home.path))
    cells = (KERAS_SETUP, CONFIG, KERAS_DATA, HALVING, KERAS_STATE, SETTINGS)
    with keras_cluster.clearing(), running_kernel(keras_cluster, "weights", *cells) as kernel:
        yield kernel


@pytest.fixture
def torch_notebook(torch_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    """A notebook of its own: it trains here, too."""
    monkeypatch.setenv("DET_HOME", str(torch_cluster.home.path))
    with torch_cluster.clearing(), running_kernel(torch_cluster, "weights", NATIVE_SETUP, CONFIG) as kernel:
        kernel.run(SETTINGS)
        yield kernel


def damage(experiment: Experiment) -> None:
    """Change a byte of each file of the last checkpoint."""
    last = experiment.checkpoints[-1]
    folder = experiment.source.checkpoints(trial_id=last.trial_id)[-1].location
    from pathlib import Path

    for path in Path(folder).rglob("*"):
        if path.is_file() and path.name != "manifest.json":
            path.write_bytes(path.read_bytes()[:-1] + b"?")


def values_after_step(kernel: Kernel) -> list[Any]:
    """Return a model's state, what the next step makes of it, and the loss of that."""
    return [kernel.value("state_of(model)"), kernel.value("step_on(model)"), kernel.value("state_of(model)")]


def test_a_model_of_keras_has_what_a_local_run_leaves(keras_notebook: Kernel, keras_cluster: Cluster) -> None:
    kernel = keras_notebook
    number = kernel.submit(KERAS_FIT_HALVING)
    kernel.run("experiment.wait()")
    kernel.run("feature = tf.keras.Model(model.inputs, model.layers[0].output)")
    assert kernel.value("all((a == b).all() for a, b in zip(feature.get_weights(), model.get_weights()))")
    kernel.run(f"again = det.experiment({number}).checkpoints[-1].load()")
    assert kernel.value("state_of(again)") == kernel.value("state_of(model)")
    kernel.run("fresh = tf.keras.models.clone_model(model)")
    kernel.run("fresh.compile(tf.keras.optimizers.Adam(0.3), loss)")
    kernel.run(f"det.experiment({number}).load_into(fresh)")
    assert kernel.value("state_of(fresh)") == kernel.value("state_of(model)")
    trained = values_after_step(kernel)

    kernel.run(local(KERAS_FIT_HALVING))
    assert values_after_step(kernel) == trained
    kernel.run("fresh.set_weights([weight * 0 for weight in fresh.get_weights()])")
    kernel.run("det.experiment(context.experiment.id).load_into(fresh)")
    assert kernel.value("state_of(fresh)") == trained[0]

    damage(keras_cluster.attach(number))
    failed = kernel.run(f"det.experiment({number}).load_into(fresh)", fails=True)
    assert failed.error is not None
    assert "Nothing is loaded; that of batch" in failed.error
    assert kernel.value("state_of(fresh)") == trained[0]


def test_modules_of_pytorch_have_what_a_local_run_leaves(torch_notebook: Kernel) -> None:
    kernel = torch_notebook
    for cell in (NATIVE_OBJECTS, TORCH_FUNCTIONS, TORCH_STATE):
        kernel.run(cell)
    kernel.run("held = model[0]")
    number = kernel.submit(TORCH_FIT)
    kernel.run("experiment.wait()")
    assert kernel.value("held is model[0]")
    trained = kernel.value("state_of(model, optimizer)")
    assert trained[-2] == {"seen": 15}
    kernel.run(f"again = det.experiment({number}).checkpoints[-1].load()")
    assert kernel.value("[value.numpy().tobytes().hex() for value in again.state_dict().values()]") == trained[:4]
    kernel.run("fresh = torch.nn.Sequential(*layers[:3], torch.nn.Linear(16, 3))")
    kernel.run("import copy; fresh = copy.deepcopy(fresh)")
    kernel.run("other = torch.optim.SGD(fresh.parameters(), lr=1.0, momentum=0.1)")
    kernel.run(f"det.experiment({number}).load_into(fresh, other)")
    assert kernel.value("state_of(fresh, other)")[:9] == trained[:9]

    kernel.run(local(NATIVE_OBJECTS))
    kernel.run(TORCH_FIT)
    assert kernel.value("state_of(model, optimizer)") == trained


def test_a_net_that_the_loop_has_grown_is_loaded_as_it_was_at_each_checkpoint(torch_notebook: Kernel) -> None:
    kernel = torch_notebook
    kernel.run(GROWING)
    kernel.run("found = [checkpoint.load() for checkpoint in det.last_experiment().checkpoints]")
    assert kernel.value("sorted(len(net.body) for net in found)") == [1, 2, 3]
    kernel.run("found.sort(key=lambda net: len(net.body))")
    assert kernel.value("[net(x).item() for net in found] == seen")
    assert kernel.value("[net.order for net in found]") == [[0], [0, 1], [0, 1, 2]]
    assert kernel.value("all(type(net) is Tower for net in found) and len(model.body) == 3")
    told = kernel.run("det.last_experiment().load_into(Tower())", fails=True)
    assert told.error is not None
    assert "this one has no body.1" in told.error
    kernel.run(local(GROWING))
    assert kernel.value("seen[-1] == det.last_experiment().checkpoints[-1].load()(x).item()")
    kernel.run("first = min(det.last_experiment().checkpoints, key=lambda checkpoint: checkpoint.batch)")
    told = kernel.run("first.load()", fails=True)
    assert told.error is not None
    assert "give it to experiment.load_into(model, checkpoint=...)" in told.error
    kernel.run("fresh = Tower(); before = fresh.body[0].weight.sum().item()")
    kernel.run("det.last_experiment().load_into(fresh, checkpoint=first.uuid)")
    assert kernel.value("fresh.body[0].weight.sum().item() != before")
