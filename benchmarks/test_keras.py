"""Cost of one batch of ``fit`` on a wrapped Keras model over the plain ``fit``, once both are traced."""

from __future__ import annotations

import functools
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from det_harness.frameworks.keras.controller import KerasController
from rows_reporter import train_here

from det_native.keras import FitCall, TFKerasNativeContext
from det_native.schema.environment import TrialEnvironment

FITS, ROUNDS, STEPS, BATCH = 6, 50, 100, 32


class FitInTurns(tf.keras.callbacks.Callback):
    """A fit in a thread of its own, which does one epoch whenever it is asked to, and waits before the next.

    Of an epoch it takes the time of the batches; it asks for no batches, so that it costs none.

    Parameters
    ----------
    fit : callable
        Trains, with the callback that it is given.
    """

    def __init__(self, fit: Callable[[tf.keras.callbacks.Callback], Any]) -> None:
        super().__init__()
        self._asked = threading.Semaphore(0)
        self._answers: queue.SimpleQueue[float] = queue.SimpleQueue()
        self._begin = self._seconds = 0.0
        self._thread = threading.Thread(target=fit, args=(self,))
        self._thread.start()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch > 0:
            self._answers.put(self._seconds)  # only now: the end of the epoch before is over too
        self._asked.acquire()
        self._begin = time.perf_counter()

    def on_test_begin(self, logs: Any = None) -> None:
        self._seconds = time.perf_counter() - self._begin

    def on_train_end(self, logs: Any = None) -> None:
        self._answers.put(self._seconds)

    def epoch(self) -> float:
        """Let it do an epoch; return the seconds that each of its batches took."""
        self._asked.release()
        return self._answers.get(timeout=60) / STEPS

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join(60)


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
        result = train_here(
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


def test_fit(paired: Any, tmp_path: Path) -> None:
    # Several fits of each: two of the very same model differ by some hundredths from beginning to end.
    pairs = [pair for number in range(FITS) for pair in _in_turns(tmp_path / str(number), ours_first=number % 2 == 0)]
    paired.of("one batch of Keras fit, tiny MLP, over the plain fit", pairs, goal=1.02)


def _in_turns(folder: Path, *, ours_first: bool) -> list[tuple[float, float]]:
    """Train two new models epoch by epoch; return what a batch took in each epoch of ours and of the plain one."""
    data = _data()
    check = data[0][:BATCH], data[1][:BATCH]

    def fit(model: Any, callback: tf.keras.callbacks.Callback) -> None:
        model.fit(*data, batch_size=BATCH, epochs=ROUNDS + 2, validation_data=check, callbacks=[callback], verbose=0)

    models = {"ours": LocalFit(folder).context.wrap_model(_compiled()), "plain": _compiled()}
    order = list(models) if ours_first else list(models)[::-1]
    # Both in threads: what runs in the main thread of a test session is slower by some hundredths.
    fits = {name: FitInTurns(functools.partial(fit, models[name])) for name in order}
    seconds = [{name: fits[name].epoch() for name in order} for _ in range(ROUNDS + 2)]
    for each in fits.values():
        each.join()
    return [(one["ours"], one["plain"]) for one in seconds[2:]]  # the first two trace and warm up
