"""``optimizations.mixed_precision`` for Keras: policies of layers, and the scale of the loss in checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import det_native as det
from det_native.keras import TFKerasTrial

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]

X = np.random.default_rng(1).normal(size=(24, 6)).astype("float32")
Y = (X[:, 0] > 0).astype("float32")
CONFIG: dict[str, Any] = {
    "hyperparameters": {"global_batch_size": 8},
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 5}},
    "records_per_epoch": 24,
    "reproducibility": {"experiment_seed": 5},
}


@pytest.fixture(autouse=True)
def policy_before() -> Iterator[None]:
    """After the test, the policy that was there before."""
    yield
    tf.keras.mixed_precision.set_global_policy("float32")


class Small(TFKerasTrial):
    """A small model."""

    def build_model(self) -> Any:
        layers = [tf.keras.Input((6,)), tf.keras.layers.Dense(4, "relu"), tf.keras.layers.Dense(1, dtype="float32")]
        model = self.context.wrap_model(tf.keras.Sequential(layers))
        model.compile(tf.keras.optimizers.SGD(0.1), tf.keras.losses.BinaryCrossentropy(from_logits=True))
        return model

    def build_training_data_loader(self) -> Any:
        return X, Y

    def build_validation_data_loader(self) -> Any:
        return X, Y


def precise(asked: str) -> dict[str, Any]:
    """A configuration with a precision."""
    return {**CONFIG, "optimizations": {"mixed_precision": asked}}


@pytest.mark.parametrize(
    ("asked", "policy"), [("O1", "mixed_float16"), ("O2", "mixed_float16"), ("mixed_bfloat16", "mixed_bfloat16")]
)
def test_layers_have_the_policy_and_the_program_keeps_its_own(asked: str, policy: str) -> None:
    model = det.experimental.create(Small, precise(asked), local=True).top_checkpoint().load()
    assert model.layers[0].dtype_policy.name == policy
    assert model.layers[0].kernel.dtype == tf.float32
    scaled = isinstance(model.optimizer, tf.keras.mixed_precision.LossScaleOptimizer)
    assert scaled == (policy == "mixed_float16")
    assert tf.keras.mixed_precision.global_policy().name == "float32"


def test_the_scale_of_the_loss_is_part_of_a_checkpoint() -> None:
    class Scaled(Small):
        def build_model(self) -> Any:
            model = super().build_model()
            inner = tf.keras.optimizers.SGD(0.1)
            scaled = tf.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=4.0, dynamic_growth_steps=2)
            model.compile(scaled, tf.keras.losses.BinaryCrossentropy(from_logits=True))
            return model

    model = det.experimental.create(Scaled, precise("O1"), local=True).top_checkpoint().load()
    assert float(model.optimizer.loss_scale) == 4.0 * 2**2  # after 5 batches
    assert int(model.optimizer.dynamic_counter) == 1


def test_it_holds_from_init_to_the_next_one() -> None:
    det.experimental.keras.init(precise("O1"), local=True)
    assert tf.keras.mixed_precision.global_policy().name == "mixed_float16"
    det.experimental.keras.init(precise("mixed_bfloat16"), local=True)
    assert tf.keras.mixed_precision.global_policy().name == "mixed_bfloat16"
    det.experimental.keras.init(CONFIG, local=True)
    assert tf.keras.mixed_precision.global_policy().name == "float32"
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")  # the user's own, which the configuration leaves
    det.experimental.keras.init(CONFIG, local=True)
    assert tf.keras.mixed_precision.global_policy().name == "mixed_bfloat16"
