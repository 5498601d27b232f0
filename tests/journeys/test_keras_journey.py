"""A user with a tf.keras model: tried here, trained here and on the cluster, in loops, and looked at afterwards."""

from __future__ import annotations

import ast
import base64
import re

import pytest
from journey_kernel import Notebook, Ran

from det_native.schema.home import Home

pytestmark = [pytest.mark.slow, pytest.mark.long]

DATA = """
import numpy as np
import tensorflow as tf
import det_native as det

tf.get_logger().setLevel("ERROR")  # many short fits in one kernel: TensorFlow has an opinion on that
generator = np.random.default_rng(0)
x = generator.normal(size=(96, 4)).astype("float32")
y = (x.sum(axis=1) > 0).astype("int64")
x_train, y_train, x_val, y_val = x[:64], y[:64], x[64:], y[64:]
"""

MODEL = """
def build(units):
    layers = tf.keras.layers
    return tf.keras.Sequential([layers.Input((4,)), layers.Dense(units, "relu"), layers.Dense(2)])

loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
"""

CONFIG = """
config = {
    "hyperparameters": {"units": 8, "global_batch_size": 16},
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"epochs": 3}},
    "records_per_epoch": 64,
    "reproducibility": {"experiment_seed": 3},
}
"""

PRINTING = """
import matplotlib.pyplot as plt
from IPython.display import display

print("printed by the cell")
display("displayed by the cell")
plt.plot([1, 2])
plt.show()
"""

BASELINE = """
baseline = build(8)
baseline.compile("sgd", loss)
baseline.fit(x_train, y_train, verbose=0)
"""

TRAIN = """
context = det.experimental.keras.init({init})
model = context.wrap_model(build(context.get_hparam("units")))
model.compile(tf.keras.optimizers.SGD(0.1), loss, metrics=["accuracy"])
{result} = model.fit(x_train, y_train, validation_data=(x_val, y_val){fit})
"""

KEYS = ["loss", "accuracy", "val_loss", "val_accuracy"]


def train(init: str = "config", result: str = "history", fit: str = ", verbose=0") -> str:
    """The same cell in every mode."""
    return TRAIN.format(init=init, result=result, fit=fit)


def sent(ran: Ran) -> set[int]:
    """Numbers of the cells that the report of a submit lists."""
    return {int(number) for number in re.findall(r"^cell \[(\d+)\] +runs again", ran.text, re.MULTILINE)}


def with_training(notebook: Notebook, upto: int | None = None) -> set[int]:
    """Numbers of the cells after the baseline, up to the last one or an earlier one: they train, or use what has."""
    return set(range(5, len(notebook.cells) if upto is None else upto))


def value(notebook: Notebook, expression: str) -> object:
    """The value of an expression in the kernel."""
    return ast.literal_eval(notebook.run(f"print(repr({expression}))").stdout)


@pytest.fixture(scope="module", autouse=True)
def prepared(notebook: Notebook) -> None:
    """The cells that every user has before the first training."""
    for source in (DATA, MODEL, CONFIG, BASELINE):
        notebook.run(source)


@pytest.fixture(scope="module")
def here(notebook: Notebook) -> Ran:
    """The cell that trains in the kernel."""
    return notebook.run(train("config, local=True") + "local = history\nlocal_experiment = context.experiment")


@pytest.fixture(scope="module")
def submitted(notebook: Notebook) -> Ran:
    """The cell that trains ``experiment`` on the cluster; the next one has waited for it."""
    ran = notebook.run(PRINTING + train(result="experiment"))
    assert not sent(ran) & with_training(notebook), "none of the trial runs above"
    notebook.run("experiment.wait(show='bar')")
    return ran


@pytest.mark.parametrize("mode", ["mode=det.experimental.LOCAL", "mode='local'", "mode='LOCAL'"])
def test_a_quick_check_is_one_batch_and_says_so(notebook: Notebook, mode: str) -> None:
    ran = notebook.run(train(f"config, {mode}"))
    assert "one minimal loop" in ran.stdout
    assert "The quick check passed." in ran.stdout
    assert not ran.stderr
    assert value(notebook, "{name: len(values) for name, values in history.history.items()}") == dict.fromkeys(KEYS, 1)


def test_local_and_cluster_give_the_same_numbers_by_the_same_line(
    notebook: Notebook, here: Ran, submitted: Ran
) -> None:
    assert not here.text, "a silent fit stays silent: nobody typed epochs or batch_size, so nothing is contradicted"
    assert value(notebook, "(local_experiment.state.name, local_experiment.history == local.history)") == (
        "COMPLETED",
        True,
    )
    data = notebook.run("local_experiment").shown[-1]
    assert re.match(r"Experiment \d+.*\n  state: Completed\n", data["text/plain"])
    assert {"text/html", "image/png"} < data.keys()
    assert {1, 2, 3} <= sent(submitted)
    assert not submitted.stderr
    assert value(notebook, "list(experiment.history)") == KEYS
    assert value(notebook, "{len(values) for values in experiment.history.values()}") == {3}
    assert value(notebook, "experiment.history == local.history"), "one seed, one result"
    assert value(notebook, "context.experiment is experiment")


def test_the_model_in_the_kernel_is_the_trained_one(notebook: Notebook, submitted: Ran) -> None:
    last = value(notebook, "experiment.history['val_loss'][-1]")
    assert value(notebook, "model.evaluate(x_val, y_val, verbose=0)[0]") == pytest.approx(last, rel=1e-5)


def test_the_best_checkpoint_comes_back_as_the_trained_model(notebook: Notebook, submitted: Ran) -> None:
    loaded = notebook.run("checkpoint = experiment.top_checkpoint()\nbest = checkpoint.load()")
    assert not loaded.outputs, "what the replayed cells print, display and draw does not show here"
    assert "printed by the cell" in notebook.run("experiment.logs()").text
    ran = notebook.run("print((best.evaluate(x_val, y_val, verbose=0), list(checkpoint.metrics.values())))")
    found, recorded = ast.literal_eval(ran.stdout)
    assert found == pytest.approx(recorded, rel=1e-6)
    assert value(notebook, "str(checkpoint.download('files'))") == "files"
    assert {"manifest.json", "rng.npz"} <= {path.name for path in (notebook.folder / "files").iterdir()}
    assert [path.name for path in notebook.folder.iterdir()] == ["files"], "loading leaves nothing behind"


@pytest.mark.soak
def test_init_in_the_older_order_and_with_arguments_that_win(notebook: Notebook) -> None:
    notebook.run(train("config, True", fit=", verbose=0"))
    assert value(notebook, "len(history.history['loss'])") == 3
    ran = notebook.run(train("config, local=True", fit=", verbose=0, epochs=2, batch_size=8"))
    [warning] = [line for line in ran.stderr.splitlines() if "Warning" in line]
    assert "The configuration wins" in warning
    assert "3 epochs in the configuration, 2 epochs in the call" in warning
    assert "16 in the configuration, 8 in the call" in warning
    assert value(notebook, "len(history.history['loss'])") == 3


def test_without_any_configuration_fit_says_it_all(notebook: Notebook) -> None:
    ran = notebook.run("""
context = det.experimental.keras.init()
model = context.wrap_model(build(4))
model.compile("sgd", loss)
bare = model.fit(x_train, y_train, epochs=2, batch_size=32, verbose=0, wait=False)
""")
    assert {1, 2} <= sent(ran)
    assert not sent(ran) & with_training(notebook)
    assert not ran.stderr
    notebook.run("bare.wait(show='bar')")
    assert value(notebook, "{name: len(values) for name, values in bare.history.items()}") == {"loss": 2}
    assert value(notebook, "(bare.config['searcher']['metric'], bare.config['records_per_epoch'])") == ("loss", 64)


SHORT = """
single = {"name": "single", "metric": "val_loss", "max_length": {"batches": 2}}
short = {**config, "searcher": single, "hyperparameters": {"units": 2, "global_batch_size": 32}}
"""

LOOP = """
experiments = {}
for rate in [0.01, 0.1, 0.5]:
    context = det.experimental.keras.init({**short, "name": f"rate {rate}"})
    model = context.wrap_model(build(context.get_hparam("units")))
    model.compile(tf.keras.optimizers.SGD(rate), loss)
    experiments[rate] = model.fit(x_train, y_train, validation_data=(x_val, y_val), verbose=0)
"""

BY_FUNCTION = """
def run(rate):
    context = det.experimental.keras.init({**short, "name": f"run {rate}"})
    model = context.wrap_model(build(context.get_hparam("units")))
    model.compile(tf.keras.optimizers.SGD(rate), loss)
    return model.fit(x_train, y_train, validation_data=(x_val, y_val), verbose=0)

experiments = {rate: run(rate) for rate in (0.01, 0.5)}
"""

RESULTS = """
for experiment in experiments.values():
    experiment.wait()

def rate_of(experiment):
    return round(float(experiment.top_checkpoint().load().optimizer.learning_rate.numpy()), 6)
"""

RATES = "[(rate, e.name, rate_of(e)) for rate, e in experiments.items()]"
LOSSES = "[e.history['val_loss'] for e in experiments.values()]"


@pytest.mark.soak
def test_a_loop_in_a_cell_makes_an_experiment_of_each_turn(notebook: Notebook) -> None:
    notebook.run(SHORT)
    short = len(notebook.cells)
    notebook.run(LOOP, cell="loop")
    notebook.run(RESULTS)
    assert value(notebook, RATES) == [(rate, f"rate {rate}", rate) for rate in (0.01, 0.1, 0.5)]
    by_loop = value(notebook, LOSSES)
    # The same cell, edited into a function that init() and fit() are called in, and run again.
    ran = notebook.run(BY_FUNCTION, cell="loop")
    assert {1, 2, 3, short} <= sent(ran)
    assert not sent(ran) & with_training(notebook, short)
    assert short + 1 not in sent(ran), "the loop that this cell was before"
    notebook.run(RESULTS)
    assert value(notebook, RATES) == [(rate, f"run {rate}", rate) for rate in (0.01, 0.5)]
    assert isinstance(by_loop, list)
    assert value(notebook, LOSSES) == [by_loop[0], by_loop[2]], "the same rate gives the same numbers, loop or function"
    assert by_loop[0] != by_loop[1] != by_loop[2]


def test_what_is_shown_stays_in_the_saved_notebook(notebook: Notebook, submitted: Ran) -> None:
    data = notebook.run("experiment").shown[-1]
    assert re.search(r"Experiment \d+", data["text/plain"])
    assert "state: Completed" in data["text/plain"]
    assert "<script" not in data["text/html"]
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    trial = notebook.run("experiment.trials[0]").shown[-1]
    assert {"text/plain", "text/html", "image/png"} <= trial.keys()
    assert notebook.run("experiment.plot('loss')").shown[-1]["image/png"]


def _is_bar(data: dict[str, str]) -> bool:
    return "progressbar" in data.get("text/html", "")


def test_a_progress_bar_reads_well_without_widgets(notebook: Notebook, submitted: Ran) -> None:
    bars = [data["text/plain"] for ran in notebook.cells for data in ran.shown if _is_bar(data)]
    assert bars
    for bar in bars:
        assert re.fullmatch(r"Experiment \d+: 100% completed, .*loss \d.*", bar), bar
    assert not any("\r" in ran.stderr for ran in notebook.cells)


def test_no_output_holds_the_token(notebook: Notebook, at_home: Home) -> None:
    token = at_home.token.read_text().strip()
    assert len(token) > 20
    assert token not in str(notebook.document())


INTERRUPTED = """
class Slowly(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch < 2:
            print("an epoch begins", flush=True)

endless = {**config["searcher"], "max_length": {"epochs": 100000}}
context = det.experimental.keras.init({**config, "searcher": endless}, local=True)
model = context.wrap_model(build(8))
model.compile("sgd", loss)
stopped = model.fit(x_train, y_train, validation_data=(x_val, y_val), verbose=0, callbacks=[Slowly()])
"""


def test_the_stop_button_ends_a_local_fit_with_its_history(notebook: Notebook) -> None:
    seen: list[str] = []

    def stop(text: str) -> None:
        seen.append(text)
        if "".join(seen).count("an epoch begins") == 2 and "an epoch begins" in text:
            notebook.interrupt()

    ran = notebook.run(INTERRUPTED, watch=stop)
    assert "Interrupted: the training ends after this batch, with a checkpoint." in ran.stdout
    assert value(notebook, "len(stopped.history['loss']) >= 1")
    assert value(notebook, "context.experiment.state.name") == "CANCELED"
    ran = notebook.run("context.experiment.top_checkpoint().load().predict(x_val, verbose=0).shape")
    assert "(32, 2)" in ran.text
    assert value(notebook, "1 + 1") == 2
