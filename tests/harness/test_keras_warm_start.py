"""A trial of tf.keras that begins with the weights of another one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from keras_support import Session, arrays

from det_native.errors import CheckpointError

pytestmark = pytest.mark.slow

DATA = arrays()


class Source:
    """The last checkpoint of a session, as a warm start."""

    optimizers = False

    def __init__(self, session: Session) -> None:
        self._path = session.folders.directory / str(session.folders.saved[-1])

    @contextmanager
    def folder(self) -> Iterator[Path]:
        yield self._path


def made(optimizer: Any, width: int = 8) -> Any:
    tf.keras.utils.set_random_seed(1)
    features = DATA["x"].shape[1]
    layers = [tf.keras.layers.Dense(width, input_shape=(features,)), tf.keras.layers.Dropout(0.3)]
    model = tf.keras.Sequential([*layers, tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(10)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    return model


class Look(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Notes the weights, the optimizer's steps and rate, and the states of random layers before the first batch."""

    def on_train_begin(self, logs: Any = None) -> None:
        optimizer = self.model.optimizer
        self.weights = self.model.get_weights()
        self.iterations, self.rate = int(optimizer.iterations), float(optimizer.learning_rate)
        self.slots = [value.numpy() for value in _variables(optimizer) if value.shape.rank]
        self.drawn = [layer._random_generator._generator.state.numpy() for layer in self.model.layers[1:2]]


def _variables(optimizer: Any) -> list[Any]:
    return list(optimizer.variables() if callable(optimizer.variables) else optimizer.variables)


def fit(session: Session, model: Any, **arguments: Any) -> Look:
    look = Look()
    session.context.wrap_model(model).fit(**DATA, epochs=1, verbose=0, callbacks=[look], **arguments)
    return look


@pytest.mark.parametrize("older", [False, pytest.param(True, marks=pytest.mark.long)])
def test_it_takes_the_weights_and_nothing_else(tmp_path: Path, older: bool) -> None:
    adam = tf.keras.optimizers.legacy.Adam if older else tf.keras.optimizers.Adam
    first = Session(tmp_path / "first")
    fit(first, model := made(adam(0.01)))
    trained = [np.array(value) for value in model.get_weights()]
    fresh = fit(Session(tmp_path / "fresh"), made(adam(0.5)))
    second = Session(tmp_path / "second")
    second.warm_start = Source(first)
    look = fit(second, made(adam(0.5)))
    for found, expected, other in zip(look.weights, trained, fresh.weights, strict=True):
        assert np.array_equal(found, expected)
        assert not np.array_equal(found, other)
    assert (look.iterations, look.rate) == (0, 0.5)
    assert not any(slot.any() for slot in look.slots)
    assert all(np.array_equal(a, b) for a, b in zip(look.drawn, fresh.drawn, strict=True))
    assert min(second.recorder.rows) == 1


def test_weights_of_another_model_are_told(tmp_path: Path) -> None:
    first = Session(tmp_path / "first")
    fit(first, made("sgd"))
    second = Session(tmp_path / "second")
    second.warm_start = Source(first)
    with pytest.raises(CheckpointError, match="does not fit the model"):
        fit(second, made("sgd", width=9))
