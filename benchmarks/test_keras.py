"""Cost of one batch of ``fit`` on a wrapped Keras model over the plain ``fit``, once both are traced."""

from __future__ import annotations

import itertools
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from det_harness.controllers.keras import KerasController
from det_harness.local import run_local

from det_native.keras import FitCall, TFKerasNativeContext
from det_native.schema.environment import TrialEnvironment

EPOCHS, STEPS, BATCH = 6, 500, 32


class EpochClock(tf.keras.callbacks.Callback):
    """Takes the time at the end of each epoch; it asks for no batches, so that it costs none."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.times.append(time.perf_counter())

    @property
    def per_batch(self) -> float:
        """Seconds a batch in the middle one of the epochs, without the first: a fit has costs that no batch has."""
        return statistics.median(later - sooner for sooner, later in itertools.pairwise(self.times)) / STEPS


def _compiled() -> Any:
    """Return an MLP 64-64-10 with SGD."""
    tf.keras.utils.set_random_seed(0)
    layers = [tf.keras.layers.Dense(64, activation="relu", input_shape=(64,)), tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential(layers)
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


class LocalFit:
    """Takes a captured ``fit`` over and trains in this process, as a local run does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs = 0
        environment = TrialEnvironment(config={"checkpoint_policy": "none"}, hparams={}, trial_seed=0)
        self.context = TFKerasNativeContext(environment, on_fit=self._run, role="local")

    def _run(self, call: FitCall) -> Any:
        fills = call.configuration_fills()
        self._runs += 1
        config = {
            "checkpoint_policy": "none",
            "records_per_epoch": fills.get("records_per_epoch", 0),
            "searcher": {
                "name": "single",
                "metric": fills["searcher.metric"],
                "max_length": fills["searcher.max_length"],
            },
        }
        result = run_local(
            lambda services: KerasController(call, services),
            config=config,
            hparams={"global_batch_size": fills["hyperparameters.global_batch_size"]},
            trial_seed=0,
            directory=self._folder / str(self._runs),
            framework="keras",
        )
        assert len(result.reporter.training_rows) > 0
        return result.outcome.result


def _data() -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(BATCH * STEPS, 64)).astype("float32")
    return inputs, generator.integers(10, size=BATCH * STEPS)


def _per_batch(model: Any, data: tuple[Any, Any], check: tuple[Any, Any]) -> float:
    clock = EpochClock()
    model.fit(*data, batch_size=BATCH, epochs=EPOCHS, validation_data=check, callbacks=[clock], verbose=0)
    return clock.per_batch


def test_fit(paired: Any, tmp_path: Path) -> None:
    data = _data()
    check = data[0][:BATCH], data[1][:BATCH]
    plain = _compiled()
    wrapped = LocalFit(tmp_path).context.wrap_model(_compiled())
    for model in (plain, wrapped):  # traced
        _per_batch(model, data, check)
    paired(
        f"one batch of Keras fit, tiny MLP, {(EPOCHS - 1) * STEPS} batches of a warm fit, over the plain fit",
        lambda: _per_batch(wrapped, data, check),
        lambda: _per_batch(plain, data, check),
        goal=1.02,
        rounds=7,
        value=lambda result, _: float(result),
    )
