"""On a cluster: a training call waits, and the next statement is as in the plain notebook."""

from __future__ import annotations

import pytest
from faults import Cluster, Gate, Kernel, running_kernel
from torch_program import CONFIG, FIT, TORCH

pytestmark = pytest.mark.slow

LOOP = """
for inputs, targets in context.train(data, epochs=3{}):
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
"""
BEGIN = "context, model, optimizer, train_batch = begin({})"
SEEN = "[loss_here(), steps()]"
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


@pytest.mark.parametrize("training", [FIT, pytest.param(LOOP, marks=pytest.mark.long)])
def test_the_next_statement_has_the_weights_of_local_training(kernel: Kernel, training: str) -> None:
    kernel.run(BEGIN.format("local=True"))
    kernel.run(training.format(""))
    local = kernel.value(SEEN)
    kernel.run(BEGIN.format(""))
    ran = kernel.run(f"{training.format('')}\nimport json\nprint('SEEN', json.dumps({SEEN}))")
    assert f"SEEN {local!s}" in ran.text
    assert kernel.value("context.experiment.state") == "Completed"


@pytest.mark.parametrize(
    ("where", "said"),
    [(FIT, ", wait=False"), pytest.param(LOOP, ", wait=False", marks=pytest.mark.long), (FIT, "")],
    ids=["fit", "loop", "init"],
)
def test_a_call_that_does_not_wait_returns_at_once(kernel: Kernel, gate: Gate, where: str, said: str) -> None:
    init = f"{gate.port}{'' if said else ', wait=False'}"
    if where is LOOP:
        where = LOOP.replace("    loss", f"    gate({gate.port})\n    loss", 1).replace("epochs=3", "epochs=1")
    kernel.run(BEGIN.format(init))
    kernel.run(f"before = loss_here()\n{where.format(said)}")
    visitor = gate.next()
    assert kernel.value("[before == loss_here(), context.experiment.state]") == [True, "Running"]
    waiting = kernel.begin("after = (context.experiment.wait(), loss_here())[1]")
    visitor.go()
    for _ in range(0 if where is FIT else 3):
        gate.next().go()
    kernel.finish(waiting)
    assert kernel.value("before > after")


def test_trainings_run_side_by_side(kernel: Kernel, gate: Gate) -> None:
    kernel.run(
        f"""
models, handles = [], []
for number in range(2):
    context, model, optimizer, train_batch = begin({gate.port})
    models.append(model)
    handles.append(context.fit(data, train_batch=train_batch, epochs=1, wait=False))
bad = begin(bad=True)[0]
before = [one.weight.sum().item() for one in models]
"""
    )
    visitors = [gate.next(), gate.next()]
    waiting = kernel.begin("det.wait(handles)")
    for visitor in visitors:
        visitor.go()
    kernel.finish(waiting)
    assert kernel.value("[old != one.weight.sum().item() for old, one in zip(before, models)]") == [True, True]
    error = kernel.run("det.wait([handles, 3])", fails=True).error
    assert error.startswith("ArgumentError: det.wait() takes experiments, not 3")


def test_a_call_waits_for_an_earlier_training_of_its_model(kernel: Kernel, gate: Gate) -> None:
    again = "history = context.fit(data, train_batch=train_batch, epochs=1)"
    kernel.run(BEGIN.format("local=True"))
    kernel.run(FIT.format(""))
    kernel.run(again)
    local = kernel.value(SEEN)
    kernel.run(BEGIN.format(gate.port))
    kernel.run(f"{FIT.format(', wait=False')}\nfirst = history.id")
    visitor = gate.next()
    waiting = kernel.begin(again)
    kernel.says(waiting, "This call goes on from experiment ")
    visitor.go()
    gate.next().go()
    kernel.finish(waiting)
    assert kernel.value(SEEN) == local


@pytest.mark.long
def test_the_first_failure_is_raised_once_all_have_ended(kernel: Kernel) -> None:
    kernel.run(BEGIN.format("bad=True"))
    kernel.run(f"{FIT.format(', wait=False')}\nhandles = [history]")
    kernel.run(BEGIN.format(""))
    kernel.run(f"before = loss_here()\n{FIT.format(', wait=False')}\nhandles.append(history)")
    error = kernel.run("det.wait(handles)", fails=True).error
    assert error.startswith("UserCodeError: Experiment ")
    assert kernel.value("before > loss_here()")


def test_ctrl_c_leaves_the_training_running(kernel: Kernel, gate: Gate) -> None:
    kernel.run(f"{BEGIN.format(gate.port)}\nran, before = 0, loss_here()")
    waiting = kernel.begin(f"{FIT.format('')}\nran = 1")
    visitor = gate.next()
    kernel.shows(waiting, "Experiment")
    kernel.interrupt()
    error = kernel.finish(waiting, fails=True).error
    assert error.startswith("KeyboardInterrupt: Experiment ")
    assert error.endswith("goes on. det.last_experiment().wait() waits for its end and brings its result.")
    assert kernel.value("[ran, context.experiment.state, before == loss_here()]") == [0, "Running", True]
    waiting = kernel.begin("det.last_experiment().wait()")
    visitor.go()
    kernel.finish(waiting)
    assert kernel.value("before > loss_here()")


def test_a_failure_is_raised_and_changes_nothing(kernel: Kernel) -> None:
    kernel.run(f"{BEGIN.format('bad=True')}\nbefore = loss_here()")
    error = kernel.run(f"{FIT.format('')}\nreached = 1", fails=True).error
    assert error.startswith("UserCodeError: Experiment ")
    assert "ValueError: no luck" in error
    assert "The model stays as it was here. The best checkpoint is " in error
    assert kernel.value("['reached' in globals(), before == loss_here()]") == [False, True]


def test_a_script_has_the_weights_behind_its_call(cluster: Cluster) -> None:
    script = f"{TORCH}{CONFIG}\n{BEGIN.format('')}\n{FIT.format('')}\nprint(steps())\n"
    assert "[12, 12]" in cluster.script(script)


def test_arguments_that_contradict_each_other_are_said(kernel: Kernel) -> None:
    error = kernel.run(BEGIN.format("local=True, wait=False"), fails=True).error
    assert error.startswith("ArgumentError: local=True and wait=False contradict each other")
    assert "wait must be True" in kernel.run(BEGIN.format("wait=1"), fails=True).error
    kernel.run("config['weights'] = 'stay'")
    assert "'stay' was removed. A call with wait=False" in kernel.run(BEGIN.format(""), fails=True).error


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
        ran = kernel.run(f"{fit}\nprint(model.history is history)")
        assert "True" in ran.text
        assert kernel.value("seen()") == local
        kernel.run(fit)
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
        assert kernel.value("history.state") == "Completed"
