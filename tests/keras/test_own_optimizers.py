"""Models that keep their optimizers themselves: what a checkpoint gives trains on, also when its files are gone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_runs import SEED, Trainings
from det_harness.frameworks.keras.harness import KerasHarness
from keras_generation import only_keras_2

from det_native.keras import FitCall, TFKerasNativeContext
from det_native.keras.context import seed_keras
from det_native.schema.environment import TrialEnvironment

pytestmark = [pytest.mark.slow, only_keras_2]

X = np.random.default_rng(1).normal(size=(40, 6)).astype("float32")
Y = X[:, :1] * 2


class TwoParts(tf.keras.Model):  # type: ignore[misc]  # TensorFlow has no types
    """Trains each of its layers with an optimizer of its own, as a GAN its two networks."""

    def __init__(self, optimizer: Any) -> None:
        super().__init__()
        self.first, self.second = tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)
        self.one, self.others = optimizer(0.01), {"second": optimizer(0.02)}

    def call(self, x: Any) -> Any:
        return self.second(self.first(x))

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_mean((self(x) - y) ** 2)
        for optimizer, part in ((self.one, self.first), (self.others["second"], self.second)):
            optimizer.apply_gradients(
                zip(tape.gradient(loss, part.trainable_weights), part.trainable_weights, strict=True)
            )
        return {"loss": loss}


def made(optimizer: Any) -> Any:
    tf.keras.utils.set_random_seed(SEED)
    return TwoParts(optimizer)


def compiled(model: Any) -> Any:
    model.compile()
    return model


OPTIMIZERS = {
    "new": tf.keras.optimizers.Adam,
    "older form": lambda rate: tf.keras.optimizers.legacy.Adam(rate),
    "older form without slots": lambda rate: tf.keras.optimizers.legacy.SGD(rate),
}


def fit(model: Any) -> Any:
    return model.fit(X, Y, batch_size=8, shuffle=False, verbose=0, epochs=1)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.long] * (kind != "new")) for kind in OPTIMIZERS]
)
def test_a_loaded_model_trains_on_with_the_state_of_its_optimizers(kind: str, tmp_path: Path) -> None:
    make = OPTIMIZERS[kind]
    trainings = Trainings(tmp_path, searcher={"max_length": {"epochs": 1}, "metric": "loss"}, records_per_epoch=40)

    def call(environment: TrialEnvironment) -> FitCall:
        taken: list[FitCall] = []
        context = TFKerasNativeContext(environment, on_fit=taken.append, role="worker")
        seed_keras(environment.trial_seed)
        fit(compiled(context.wrap_model(made(make))))
        return taken[0]

    run = trainings._run(call, None)
    expected = compiled(made(make))
    fit(expected)
    history = fit(expected).history
    folder = tmp_path / "files"
    shutil.copytree(tmp_path / "storage" / run.saved_at(5).uuid, folder)
    environment = TrialEnvironment(config=trainings.config, hparams={"global_batch_size": 8}, trial_seed=SEED)
    loaded = KerasHarness().load(call(environment), folder, environment)
    shutil.rmtree(folder)
    assert fit(loaded).history == history
    for mine, theirs in zip(loaded.get_weights(), expected.get_weights(), strict=True):
        assert np.array_equal(mine, theirs)
