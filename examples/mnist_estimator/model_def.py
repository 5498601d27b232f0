"""Handwritten digits, classified by an estimator of its own ``model_fn``.

The directory is written as for Determined: ``det experiment create const.yaml .`` trains it. Its digits are those of
scikit-learn, 1797 images of 8 x 8 pixels, so nothing has to be fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from determined.estimator import EstimatorTrial, EstimatorTrialContext, RunHook
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SIDE, CLASSES = 8, 10


def load() -> dict[str, tuple[Any, Any]]:
    """Return images and labels for training and for validation."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(images, labels.astype(np.int64), test_size=0.2, random_state=0)
    return {"train": (train_x, train_y), "validation": (test_x, test_y)}


class Notes(RunHook):
    """Writes into each checkpoint how much of the training it has seen."""

    def __init__(self, context: EstimatorTrialContext) -> None:
        self._context = context
        self._batches = 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._batches += 1

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        with open(f"{checkpoint_dir}/notes.txt", "w", encoding="utf-8") as notes:
            notes.write(
                f"{self._batches} batches in this run, learning rate {self._context.get_hparam('learning_rate')}\n"
            )


class MNistTrial(EstimatorTrial):
    """A small convolutional network."""

    def __init__(self, context: EstimatorTrialContext) -> None:
        self.context = context
        self.digits = load()

    def model_fn(self, features: Any, labels: Any, mode: str) -> tf.estimator.EstimatorSpec:
        """Return the network, with what it is trained and measured by."""
        hparam = self.context.get_hparam
        training = mode == tf.estimator.ModeKeys.TRAIN
        layers = tf.keras.layers
        network = tf.keras.Sequential(
            [
                layers.Reshape((SIDE, SIDE, 1)),
                layers.Conv2D(hparam("n_filters1"), 3, activation="relu", padding="same"),
                layers.MaxPooling2D(2),
                layers.Conv2D(hparam("n_filters2"), 3, activation="relu", padding="same"),
                layers.Flatten(),
                layers.Dropout(hparam("dropout")),
                layers.Dense(CLASSES),
            ]
        )
        logits = network(features["image"], training=training)
        classes = tf.argmax(logits, axis=1)
        predictions = {"class": classes, "probabilities": tf.nn.softmax(logits)}
        if mode == tf.estimator.ModeKeys.PREDICT:
            served = {"serving_default": tf.estimator.export.PredictOutput(predictions)}
            return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=served)
        loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
        if training:
            optimizer = self.context.wrap_optimizer(tf.compat.v1.train.AdamOptimizer(hparam("learning_rate")))
            step = optimizer.minimize(loss, global_step=tf.compat.v1.train.get_global_step())
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)
        worst = self.context.experimental.make_metric([classes, labels], worst_digit, np.float32)
        metrics = {"accuracy": tf.compat.v1.metrics.accuracy(labels, classes), "worst_digit": worst}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

    def build_estimator(self) -> tf.estimator.Estimator:
        return tf.estimator.Estimator(model_fn=self.model_fn, model_dir="estimator")

    def input_fn(self, part: str) -> Callable[[], tf.data.Dataset]:
        """Return what makes the Dataset of a part of the digits."""

        def make() -> tf.data.Dataset:
            images, labels = self.digits[part]
            dataset = self.context.wrap_dataset(tf.data.Dataset.from_tensor_slices(({"image": images}, labels)))
            if part == "train":
                dataset = dataset.shuffle(len(labels))
            return dataset.batch(self.context.get_per_slot_batch_size())

        return make

    def build_train_spec(self) -> tf.estimator.TrainSpec:
        return tf.estimator.TrainSpec(self.input_fn("train"), hooks=[Notes(self.context)])

    def build_validation_spec(self) -> tf.estimator.EvalSpec:
        return tf.estimator.EvalSpec(self.input_fn("validation"), steps=None)

    def build_serving_input_receiver_fns(self) -> dict[str, Any]:
        images = tf.compat.v1.placeholder(tf.float32, [None, SIDE * SIDE], name="image")
        return {"digits": tf.estimator.export.build_raw_serving_input_receiver_fn({"image": images})}


def worst_digit(batches: list[Any]) -> float:
    """Return the accuracy of the digit that is recognised worst, over all batches of an evaluation."""
    classes, labels = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    return float(min(np.mean(classes[labels == digit] == digit) for digit in np.unique(labels)))
