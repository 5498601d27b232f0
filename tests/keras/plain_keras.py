"""Trainings in plain Keras and the same ones with det_native: python plain_keras.py plain|local; prints the losses."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import det_native as det

EPOCHS, RECORDS = 3, 90
X = np.random.default_rng(1).normal(size=(RECORDS, 6)).astype("float32")
Y = X[:, :3].argmax(1)
IMAGES = np.random.default_rng(2).normal(size=(RECORDS, 8, 8, 1)).astype("float32")


class Rows(tf.keras.utils.Sequence):  # type: ignore[misc]  # TensorFlow has no types
    """Batches with noise."""

    def __len__(self) -> int:
        return 9

    def __getitem__(self, number: int) -> Any:
        rows = slice(10 * number, 10 * number + 10)
        return X[rows], Y[rows]


def simple() -> Any:
    return tf.keras.Sequential([tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(3)])


def random_layers() -> Any:
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Dense(16, "relu"),
            layers.Dropout(0.5),
            layers.GaussianNoise(0.3),
            layers.Dense(16),
            layers.Dropout(0.3, seed=4),
            layers.Dropout(0.2),
            layers.Dense(3),
        ]
    )


def functional() -> Any:
    layers = tf.keras.layers
    inputs = tf.keras.Input((6,))
    hidden = layers.Dropout(0.4)(layers.Dense(8)(inputs))
    return tf.keras.Model(inputs, layers.Dense(3)(layers.Dropout(0.2)(hidden)))


def augmented() -> Any:
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.RandomFlip(),
            layers.RandomRotation(0.1),
            layers.Conv2D(4, 3, activation="relu"),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(3),
        ]
    )


def recurrent() -> Any:
    layers = tf.keras.layers
    return tf.keras.Sequential([layers.Reshape((6, 1)), layers.LSTM(4, dropout=0.2), layers.Dense(3)])


def dataset() -> dict[str, Any]:
    return {"x": tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(40).batch(16)}


def frozen() -> Any:
    """Have a trained base below a new head with dropout; its own dropout has a seed of its own."""
    layers = tf.keras.layers
    base = tf.keras.Sequential([tf.keras.Input((6,)), layers.Dense(8, "relu"), layers.Dropout(0.3, seed=4)])
    base.trainable = False
    inputs = tf.keras.Input((6,))
    hidden = layers.Dropout(0.3)(base(inputs))
    return tf.keras.Model(inputs, layers.Dense(3)(layers.Dropout(0.2)(hidden)))


ARRAYS: dict[str, Any] = {"x": X, "y": Y, "batch_size": 16}
KINDS: dict[str, tuple[Callable[[], Any], Callable[[], dict[str, Any]]]] = {
    "arrays": (simple, lambda: ARRAYS),
    "in order": (random_layers, lambda: {**ARRAYS, "shuffle": False}),
    "random layers": (random_layers, lambda: {**ARRAYS, "validation_data": (X, Y)}),
    "functional": (functional, lambda: {**ARRAYS, "validation_split": 0.2}),
    "augmented": (augmented, lambda: {**ARRAYS, "x": IMAGES}),
    "recurrent": (recurrent, lambda: ARRAYS),
    "weights": (functional, lambda: {**ARRAYS, "class_weight": {0: 1.0, 1: 2.0, 2: 0.5}}),
    "short epochs": (functional, lambda: {**ARRAYS, "steps_per_epoch": 2}),
    "dataset": (functional, dataset),
    "sequence": (functional, lambda: {"x": Rows()}),
    "after another": (functional, lambda: {"x": X, "y": Y}),
    "after what fit() builds": (simple, lambda: ARRAYS),
    "compiled anew": (frozen, lambda: ARRAYS),
    "fit again": (frozen, lambda: ARRAYS),
    "sequence in order": (functional, lambda: {"x": Rows(), "shuffle": False}),
}


def train(kind: str, how: str) -> dict[str, list[float]]:
    """Train, and return Keras's history."""
    make, data = KINDS[kind]
    context = det.experimental.keras.init({}, local=True, show="none") if how == "local" else None
    tf.keras.utils.set_random_seed(42)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def compiled(model: Any) -> Any:
        wrapped = model if context is None else context.wrap_model(model)
        wrapped.compile(tf.keras.optimizers.Adam(0.01), loss)
        return wrapped

    if kind == "after another":
        compiled(simple()).fit(X[:50], Y[:50], batch_size=25, verbose=0)
    if kind == "after what fit() builds":
        compiled(random_layers()).fit(X, Y, verbose=0)
    model = compiled(make())
    history = model.fit(**data(), epochs=EPOCHS, verbose=0).history
    if kind in ("compiled anew", "fit again"):
        first = history
        if kind == "compiled anew":
            for layer in model.layers:
                layer.trainable = True
            compiled(model)
        again = model.fit(**data(), epochs=EPOCHS + 2, initial_epoch=EPOCHS, verbose=0).history
        history = {name: [*first[name], *again[name]] for name in first}
    return {name: [float(value) for value in values] for name, values in history.items()}


if __name__ == "__main__":
    random.seed()
    chosen = sys.argv[2:] or list(KINDS)
    sys.stdout.write("LOSSES " + json.dumps({kind: train(kind, sys.argv[1]) for kind in chosen}) + "\n")
