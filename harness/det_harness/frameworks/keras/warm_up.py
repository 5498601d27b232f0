"""What a worker with Keras does before it knows its job: the first training step imports much, so one is taken."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any

import numpy as np
import tensorflow as tf


def warm_up(device: str) -> None:
    """Take a training step, or what of one touches no GPU where `device` is ``"cuda"``; no trace of it is left."""
    _ = tf.keras.Model
    if device == "cuda":
        _step_in_graph()
    else:
        _fit_once()
        gc.collect()  # its model refers to itself, and a standby keeps for good what is there after this
    for name in ("det_native.keras.context", "det_harness.frameworks.keras.controller"):
        import_module(name)


def _fit_once() -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(2,))])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(np.zeros((2, 2)), np.zeros(2), epochs=1, verbose=0)
    # The user's first layer is called "dense" again, and the counters of seeds start afresh.
    tf.keras.backend.clear_session()
    tf.random.set_seed(0)


def _step_in_graph() -> None:
    """Import what a first training step imports; anything built eagerly would fix which GPUs this process sees."""
    with tf.Graph().as_default():
        layer = tf.keras.layers.Dense(2)
        loss = tf.reduce_mean(layer(tf.zeros((1, 2))))
        tf.gradients(loss, layer.trainable_variables)  # not a tape: that asks for the devices
        tf.keras.optimizers.Adam().build(layer.trainable_variables)
        tf.autograph.to_graph(_identity)


def _identity(value: Any) -> Any:
    return value
