"""What ``fit()`` returns on the cluster is the ``History`` of a local run: keys, order, values, and its use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from faults import Cluster, Kernel, running_kernel

pytestmark = [pytest.mark.slow, pytest.mark.long]

SETUP = """
import copy, pickle
import numpy as np, tensorflow as tf
import det_native as det
x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
y = (x.sum(1, keepdims=True) > 0).astype("float32")
"""
TRAIN = """
class Score(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        logs["val_f1"], logs["weight"] = 0.1 * epoch, np.float32(0.3)

def train(metric, searcher=(), more=(), **where):
    searcher = {"metric": metric, "smaller_is_better": False, **dict(searcher)}
    config = {"searcher": searcher, "reproducibility": {"experiment_seed": 1}}
    context = det.experimental.keras.init(config, show="none", **where)
    model = context.wrap_model(tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1, "sigmoid")]))
    metrics = [tf.keras.metrics.AUC(), tf.keras.metrics.F1Score(average=None)]
    model.compile("sgd", "binary_crossentropy", metrics=metrics)
    callbacks = [tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2), *more]
    history = model.fit(x, y, batch_size=16, epochs=5, initial_epoch=2, validation_split=0.25, shuffle=False,
        callbacks=callbacks)
    return context.experiment, model, history
"""


@pytest.fixture(scope="module")
def notebook(keras_cluster: Cluster) -> Iterator[Kernel]:
    """A kernel with the function that trains."""
    with running_kernel(keras_cluster, "histories", SETUP, TRAIN) as kernel:
        yield kernel


def test_the_handle_is_the_history_of_a_local_run(notebook: Kernel) -> None:
    notebook.run("tf.keras.backend.clear_session()\n_, _, here = train('val_f1', more=[Score()], local=True)")
    notebook.run("tf.keras.backend.clear_session()\nexperiment, model, there = train('val_f1', more=[Score()])")
    here, there = (notebook.value(f"repr([{name}.history, {name}.epoch, {name}.params])") for name in ("here", "there"))
    assert there == here, "names, order, types and every bit"
    assert "'val_f1': [0.2, 0.30000000000000004, 0.4]" in there
    assert notebook.value("there.epoch") == [2, 3, 4]
    assert notebook.value("there.model is model and there is experiment and copy.deepcopy([there])[0] is there")
    notebook.run("plain = pickle.loads(pickle.dumps(there))")
    assert notebook.value("type(plain) is type(here) and plain.model is None")
    assert notebook.value("repr([plain.history, plain.epoch, plain.params])") == here
    assert notebook.value("experiment.best_trial.best_validation") == 0.4
    rows = notebook.value("[experiment.metrics(kind) for kind in ('training', 'validation')]")
    names = [[sorted({"weight", "val_f1"} & row.keys()) for row in kind] for kind in rows]
    assert names == [[[], [], ["weight"]] * 3, [["val_f1"]] * 3]


def test_metrics_without_a_name_are_numbered_as_in_the_kernel(notebook: Kernel) -> None:
    notebook.run("tf.keras.backend.clear_session()\ntrain('val_auc', local=True)")
    notebook.run("experiment, _, history = train('val_auc_1')")
    assert notebook.value("[name for name in history.history if 'auc' in name]") == ["auc_1", "val_auc_1"]
    notebook.run("_, _, history = train('val_auc')")
    assert notebook.value("[name for name in history.history if 'auc' in name]") == ["auc", "val_auc"], "as asked for"
    assert notebook.value("history.history['val_auc_2'] == history.history['val_auc']")
    # Trials with other seeds than the notebook's make up the same names.
    notebook.run("found = train('val_auc_3', {'name': 'random', 'max_trials': 2})[0].wait()")
    assert notebook.value("[str(trial.state) for trial in found.trials]") == ["Completed"] * 2
