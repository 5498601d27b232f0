"""Experiments made of others, with real training: forked, continued, moved; and a cell that is run twice."""

from __future__ import annotations

from typing import Any

import pytest
from faults import Cluster, Kernel

from det_native.errors import ArgumentError, RequestError
from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.long]

# No order and nothing random: what a plain loop gives, to the last digits.
LINE = """
class Straight(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(start())
        rate = context.get_hparam("lr")
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=rate, momentum=0.9))

    def build_training_data_loader(self):
        return DataLoader(rows(), batch_size=8)

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"val_loss": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])}
"""

PLAIN = """
def rows():
    x = torch.linspace(-1, 1, 40).reshape(-1, 1)
    return torch.utils.data.TensorDataset(x, 2 * x + 1)

def start():
    torch.manual_seed(5)
    return torch.nn.Linear(1, 1)

def plain(epochs, lr):
    model = start()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for _ in range(epochs):
        for x, y in torch.utils.data.DataLoader(rows(), batch_size=8):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    return [value.tolist() for value in model.state_dict().values()]

def trained(experiment):
    loaded = experiment.wait().trials[0].checkpoints[-1].load()
    return [value.tolist() for value in getattr(loaded, "model", loaded).state_dict().values()]
"""

SETTINGS = """
straight = {
    "name": "line",
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"epochs": 3}},
    "records_per_epoch": 40,
    "hyperparameters": {"global_batch_size": 8, "lr": 0.05},
}
"""


def flat(values: Any) -> list[float]:
    return [each for value in values for each in flat(value)] if isinstance(values, list) else [values]


def test_a_trial_class_is_forked_and_continued(cluster: Cluster, kernel: Kernel) -> None:
    kernel.run(PLAIN + LINE + SETTINGS)
    number = kernel.submit("experiment = det.experimental.create(Straight, straight)")
    assert kernel.value("trained(experiment)") == kernel.value("plain(3, 0.05)")

    kernel.run(
        "fork = experiment.fork(hyperparameters={'lr': 0.01}, config={'searcher': {'max_length': {'epochs': 2}}})"
    )
    assert kernel.value("trained(fork)") == kernel.value("plain(2, 0.01)")
    assert kernel.value("[fork.name, fork.forked_from]") == ["Fork of line", number]

    kernel.run("longer = experiment.continue_(epochs=2)")
    assert flat(kernel.value("trained(longer)")) == pytest.approx(flat(kernel.value("plain(5, 0.05)")), rel=1e-6)
    assert kernel.value("longer.trials[0].detail().target_batches") == 10

    search = cluster.attach(number).fork(
        {"lr": {"type": "categorical", "vals": [0.01, 0.02]}},
        {"searcher": {"name": "grid", "source_trial_id": cluster.attach(number).trials[0].id}},
        name="search",
    )
    search.wait(show="none")
    assert sorted(trial.hparams["lr"] for trial in search.trials) == [0.01, 0.02]
    first = [trial.metrics("training")[0]["loss"] for trial in search.trials]
    # Both begin where the first experiment ended.
    assert first[0] == first[1] < cluster.attach(number).trials[0].metrics("training")[0]["loss"]

    experiment = cluster.attach(number)
    with pytest.raises(ArgumentError, match="exactly one of epochs="):
        experiment.continue_()
    with pytest.raises(RequestError, match=r"no such hyperparameter; it has global_batch_size, lr\."):
        experiment.fork({"dropout": 0.5})
    with pytest.raises(RequestError, match="began with"):
        experiment.delete(yes=True)


LOOP = """
context = det.experimental.pytorch.init(straight)
model = context.wrap_model(start())
rate = context.get_hparam("lr")
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9))
loader = torch.utils.data.DataLoader(rows(), batch_size=8)

def val_loss(batch):
    return {"val_loss": torch.nn.functional.mse_loss(model(batch[0]), batch[1])}

for x, y in context.train(loader, 3, validation_loader=loader, evaluate_batch=val_loss):
    loss = torch.nn.functional.mse_loss(model(x), y)
    context.backward(loss)
    context.step_optimizer(optimizer)
experiment = context.experiment
"""


def test_a_loop_of_the_users_own_is_continued(cluster: Cluster, native_kernel: Kernel) -> None:
    native_kernel.run(PLAIN + SETTINGS)
    native_kernel.submit(LOOP)
    assert flat(native_kernel.value("trained(experiment)")) == pytest.approx(
        flat(native_kernel.value("plain(3, 0.05)")), rel=1e-6
    )
    native_kernel.run("longer = experiment.continue_(batches=10)")
    assert flat(native_kernel.value("trained(longer)")) == pytest.approx(
        flat(native_kernel.value("plain(5, 0.05)")), rel=1e-6
    )


KERAS = """
def start():
    tf.keras.utils.set_random_seed(5)
    made = tf.keras.Sequential([tf.keras.Input((6,)), tf.keras.layers.Dense(3)])
    made.compile(tf.keras.optimizers.Adam(0.01), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return made

def plain(epochs):
    made = start()
    made.fit(x, y, batch_size=8, epochs=epochs, shuffle=False, verbose=0)
    return [value.tolist() for value in made.get_weights()]

def trained(experiment):
    return [value.tolist() for value in experiment.wait().trials[0].checkpoints[-1].load().get_weights()]
"""

KERAS_STRAIGHT = """
context = det.experimental.keras.init({"name": "straight", "searcher": {"metric": "val_loss"}})
model = context.wrap_model(start())
experiment = model.fit(x, y, validation_data=(x, y), batch_size=8, epochs=3, shuffle=False)
"""


def test_fit_of_keras_is_continued_with_its_optimizer(keras_kernel: Kernel) -> None:
    keras_kernel.run(KERAS)
    keras_kernel.submit(KERAS_STRAIGHT)
    assert flat(keras_kernel.value("trained(experiment)")) == pytest.approx(
        flat(keras_kernel.value("plain(3)")), rel=1e-4
    )
    keras_kernel.run("longer = experiment.continue_(epochs=2)")
    assert flat(keras_kernel.value("trained(longer)")) == pytest.approx(flat(keras_kernel.value("plain(5)")), rel=1e-4)


def test_a_training_in_the_kernel_is_moved_forked_and_continued(cluster: Cluster, kernel: Kernel) -> None:
    kernel.run(PLAIN + LINE + SETTINGS)
    kernel.run("local = det.experimental.create(Straight, straight, local=True)")
    kernel.run("local.rename('at home'); local.add_labels('tried')")
    kernel.run("moved = local.move('cluster', config={'max_restarts': 0})")
    assert kernel.value("trained(moved)") == kernel.value("plain(3, 0.05)")
    moved = cluster.attach(kernel.value("moved.id"))
    assert moved.state is ExperimentState.COMPLETED
    assert (moved.name, moved.labels, moved.config["max_restarts"]) == ("at home", ["tried"], 0)
    with pytest.raises(ArgumentError, match="on a cluster already"):
        moved.move("cluster")
    kernel.run("forked, longer = local.fork({'lr': 0.02}), local.continue_(epochs=2)")
    assert kernel.value("trained(forked)") == kernel.value("plain(3, 0.02)")
    assert kernel.value("trained(longer)") == kernel.value("plain(5, 0.05)")
