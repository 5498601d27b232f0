"""Searches of a notebook with ``local=True``: the same decisions as on the cluster, also of ``fit()`` and of loops."""

from __future__ import annotations

import pytest
from faults import Kernel

pytestmark = pytest.mark.slow

# Its error is known before: it hangs on what is drawn, and on nothing else.
SEARCHED = """
def searched(**searcher):
    settings = {"x": {"type": "double", "minval": 0, "maxval": 1}}
    searcher = {"metric": "error", "max_length": {"batches": 8}, "divisor": 2} | searcher
    return configuration(searcher=searcher, hyperparameters=settings, min_validation_period={"batches": 0})

def asha(metric="error"):
    named = {"name": "async_halving", "num_rungs": 2, "metric": metric}
    return searched(**named, max_trials=2, max_concurrent_trials=1)

def decided(experiment):
    return [[trial.hparams["x"], trial.detail().stages, str(trial.state)] for trial in experiment.trials]

def validated(experiment):
    return [[row["batch"] for row in trial.metrics("validation")] for trial in experiment.trials]
"""
FIT = """
context = det.experimental.pytorch.init(asha(), local=True)
model = context.wrap_model(torch.nn.Linear(6, 3))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.05))

def loader():
    x = torch.randn(40, 6, generator=torch.Generator().manual_seed(3))
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x[:, :3].argmax(1)), batch_size=8)

def train_batch(batch, epoch_idx, batch_idx):
    loss = torch.nn.functional.cross_entropy(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}

def evaluate_batch(batch):
    return {"error": context.get_hparam("x")}

model.x = context.get_hparam("x")
before = model.weight.detach().clone()
experiment = context.fit(loader(), loader(), train_batch=train_batch, evaluate_batch=evaluate_batch)
"""
LOOP = FIT.replace(
    "experiment = context.fit(loader(), loader(), train_batch=train_batch, evaluate_batch=evaluate_batch)",
    "for batch in context.train(loader(), validation_loader=loader(), evaluate_batch=evaluate_batch):\n"
    "    train_batch(batch, 0, 0)\n"
    "experiment = context.experiment",
)
KERAS = """
context = det.experimental.keras.init(asha(metric="val_error"), local=True)
layers = [tf.keras.Input((6,)), tf.keras.layers.Dense(3)]
model = context.wrap_model(tf.keras.Sequential(layers))

def error(true, predicted):
    return context.get_hparam("x") + 0 * tf.reduce_sum(predicted)

model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=[error])
experiment = model.fit(x, y, validation_data=(x, y))
"""


def check(kernel: Kernel, told: str) -> None:
    """Assert that the search of `experiment` came to its end, and that somebody was trained on where he was."""
    assert "The trials of this search have run in processes of their own" in told
    assert kernel.value("str(experiment.state)") == "Completed"
    decided = kernel.value("decided(experiment)")
    assert len(decided) == 2
    lengths = [stages for _, stages, _ in decided]
    assert sorted(map(len, lengths))[-1] == 2
    assert kernel.value("[trial.detail().batches for trial in experiment.trials]") == [each[-1] for each in lengths]
    validated = kernel.value("validated(experiment)")
    assert [rows[-1] for rows in validated] == [stages[-1] for stages in lengths]
    assert all(rows == sorted(set(rows)) for rows in validated)
    best = min(x for x, _, _ in decided)
    assert kernel.value("experiment.best_trial.hparams")["x"] == best


@pytest.mark.long
@pytest.mark.parametrize("cell", [FIT, pytest.param(LOOP, marks=pytest.mark.soak)], ids=["fit", "loop"])
def test_a_call_of_torch_is_searched_by_the_program(native_kernel: Kernel, cell: str) -> None:
    native_kernel.run(SEARCHED)
    told = native_kernel.run(cell)
    check(native_kernel, told.text)
    assert native_kernel.value("bool((model.weight == before).all())"), "the model of here is as it was"
    native_kernel.run("best = experiment.top_checkpoint().load()")
    assert native_kernel.value("best.x == experiment.best_trial.hparams['x']"), "the model is that of its trial"


@pytest.mark.long
def test_fit_of_keras_is_searched_by_the_program(keras_kernel: Kernel) -> None:
    keras_kernel.run(SEARCHED)
    told = keras_kernel.run(KERAS)
    check(keras_kernel, told.text)


@pytest.mark.long
def test_ctrl_c_ends_the_search_of_a_call_with_a_checkpoint(native_kernel: Kernel) -> None:
    kernel = native_kernel
    kernel.run(SEARCHED)
    slow = FIT.replace("asha()", 'asha(max_length={"batches": 1_000_000})').replace(
        "    context.backward(loss)\n",
        '    context.backward(loss)\n    if batch_idx == 20:\n        print("it trains", flush=True)\n',
    )
    kernel.run(
        "def asha(max_length):\n    named = {'name': 'async_halving', 'num_rungs': 2, 'metric': 'error'}\n"
        "    return searched(**named, max_trials=3, max_concurrent_trials=1, max_length=max_length)"
    )
    running = kernel.begin(slow)
    kernel.says(running, "it trains")
    kernel.interrupt()
    kernel.finish(running)
    assert "Interrupted: the training ends after this batch, with a checkpoint." in running.text
    assert kernel.value("[str(trial.state) for trial in experiment.trials]") == ["Stopped"]
    assert kernel.value("str(experiment.state)") == "Stopped"
    assert kernel.value("experiment.trials[0].detail().batches") >= 20
    assert kernel.value("len(experiment.trials[0].checkpoints)") == 1
