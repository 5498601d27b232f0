"""A trial of Keras 3 on some slots, of some kind of data: ``python keras3_slots_program.py <data> <slots>``.

It writes the weights, and the metrics of the validations, into the working directory.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import det_native as det

keras = tf.keras
RECORDS = 44
X = np.random.default_rng(1).normal(size=(RECORDS, 6)).astype("float32")
Y = X[:, :3].argmax(1)
CONFIG: dict[str, Any] = {
    "hyperparameters": {"global_batch_size": 8},
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"epochs": 3}},
    "records_per_epoch": RECORDS,
    "reproducibility": {"experiment_seed": 5},
    "min_validation_period": {"epochs": 1},
}


class Rows(keras.utils.PyDataset):  # type: ignore[misc]  # TensorFlow has no types
    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def __len__(self) -> int:
        return -(-RECORDS // self._size)

    def __getitem__(self, number: int) -> Any:
        rows = slice(self._size * number, self._size * (number + 1))
        return X[rows], Y[rows]


class Digits(det.keras.TFKerasTrial):
    def __init__(self, context: Any) -> None:
        self.context = context

    def build_model(self) -> Any:
        keras.utils.set_random_seed(3)
        layers = [keras.layers.Dense(5, "relu"), keras.layers.Embedding(4, 2), keras.layers.Flatten()]
        numbers = keras.layers.Lambda(lambda values: tf.cast(tf.clip_by_value(values, 0.0, 3.0), tf.int32))
        model = self.context.wrap_model(
            keras.Sequential([keras.Input((6,)), layers[0], numbers, *layers[1:], keras.layers.Dense(3)])
            if self.context.get_hparam("data") == "sparse"
            else keras.Sequential([keras.Input((6,)), layers[0], keras.layers.Dense(3)])
        )
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.Adam(0.01, clipnorm=0.5), loss, metrics=["accuracy"])
        return model

    def _data(self) -> Any:
        kind = self.context.get_hparam("data")
        size = self.context.get_per_slot_batch_size()
        if kind == "dataset":
            return self.context.wrap_dataset(tf.data.Dataset.from_tensor_slices((X, Y))).batch(size)
        return Rows(size) if kind == "sequence" else (X, Y)

    def build_training_data_loader(self) -> Any:
        self.context.configure_fit(shuffle=False, verbose=0)
        return self._data()

    def build_validation_data_loader(self) -> Any:
        return self._data()


def trained(data: str, **more: Any) -> Any:
    """Return the weights, and the metrics of the validations."""
    hparams = {"global_batch_size": 8, "data": data}
    experiment = det.experimental.create(Digits, {**CONFIG, "hyperparameters": hparams, **more}, local=True)
    [trial] = experiment.trials
    assert trial.state == "Completed"
    return experiment.top_checkpoint().load().get_weights(), trial.metrics("validation")


if __name__ == "__main__":
    found = trained(sys.argv[1], resources={"slots_per_trial": int(sys.argv[2])})
    Path("found.pkl").write_bytes(pickle.dumps(found))
