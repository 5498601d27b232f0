"""The metrics of a compiled model, told before it trains."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from det_native.keras.metrics import certain_metrics

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
