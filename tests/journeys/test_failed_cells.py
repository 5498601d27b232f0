"""A cell that failed for one of the reasons of a first day, and was mended and run again, trains on the cluster.

Each notebook is typed as it comes; what the cluster trains is what the same cells train here.
"""

from __future__ import annotations

import pytest
from journey_kernel import Notebook
from saved_notebook import value

pytestmark = [pytest.mark.slow, pytest.mark.long]

IMPORTS = "import numpy as np\nimport tensorflow as tf\nimport det_native as det"
DATA = """
x = np.linspace(-1, 1, 128).reshape(64, 2).astype("float32")
y = x.sum(axis=1)
seeded = {"reproducibility": {"experiment_seed": 3}}
seen = []
"""
#: In a cell of its own, and it reads the name that only the cell that trains has.
CALLBACK = """
class Predicts(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        seen.append(model.predict(x[:2], verbose=0).shape)
"""
TRAIN = """
context = det.experimental.keras.init({init})
model = context.wrap_model(tf.keras.Sequential([tf.keras.layers.Input((2,)), tf.keras.layers.Dense({units})]))
model.compile({optimizer}, "mse")
history = model.fit(x, y, epochs=2, verbose=0, callbacks=[Predicts()])
"""


def train(init: str = "seeded", units: int = 1, optimizer: str = '"sgd"') -> str:
    return TRAIN.format(init=init, units=units, optimizer=optimizer)


@pytest.fixture(scope="module")
def prepared(notebook: Notebook) -> Notebook:
    """The cells above the one that trains."""
    for cell in (IMPORTS, DATA, CALLBACK):
        notebook.run(cell)
    return notebook


def trains_as_here(notebook: Notebook, source: str, cell: str) -> None:
    """Run a cell that trains on the cluster, and the same one here."""
    ran = notebook.run(source, cell=cell)
    assert "failed" not in ran.stderr
    there = value(notebook, "history.history['loss']")
    notebook.run(source.replace("init(seeded", "init(seeded, local=True"), cell=cell)
    assert there == pytest.approx(value(notebook, "history.history['loss']"))


@pytest.mark.parametrize(
    ("failed", "error"),
    [
        pytest.param(train() + "tf.keras.models.load_model('best.keras')", "OSError: ", id="behind the training"),
        pytest.param(train(optimizer='"sdg"'), "ValueError: Unknown optimizer", id="optimizer"),
        pytest.param(train(init='seeded, mode="clutser"'), "ArgumentError", id="init"),
        pytest.param(train().replace("model.fit(", "model.fti("), "AttributeError", id="a typo"),
        pytest.param(train().replace("epochs=2", "epochs=2.5"), "ArgumentError: ", id="fit"),
    ],
)
def test_a_cell_that_failed_and_was_mended_trains(prepared: Notebook, failed: str, error: str) -> None:
    ran = prepared.run(failed, cell=error, fails=True)
    assert ran.error.startswith(error)
    trains_as_here(prepared, train(), error)


def test_a_cell_that_was_too_large_to_send_trains(prepared: Notebook) -> None:
    with (prepared.folder / "recording.bin").open("wb") as file:
        file.truncate(200_000_000)
    source = train(init='seeded, context_dir="."')
    ran = prepared.run(source, cell="large", fails=True)
    assert ran.error.startswith("BundleTooLargeError: ")
    (prepared.folder / ".detignore").write_text("recording.bin\n")
    trains_as_here(prepared, source, "large")


def test_another_cell_trains_with_what_a_failed_one_imported_and_made(prepared: Notebook) -> None:
    prepared.run(
        "from tensorflow.keras import layers\nrates = [0.1]\nrates.append(0.2)\nprint(layers.Densee)", fails=True
    )
    source = train(optimizer="tf.keras.optimizers.SGD(rates[1])").replace("tf.keras.layers", "layers")
    trains_as_here(prepared, source, "other")
