"""What reaches the training call on a worker is what the notebook had, or the difference is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import Cluster, Kernel, ended, running_kernel

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

IMPORTS = """
import random
import numpy as np
import tensorflow as tf
import det_native as det
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

digits = load_digits()
"""

SPLIT = """
x_train, x_test, y_train, y_test = train_test_split(digits.data / 16, digits.target, test_size=0.2)
"""

MODEL = """
model = tf.keras.Sequential([tf.keras.layers.Input((64,)), tf.keras.layers.Dense(10, "softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
"""

OF_THIS_PROCESS = """
import os
x_train = x_train + os.getpid() % 1000
"""

FIT = """
context = det.experimental.keras.init({"max_restarts": 0, **settings}, show="none", wait=False)
wrapped = context.wrap_model(model)
experiment = wrapped.fit(x_train, y_train, validation_data=(x_test, y_test), epochs=1, batch_size=64)
"""


@pytest.fixture
def kernel(keras_cluster: Cluster, tmp_path: Path) -> Iterator[Kernel]:
    """A kernel with nothing but the imports."""
    with running_kernel(keras_cluster, tmp_path.name, IMPORTS) as kernel:
        yield kernel


@pytest.fixture
def cluster(keras_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The master for Keras, on which nothing runs."""
    monkeypatch.setenv("DET_HOME", str(keras_cluster.home.path))
    with keras_cluster.clearing() as cleared:
        yield cleared


def _submit(kernel: Kernel, cluster: Cluster, settings: str = "{}"):
    return cluster.attach(kernel.submit(f"settings = {settings}\n{FIT}"))


@pytest.mark.long
def test_unseeded_draws_are_the_notebooks(kernel: Kernel, cluster: Cluster) -> None:
    kernel.run(SPLIT)
    kernel.run("np.random.rand(7); random.random(), tf.random.normal([2])")  # stays behind
    kernel.run(MODEL)
    experiment = _submit(kernel, cluster)
    ended(experiment, ExperimentState.COMPLETED)
    assert "in the notebook" not in str(experiment.logs())


@pytest.mark.long
def test_small_data_that_only_the_notebook_has_are_put_right(kernel: Kernel, cluster: Cluster) -> None:
    split = kernel.run(SPLIT).number
    kernel.run(MODEL)
    changed = kernel.run(OF_THIS_PROCESS).number
    experiment = _submit(kernel, cluster)
    ended(experiment, ExperimentState.COMPLETED)
    [row] = [row for row in experiment.report if row.how == "notebook's value"]
    assert (row.what, row.cell) == ("x_train (x)", f"cell [{split}], cell [{changed}]")
    assert row.note.startswith("(1437, 64) float64, mean")
    assert row.note.endswith("in the notebook; the notebook's is used")
    [line] = [line.text for line in experiment.logs() if "notebook's is used" in line.text]
    assert row.note in line


@pytest.mark.long
def test_large_data_that_only_the_notebook_has_are_an_error_whose_remedy_works(
    kernel: Kernel, cluster: Cluster
) -> None:
    split = kernel.run(SPLIT).number
    kernel.run(MODEL)
    changed = kernel.run(
        f"{OF_THIS_PROCESS}\nx_train, y_train = np.tile(x_train, (16, 1)), np.tile(y_train, 16)"
    ).number
    trial = ended(_submit(kernel, cluster), ExperimentState.ERROR)
    assert trial.error is not None
    assert trial.error.type == "InputDiffersError"
    assert trial.error.message.startswith("Inputs of the training call differ from the notebook:")
    assert "x_train (x): (22992, 64) float64, mean" in trial.error.message
    assert f"made in cell [{split}], cell [{changed}]" in trial.error.message
    assert "init(values=['x_train'])" in trial.error.message
    assert "y_train" not in trial.error.message
    kernel.run("experiment.wait()", fails=True)  # a later call of the model would raise it
    followed = FIT.replace('show="none"', "show='none', values=['x_train']")
    ended(cluster.attach(kernel.submit(f"settings = {{}}\n{followed}")), ExperimentState.COMPLETED)


@pytest.mark.soak
def test_a_difference_may_be_wanted(kernel: Kernel, cluster: Cluster) -> None:
    kernel.run(SPLIT)
    kernel.run(MODEL)
    kernel.run(f"{OF_THIS_PROCESS}\nx_train, y_train = np.tile(x_train, (16, 1)), np.tile(y_train, 16)")
    experiment = _submit(kernel, cluster, "{'proof': 'warn'}")
    ended(experiment, ExperimentState.COMPLETED)
    assert "x_train (x): (22992, 64) float64, mean" in str(experiment.logs())
    assert [row.what for row in experiment.report if row.how == "differs"] == ["x_train (x)"]
    ended(_submit(kernel, cluster, "{'proof': 'off'}"), ExperimentState.COMPLETED)


TEXTS = """
texts = np.array(["good film", "bad film", "so good", "so bad"] * 50)
labels = np.array([1, 0, 1, 0] * 50)
words = tf.keras.layers.TextVectorization(max_tokens=50, output_sequence_length=4)
words.adapt(texts)
inner = [words, tf.keras.layers.Embedding(50, 4), tf.keras.layers.GlobalAveragePooling1D()]
model = tf.keras.Sequential([tf.keras.Input((1,), dtype="string"), *inner, tf.keras.layers.Dense(1, "sigmoid")])
model.compile("adam", "binary_crossentropy")
pipeline = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(16)
validation = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(16)
"""


@pytest.mark.soak
def test_texts_and_tables_of_words_are_submitted(kernel: Kernel, cluster: Cluster) -> None:
    kernel.run(TEXTS)
    fit = FIT[: FIT.index("experiment =")] + "experiment = wrapped.fit(pipeline, validation_data=validation, epochs=1)"
    experiment = cluster.attach(kernel.submit(f"settings = {{}}\n{fit}"))
    ended(experiment, ExperimentState.COMPLETED)
    assert "compared" not in str(experiment.logs())


LOSS = """
factor = float(os.getpid() % 97)
def scaled(factor):
    def loss(wanted, found):
        return factor * tf.keras.losses.sparse_categorical_crossentropy(wanted, found)
    return loss
model.compile("adam", scaled(factor))
stops = tf.keras.callbacks.EarlyStopping(monitor="loss", patience=os.getpid() % 97)
"""


@pytest.mark.soak
def test_plain_settings_that_only_the_notebook_has_are_put_right(kernel: Kernel, cluster: Cluster) -> None:
    for cell in ("import os", SPLIT, MODEL, LOSS):
        kernel.run(cell)
    fit = FIT.replace("epochs=1", "callbacks=[stops], epochs=1")
    experiment = cluster.attach(kernel.submit(f"settings = {{}}\n{fit}"))
    ended(experiment, ExperimentState.COMPLETED)
    rows = [row.what for row in experiment.report if row.how == "notebook's value"]
    assert [row.partition(" ")[0] for row in rows] == ["stops.patience", "the"]
    assert "factor" in rows[1]


OTHER_LAYERS = """
model = tf.keras.Sequential([tf.keras.layers.Dense(len(os.getcwd()), name="a"), tf.keras.layers.Dense(10, "softmax")])
model.compile(tf.keras.optimizers.Adam(1 / len(os.getcwd())), "sparse_categorical_crossentropy")
"""


@pytest.mark.long
def test_other_layers_and_settings_are_put_right(kernel: Kernel, cluster: Cluster) -> None:
    for cell in ("import os", SPLIT, OTHER_LAYERS):
        kernel.run(cell)
    experiment = _submit(kernel, cluster)
    ended(experiment, ExperimentState.COMPLETED)
    rows = [row.what for row in experiment.report if row.how == "notebook's value"]
    assert any(".units (the model)" in row for row in rows)
    assert any("the optimizer" in row for row in rows)


@pytest.mark.soak
def test_a_model_travels_in_place_of_its_unseeded_training(kernel: Kernel, cluster: Cluster) -> None:
    kernel.run(SPLIT)
    kernel.run(MODEL)
    trained = kernel.run("model.fit(x_train, y_train, epochs=1, verbose=0)").number
    experiment = _submit(kernel, cluster)
    ended(experiment, ExperimentState.COMPLETED)
    [row] = [row for row in experiment.report if row.how == "value"]
    assert (row.what, row.cell) == ("model", f"[{trained}]")
    [row] = [row for row in experiment.report if row.how == "stays"]
    assert row.cell == f"[{trained}]"
    assert row.note.startswith("stays behind: trained while TensorFlow had no seed")
    assert "in the notebook" not in str(experiment.logs())
