"""What goes wrong with trainings whose weights are to come home: a sentence says it, and the kernel lives on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faults import Cluster, Gate, Kernel, running_kernel
from torch_program import FIT

pytestmark = pytest.mark.slow

BEGIN = "context, model, optimizer, train_batch = begin({})"
SHARED = """
def pair(**where):
    context = det.experimental.pytorch.init(config, **where)
    torch.manual_seed(1)
    encoder = torch.nn.Linear(4, 2)
    models = [context.wrap_model(torch.nn.Sequential(encoder, torch.nn.Linear(2, 1))) for _ in range(2)]
    optimizers = [context.wrap_optimizer(torch.optim.SGD(model.parameters(), 0.1)) for model in models]
    return context, [*zip(models, optimizers)]

def trained(context, model, optimizer):
    def train_batch(batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.mse_loss(model(batch[0]), batch[1])
        context.backward(loss)
        context.step_optimizer(optimizer)
        return loss
    return context.fit(data, train_batch=train_batch, epochs=1)
"""
SEARCH = """
context = det.experimental.pytorch.init({
    **config,
    "hyperparameters": {"width": {"type": "categorical", "vals": [3, 5]}},
    "searcher": {"name": "grid", "metric": "loss", "smaller_is_better": smaller},
})
torch.manual_seed(0)
width = context.get_hparam("width")
net = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Linear(width, 1))
if width == WORSE:
    for weight in net.parameters():
        torch.nn.init.zeros_(weight)
model = context.wrap_model(net)
optimizer = context.wrap_optimizer(torch.optim.Adam(model.parameters(), 0.001))

def train_batch(batch, epoch_idx, batch_idx):
    loss = torch.nn.functional.mse_loss(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return loss
"""


@pytest.mark.soak
def test_a_cell_that_waits_and_was_run_twice_runs_twice(kernel: Kernel, gate: Gate) -> None:
    kernel.run(f"{BEGIN.format(gate.port)}\nran = 0")
    kernel.run(FIT.format(""))
    visitor = gate.next()
    cell = "ran += 1; loss = loss_here()"
    first, second = kernel.begin(cell), kernel.begin(cell)
    kernel.shows(first, "Experiment")
    visitor.go()
    assert "weights loaded into `model`" in kernel.finish(first).text
    assert "weights loaded" not in kernel.finish(second).text
    assert kernel.value("ran") == 2


@pytest.mark.soak
def test_to_interrupt_a_cell_twice_leaves_it_as_it_was(kernel: Kernel, gate: Gate) -> None:
    kernel.run(f"{BEGIN.format(gate.port)}\nran = 0")
    kernel.run(FIT.format(""))
    visitor = gate.next()
    for _ in range(2):
        waiting = kernel.begin("ran += 1; loss = loss_here()")
        kernel.shows(waiting, "Experiment")
        kernel.interrupt()
        assert "This cell has not run: run it again to wait again" in kernel.finish(waiting, fails=True).error
    visitor.go()
    assert "weights loaded into `model`" in kernel.run("ran += 1; loss = loss_here()").text
    assert kernel.value("ran") == 1


def test_a_stopped_experiment_is_told_once_with_its_best_checkpoint(kernel: Kernel, gate: Gate) -> None:
    kernel.run(BEGIN.format(gate.port))
    kernel.run(FIT.format(""))
    visitor = gate.next()
    kernel.run("history.stop()")
    visitor.go()
    error = kernel.run("loss_here()", fails=True).error
    assert error.startswith("ExperimentFailedError: Experiment ")
    assert "is Stopped, so there are no weights of a whole training" in error
    best = kernel.value("history.top_checkpoint().uuid[:8]")
    assert f"Its best checkpoint is {best}: det.experiment({kernel.value('history.id')})" in error
    kernel.run("loss_here()")


@pytest.mark.soak
def test_a_model_that_is_forgotten_is_not_waited_for(kernel: Kernel, gate: Gate) -> None:
    kernel.run(BEGIN.format(gate.port))
    kernel.run(f"before = loss_here()\n{FIT.format('')}\ndet.forget(model)")
    visitor = gate.next()
    assert kernel.value("before == loss_here()")
    visitor.go()
    kernel.run("history.load_into(model, optimizer)")
    assert kernel.value("before > loss_here()")


@pytest.mark.soak
def test_a_part_of_two_models_has_what_both_trainings_made_of_it(kernel: Kernel) -> None:
    kernel.run(SHARED)
    kernel.run("context, pairs = pair(local=True)\nfor net, steps_of in pairs:\n    trained(context, net, steps_of)")
    local = kernel.value("[net(x[:1]).item() for net, _ in pairs]")
    kernel.run("context, pairs = pair()")
    kernel.run("handles = [trained(context, net, steps_of) for net, steps_of in pairs]")
    assert kernel.value("[net(x[:1]).item() for net, _ in pairs]") == local


def _overwrite(path: Path) -> None:
    path.write_bytes(b"-" * path.stat().st_size)


@pytest.mark.long
@pytest.mark.parametrize("damage", [_overwrite, pytest.param(Path.unlink, marks=pytest.mark.soak)])
def test_a_damaged_checkpoint_is_told_once(kernel: Kernel, cluster: Cluster, damage: Callable[[Path], None]) -> None:
    kernel.run(BEGIN.format(""))
    kernel.run(FIT.format(""))
    kernel.run("history.wait()")
    uuid = kernel.value("history.checkpoints[-1].uuid")
    [*paths] = (path for path in (cluster.home.path / "checkpoints" / uuid).iterdir() if path.name != "manifest.json")
    path = max(paths, key=lambda path: path.stat().st_size)
    damage(path)
    error = kernel.run("loss = loss_here()", fails=True).error
    assert error.startswith(f"CheckpointCorruptError: Checkpoint {uuid}: the ")
    assert f"Nothing is loaded; det.experiment({kernel.value('history.id')}).checkpoints lists" in error
    assert "`model` keeps the weights that it has here: run this again" in error
    assert "best checkpoint" not in error
    kernel.run("loss = loss_here()")


@pytest.mark.long
def test_a_model_that_is_built_anew_waits_for_nothing(kernel: Kernel) -> None:
    kernel.run(BEGIN.format(""))
    kernel.run(FIT.format(""))
    built = kernel.run("model = torch.nn.Linear(4, 7)\nmodel(x).shape")
    assert "weights loaded" not in built.text
    error = kernel.run("history.load_into(model)", fails=True).error
    assert "the experiment's has weight (1, 4), this one has weight (7, 4). experiment.top_checkpoint().load()" in error


@pytest.mark.long
def test_searched_hyperparameters_that_change_the_layers_are_said(kernel: Kernel) -> None:
    # The better trial is the second, of which the kernel has another one.
    kernel.run("smaller = True")
    kernel.run(SEARCH.replace("WORSE", "3"))
    kernel.run(FIT.format(""))
    error = kernel.run("loss = loss_here()", fails=True).error
    assert (
        "the experiment's has 0.weight (5, 4), this one has 0.weight (3, 4). experiment.top_checkpoint().load()"
        in error
    )
    assert "The best trial has width = 5; this notebook has made its model with width = 3." in error
    kernel.run("loss = loss_here()")
    assert kernel.value("list(history.top_checkpoint().load()[0].weight.shape)") == [5, 4]


THREAD = """
import threading
seen = []
def work():
    seen.append(loss_here())
"""
FIT_IN_THREAD = """
def work():
    handles.append(context.fit(data, train_batch=train_batch, epochs=3))
    seen.append(loss_here())
seen, handles = [], []
"""
RUN_IN_THREAD = """
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.long
def test_a_thread_has_the_trained_weights(kernel: Kernel) -> None:
    kernel.run(BEGIN.format("local=True"))
    kernel.run(FIT.format(""))
    local = kernel.value("loss_here()")
    kernel.run(THREAD)
    kernel.run(BEGIN.format(""))
    kernel.run(FIT.format(""))
    assert "weights loaded into `model`" in kernel.run(RUN_IN_THREAD).text
    assert kernel.value("seen") == [local]


@pytest.mark.soak
def test_a_call_in_a_thread_waits_there(kernel: Kernel) -> None:
    kernel.run(BEGIN.format("local=True"))
    kernel.run(FIT.format(""))
    local = kernel.value("loss_here()")
    kernel.run(THREAD)
    kernel.run(FIT_IN_THREAD)
    kernel.run(BEGIN.format(""))
    ran = kernel.run(RUN_IN_THREAD)
    assert kernel.value("seen") == [local], ran.text


@pytest.mark.soak
def test_a_failure_in_a_thread_is_told_there(kernel: Kernel) -> None:
    kernel.run(THREAD)
    kernel.run(FIT_IN_THREAD)
    kernel.run(BEGIN.format("bad=True"))
    ran = kernel.run(RUN_IN_THREAD)
    assert kernel.value("[seen, handles]") == [[], []]
    assert "Exception in thread" in ran.text
    assert "ValueError: no luck" in ran.text
    assert "`model` keeps the weights that it has here: run this again" in ran.text


KERAS = """
import threading
import keras
import numpy as np
import det_native as det

x = np.linspace(-1, 1, 64 * 4).reshape(64, 4).astype("float32")
y = x.sum(1, keepdims=True)
seen = []

def begin(width, **where):
    keras.utils.set_random_seed(1)
    context = det.experimental.keras.init({"reproducibility": {"experiment_seed": 1}, "max_restarts": 0}, **where)
    layers = [keras.Input((4,)), keras.layers.Dense(width, name="inner"), keras.layers.Dense(1)]
    model = context.wrap_model(keras.Sequential(layers))
    model.compile(keras.optimizers.Adam(0.1), "mse")
    return context, model

def work():
    seen.append(model.predict(x[:2], verbose=0).tolist())

def train_and_work():
    history = model.fit(x, y, epochs=1, batch_size=16, verbose=0)
    seen.append([history.history["loss"], model.predict(x[:2], verbose=0).tolist()])
"""


@pytest.fixture(scope="module")
def keras_kernel(cluster: Cluster) -> Iterator[Kernel]:
    """A kernel with the program in Keras."""
    with running_kernel(cluster, "bad-keras", KERAS) as kernel:
        yield kernel


@pytest.mark.soak
def test_threads_of_keras_have_the_trained_weights(keras_kernel: Kernel) -> None:
    for where in ("local=True", ""):
        keras_kernel.run(f"context, model = begin(3, {where})")
        keras_kernel.run(RUN_IN_THREAD.replace("work", "train_and_work"))
        keras_kernel.run(f"context, model = begin(3, {where})")
        keras_kernel.run("history = model.fit(x, y, epochs=2, batch_size=16, verbose=0)")
        keras_kernel.run(RUN_IN_THREAD)
    assert keras_kernel.value("[len(seen), seen[:2] == seen[2:]]") == [4, True]


@pytest.mark.soak
def test_a_model_of_keras_that_is_built_anew_does_not_take_the_weights(keras_kernel: Kernel) -> None:
    keras_kernel.run("context, model = begin(3)")
    keras_kernel.run("history = model.fit(x, y, epochs=1, batch_size=16, verbose=0)")
    assert "weights loaded" not in keras_kernel.run("context, model = begin(7)\nmodel.count_params()").text
    error = keras_kernel.run("history.load_into(model)", fails=True).error
    assert "the experiment's has 4 weights, of them inner/kernel:0 (4, 3), this one has 4 weights, of them" in error
    assert "experiment.top_checkpoint().load() makes the model as it was trained." in error
    assert keras_kernel.run("1 + 1").text == "2"
