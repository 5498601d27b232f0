"""What a worker with Keras imports before it knows its job. No layer is made: TensorFlow would start threads for it."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

import tensorflow as tf

# What else a first training step imports.
_OF_A_STEP = (
    "keras.src.engine.base_layer_v1",
    "tensorflow.python.data.ops.flat_map_op",
    "tensorflow.python.data.ops.zip_op",
)


def warm_up(device: str) -> None:
    """Import what a first training step needs; where `device` is ``"cuda"``, prepare what of one touches no GPU."""
    _ = tf.keras.Model
    for name in ("det_native.keras.context", "det_harness.frameworks.keras.controller"):
        import_module(name)
    for name in _OF_A_STEP:
        with suppress(ImportError):  # another version has it elsewhere: the step imports it
            import_module(name)
    if device == "cuda":
        _step_in_graph()


def _step_in_graph() -> None:
    """Take a step; anything built eagerly would fix which GPUs this process sees."""
    with tf.Graph().as_default():
        layer = tf.keras.layers.Dense(2)
        loss = tf.reduce_mean(layer(tf.zeros((1, 2))))
        tf.gradients(loss, layer.trainable_variables)  # not a tape: that asks for the devices
        tf.keras.optimizers.Adam().build(layer.trainable_variables)
        tf.autograph.to_graph(_identity)


def _identity(value: Any) -> Any:
    return value
