"""The metrics of a compiled model, told before it trains."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import det_native as det
from det_native.errors import TrialDefinitionError
from det_native.keras.metrics import certain_metrics
from det_native.past_history import MetricsByEpoch

pytestmark = pytest.mark.slow


def model(*outputs: int) -> Any:
    inputs = tf.keras.Input((3,))
    return tf.keras.Model(inputs, [tf.keras.layers.Dense(units)(inputs) for units in outputs or (1,)])


def own_metric(targets: Any, predictions: Any) -> Any:
    return tf.reduce_mean(predictions - targets)


class OwnStep(tf.keras.Model):
    def test_step(self, data: Any) -> dict[str, Any]:
        return {"own": tf.constant(1.0)}


def test_names_are_those_that_keras_reports() -> None:
    made = model()
    metrics = ["mae", own_metric, tf.keras.metrics.AUC(name="area")]
    made.compile("sgd", "mse", metrics=metrics, weighted_metrics=["accuracy"])
    found = made.evaluate(tf.ones((4, 3)), tf.ones((4, 1)), return_dict=True, verbose=0)
    assert set(certain_metrics(made) or ()) == set(found)


def test_nothing_is_said_where_only_training_can_tell() -> None:
    several, numbered = model(1, 2), model()
    several.compile("sgd", "mse", metrics=["mae"])
    numbered.compile("sgd", "mse", metrics=["AUC"])
    inputs = tf.keras.Input((3,))
    stepping = OwnStep(inputs, tf.keras.layers.Dense(1)(inputs))
    stepping.compile("sgd", "mse")
    added = model()
    added.add_metric(added.output, name="added", aggregation="mean")
    added.compile("sgd", "mse")
    unbuilt = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    unbuilt.compile("sgd", "mse")
    assert [certain_metrics(each) for each in (several, numbered, stepping, added, unbuilt)] == [None] * 5


X = np.random.default_rng(0).normal(size=(32, 3)).astype("float32")
Y = (X.sum(1) > 0).astype("float32")


@pytest.fixture
def home(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of the test's own, and no names of earlier metrics."""
    monkeypatch.setenv("DET_HOME", str(tmp_path))
    tf.keras.backend.clear_session()


def run_cell(metric: str = "val_loss", metrics: Any = None, callbacks: Any = (), outputs: int = 1) -> Any:
    """Do what a cell does that makes a model, its metrics and trains."""
    config = {"searcher": {"metric": metric, "smaller_is_better": False}}
    context = det.experimental.keras.init(config, local=True, show="none")
    inputs = tf.keras.Input((3,))
    heads = [tf.keras.layers.Dense(1, "sigmoid", name=f"head{number}")(inputs) for number in range(outputs)]
    wrapped = context.wrap_model(tf.keras.Model(inputs, heads if outputs > 1 else heads[0]))
    made = [tf.keras.metrics.AUC() for _ in range(outputs)] if metrics is None else metrics()
    given = {f"head{number}": metric for number, metric in enumerate(made)} if outputs > 1 else made
    wrapped.compile("sgd", "binary_crossentropy", metrics=given)
    targets = [Y] * outputs if outputs > 1 else Y
    data = {"validation_data": (X, targets), "batch_size": 16, "epochs": 3, "verbose": 0}
    return wrapped.fit(X, targets, callbacks=list(callbacks), **data)


class BestArea(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types
    """Reads a metric in its own code."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[float] = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.read.append(logs["val_auc"])


@pytest.mark.usefixtures("home")
def test_a_cell_with_a_metric_that_nobody_has_named_runs_again_and_again() -> None:
    for _ in range(3):
        history = run_cell("val_auc").history
        assert [name for name in history if "auc" in name] == ["auc", "val_auc"]


@pytest.mark.long
@pytest.mark.usefixtures("home")
def test_what_callbacks_monitor_and_read_is_there_in_each_run_of_a_cell() -> None:
    for _ in range(2):
        stopping, reading = tf.keras.callbacks.EarlyStopping("val_auc", mode="max", min_delta=9), BestArea()
        history = run_cell(callbacks=[stopping, reading])
        assert history.epoch == [0, 1], "stopped after an epoch that was not better"
        assert reading.read == history.history["val_auc"]


@pytest.mark.long
@pytest.mark.usefixtures("home")
def test_several_metrics_of_a_kind_are_numbered_as_in_a_new_process() -> None:
    areas = tf.keras.metrics.AUC
    for _ in range(2):
        history = run_cell("val_auc_1", lambda: [areas(), areas(curve="PR")]).history
        assert [name for name in history if "auc" in name] == ["auc", "auc_1", "val_auc", "val_auc_1"]
        assert history["auc"] != history["auc_1"]


@pytest.mark.long
@pytest.mark.usefixtures("home")
def test_metrics_of_several_outputs_have_the_names_that_are_asked_for() -> None:
    for _ in range(2):
        history = run_cell("val_head1_auc_1", outputs=2).history
        assert [name for name in history if "auc" in name and "val" not in name] == ["head0_auc", "head1_auc_1"]


@pytest.mark.long
@pytest.mark.usefixtures("home")
def test_what_nobody_asks_for_has_the_name_of_keras_and_is_found_by_any_number() -> None:
    run_cell()
    history = run_cell().history
    assert [name for name in history if "auc" in name] == ["auc_1", "val_auc_1"]
    assert history["val_auc"] == history.get("val_auc_7") == history["val_auc_1"]
    with pytest.raises(KeyError):
        history["area"]
    assert type(pickle.loads(pickle.dumps(history))) is dict


@pytest.mark.usefixtures("home")
def test_names_that_were_given_stay() -> None:
    with pytest.raises(TrialDefinitionError, match="val_area"):
        run_cell("val_auc", lambda: [tf.keras.metrics.AUC(name="area")])


def test_of_several_numbers_none_is_guessed() -> None:
    history = MetricsByEpoch({"auc_1": [0.1], "auc_2": [0.2]})
    with pytest.raises(KeyError):
        history["auc"]
    assert history.get("auc") is None
