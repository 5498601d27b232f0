"""On a cluster: cells that need the weights wait for them, and have those that local training would have left."""

from __future__ import annotations

import pytest
from faults import Cluster, Gate, Kernel, running_kernel
from torch_program import CONFIG, FIT, TORCH

pytestmark = [pytest.mark.slow, pytest.mark.long]

LOOP = """
for inputs, targets in context.train(data, epochs=3):
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
"""
KERAS = """
import keras
import numpy as np
import det_native as det

x = np.linspace(-1, 1, 64 * 4).reshape(64, 4).astype("float32")
y = x.sum(1, keepdims=True)

def begin(**where):
    keras.utils.set_random_seed(1)
    context = det.experimental.keras.init({"reproducibility": {"experiment_seed": 1}}, **where)
    inputs = keras.Input((4,))
    inner = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model = context.wrap_model(keras.Model(inputs, keras.layers.Dense(1)(inner(inputs))))
    model.compile(keras.optimizers.Adam(0.1), "mse")
    return context, model, inner

def seen():
    return [float(model.evaluate(x, y, verbose=0)), inner.predict(x[:1], verbose=0).tolist(),
            int(model.optimizer.iterations.numpy())]
"""


@pytest.mark.parametrize("training", [FIT.format(""), pytest.param(LOOP, marks=pytest.mark.soak)])
def test_cells_below_have_the_weights_of_local_training(kernel: Kernel, training: str) -> None:
    kernel.run("context, model, optimizer, train_batch = begin(local=True)")
    kernel.run(training)
    local = kernel.value("[loss_here(), steps()]")
    kernel.run("context, model, optimizer, train_batch = begin()")
    begun = kernel.run(training)
    assert "weights loaded" not in begun.text
    below = kernel.run("print(loss_here())")
    assert "weights loaded into `model`" in below.text
    assert kernel.value("[loss_here(), steps()]") == local
    assert "weights loaded" not in kernel.run("print(loss_here())").text


def test_the_rest_of_the_same_cell_has_them_too(kernel: Kernel) -> None:
    kernel.run("context, model, optimizer, train_batch = begin(local=True)")
    kernel.run(FIT.format(""))
    local = kernel.value("loss_here()")
    kernel.run("context, model, optimizer, train_batch = begin()")
    ran = kernel.run(f"{FIT.format('')}\nprint('LOSS', loss_here())")
    assert float(ran.text.rpartition("LOSS")[2].partition("\n")[0]) == local
    assert "weights loaded into `model`" in ran.text


def test_a_handle_is_no_reason_to_wait(kernel: Kernel, gate: Gate) -> None:
    kernel.run(f"context, model, optimizer, train_batch = begin({gate.port})")
    kernel.run(f"{FIT.format('')}\nprint(context.experiment.id, history)")
    visitor = gate.next()
    assert kernel.value("context.experiment.id") == kernel.value("history.id")
    visitor.go()
    assert "weights loaded into `model`" in kernel.run("loss_here()").text


@pytest.mark.soak
def test_what_the_call_says_counts(kernel: Kernel, gate: Gate) -> None:
    kernel.run("context, model, optimizer, train_batch = begin()")
    assert "weights loaded into `model`" in kernel.run(FIT.format(", wait=True")).text
    kernel.run(f"context, model, optimizer, train_batch = begin({gate.port})")
    kernel.run(f"{FIT.format(', wait=False')}\nprint(model.weight.sum())")
    gate.next().go()
    assert "weights loaded into `model`" in kernel.run("loss_here()").text
    kernel.run("context, model, optimizer, train_batch = begin()")
    assert "wait must be True" in kernel.run(FIT.format(", wait=1"), fails=True).error


def test_ctrl_c_leaves_the_experiment_and_the_cell_alone(kernel: Kernel, gate: Gate) -> None:
    kernel.run(f"context, model, optimizer, train_batch = begin({gate.port})\nran = 0")
    kernel.run(FIT.format(""))
    visitor = gate.next()
    waiting = kernel.begin("ran += 1; loss = loss_here()")
    kernel.says(waiting, "whose weights `model` needs. To stop waiting, interrupt the cell")
    kernel.interrupt()
    ended = kernel.finish(waiting, fails=True)
    assert ended.text.endswith("No longer waiting for experiment " + kernel.value("str(history.id)") + ".")
    error = ended.error
    assert error.startswith("KeyboardInterrupt: Experiment ")
    assert "goes on. This cell has not run: run it again to wait again, or call det.forget(model)" in error
    assert kernel.value("[ran, history.state]") == [0, "Running"]
    visitor.go()
    assert "weights loaded into `model`" in kernel.run("ran += 1; loss = loss_here()").text
    assert kernel.value("[ran, history.state]") == [1, "Completed"]


@pytest.mark.soak
def test_ctrl_c_while_the_call_waits_ends_its_cell(kernel: Kernel, gate: Gate) -> None:
    kernel.run(f"context, model, optimizer, train_batch = begin({gate.port})\nran = 0")
    waiting = kernel.begin(f"{FIT.format('')}\nran = loss_here()")
    visitor = gate.next()
    kernel.interrupt()
    error = kernel.finish(waiting, fails=True).error
    assert "goes on. Run a cell that uses the model to wait again" in error
    assert kernel.value("[ran, context.experiment.state]") == [0, "Running"]
    visitor.go()
    assert "weights loaded into `model`" in kernel.run("loss_here()").text


def test_a_failure_is_told_once_where_the_weights_are_needed(kernel: Kernel) -> None:
    kernel.run("context, model, optimizer, train_batch = begin(bad=True)")
    kernel.run(FIT.format(""))
    error = kernel.run("reached = loss_here()", fails=True).error
    assert error.startswith("UserCodeError: Experiment ")
    assert "ValueError: no luck" in error
    assert "`model` keeps the weights that it has here: run this again" in error
    assert "det.forget(model), or with `weights: stay`" in error
    assert kernel.value("'reached' in globals()") is False
    kernel.run("reached = loss_here()")


@pytest.mark.soak
def test_a_stopped_experiment_is_told_once_with_its_best_checkpoint(kernel: Kernel, gate: Gate) -> None:
    kernel.run(f"context, model, optimizer, train_batch = begin({gate.port})")
    kernel.run(FIT.format(""))
    gate.next()
    kernel.run("history.kill()")
    error = kernel.run("loss_here()", fails=True).error
    assert error.startswith("ExperimentFailedError: Experiment ")
    assert "keeps the weights that it has here" in error
    kernel.run("loss_here()")


@pytest.mark.soak
def test_weights_that_were_set_by_hand_stay(kernel: Kernel, gate: Gate) -> None:
    kernel.run(f"context, model, optimizer, train_batch = begin({gate.port})")
    kernel.run(f"{FIT.format(', wait=False')}\ntorch.nn.init.zeros_(model.weight)")
    visitor = gate.next()
    assert kernel.value("model.weight.detach().abs().sum().item()") == 0
    visitor.go()


@pytest.mark.soak
def test_stay_in_the_configuration_waits_for_nothing(kernel: Kernel, gate: Gate) -> None:
    kernel.run("config['weights'] = 'stay'")
    kernel.run(f"context, model, optimizer, train_batch = begin({gate.port})")
    kernel.run(f"before = loss_here()\n{FIT.format('')}\nafter = loss_here()")
    visitor = gate.next()
    assert kernel.value("before == after == loss_here()")
    visitor.go()


@pytest.mark.soak
def test_models_of_one_loop_train_at_one_time(kernel: Kernel, gate: Gate) -> None:
    ran = kernel.run(
        f"""
        models, handles = [], []
        for number in range(2):
            context, model, optimizer, train_batch = begin({gate.port})
            models.append(model)
            handles.append(context.fit(data, train_batch=train_batch, epochs=1))
        """.replace("\n        ", "\n")
    )
    assert "weights loaded" not in ran.text
    for visitor in [gate.next(), gate.next()]:
        visitor.go()
    ran = kernel.run("total = sum(one.weight.sum().item() for one in models)")
    assert "weights loaded into `models[0]`" in ran.text
    assert "weights loaded into `model`" in ran.text
    assert kernel.value("[str(one).partition('(')[2] for one in handles]") == [
        "weights loaded into `models[0]`)",
        "weights loaded into `model`)",
    ]


def test_a_script_has_the_weights_behind_its_call(cluster: Cluster) -> None:
    script = f"{TORCH}{CONFIG}\ncontext, model, optimizer, train_batch = begin()\n{FIT.format('')}\nprint(steps())\n"
    assert "[12, 12]" in cluster.script(script)


@pytest.mark.soak
def test_keras_has_the_weights_in_parts_of_the_model_too(cluster: Cluster) -> None:
    fit = "history = model.fit(x, y, epochs=2, batch_size=16, verbose=0)"
    with running_kernel(cluster, "keras", KERAS) as kernel:
        kernel.run("context, model, inner = begin(local=True)")
        kernel.run(fit)
        local = kernel.value("seen()")
        kernel.run(fit)
        local_again = kernel.value("seen()")
        kernel.run("context, model, inner = begin()")
        assert "weights loaded" not in kernel.run(fit).text
        assert "weights loaded into `model`" in kernel.run("first = inner.predict(x[:1], verbose=0)").text
        assert kernel.value("seen()") == local
        assert kernel.value("first.tolist()") == local[1]
        again = kernel.run(f"{fit}\nprint(model.optimizer.iterations.numpy())")
        assert "weights loaded into `model`" in again.text
        assert kernel.value("seen()") == local_again


@pytest.mark.soak
def test_a_context_serves_the_next_training_after_a_cell_that_stays_behind(cluster: Cluster) -> None:
    fit = (
        "model = context.wrap_model(keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]))\n"
        "model.compile('sgd', 'mse')\nhistory = model.fit(x, y, epochs=1, batch_size=16, verbose=0)"
    )
    with running_kernel(cluster, "keras again", KERAS) as kernel:
        kernel.run("keras.utils.set_random_seed(1)\ncontext = det.experimental.keras.init()")
        kernel.run_slowly(fit)
        kernel.run("model.predict(x[:1], verbose=0)")
        kernel.run(fit)
        assert kernel.value("[row.note for row in history.report if row.what == 'context']") == []
        kernel.run("history.wait()")
        assert kernel.value("history.state") == "Completed"
