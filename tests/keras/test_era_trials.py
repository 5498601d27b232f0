"""Three trials as Determined's users wrote them, on real digits, each trained to a stated accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import det_native as det
from det_native.keras import SequenceAdapter, TFKerasTrial, TFKerasTrialContext

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]

DIGITS = load_digits()
X_TRAIN, X_VAL, Y_TRAIN, Y_VAL = train_test_split(
    (DIGITS.images / 16.0).astype("float32"),
    DIGITS.target.astype("int64"),
    test_size=0.2,
    random_state=0,
    stratify=DIGITS.target,
)
SMALLEST_ACCURACY = 0.95


@pytest.fixture(autouse=True)
def no_names() -> None:
    """No layer names of earlier models."""
    tf.keras.backend.clear_session()


def configuration(metric: str, epochs: int, **hparams: Any) -> dict[str, Any]:
    """Return the constants of a trial, as its const.yaml had them."""
    return {
        "description": "digits_tf_keras",
        "hyperparameters": {"global_batch_size": 32, "learning_rate": 0.003, **hparams},
        "records_per_epoch": len(X_TRAIN),
        "min_validation_period": {"epochs": epochs},
        "searcher": {
            "name": "single",
            "metric": metric,
            "smaller_is_better": False,
            "max_length": {"epochs": epochs},
        },
        "reproducibility": {"experiment_seed": 3},
    }


def trained(trial_class: type[TFKerasTrial], config: dict[str, Any]) -> Any:
    """Train a trial; return its best model, which has the accuracy that was reported and is stated."""
    experiment = det.experimental.create(trial_class, config, local=True)
    best = experiment.top_checkpoint()
    assert best.metrics[config["searcher"]["metric"]] > SMALLEST_ACCURACY
    return best.load()


class HalvesTrial(TFKerasTrial):
    """A functional model with a named input for each half of an image, and two outputs: the digit, and whether it is
    even.
    """

    def __init__(self, context: TFKerasTrialContext) -> None:
        self.context = context

    def build_model(self) -> tf.keras.models.Model:
        upper = tf.keras.Input(shape=(4, 8), name="upper")
        lower = tf.keras.Input(shape=(4, 8), name="lower")
        branches = []
        for part in (upper, lower):
            flat = tf.keras.layers.Flatten()(part)
            branches.append(tf.keras.layers.Dense(self.context.get_hparam("branch_units"), activation="relu")(flat))
        both = tf.keras.layers.Dense(64, activation="relu")(tf.keras.layers.concatenate(branches))
        outputs = [
            tf.keras.layers.Dense(10, activation="softmax", name="digit")(both),
            tf.keras.layers.Dense(1, activation="sigmoid", name="even")(both),
        ]
        model = self.context.wrap_model(tf.keras.Model(inputs=[upper, lower], outputs=outputs))
        model.compile(
            self.context.wrap_optimizer(tf.keras.optimizers.Adam(self.context.get_hparam("learning_rate"))),
            loss={"digit": "sparse_categorical_crossentropy", "even": "binary_crossentropy"},
            loss_weights={"digit": 1.0, "even": 0.5},
            metrics={"digit": ["accuracy"], "even": ["accuracy"]},
        )
        return model

    def build_training_data_loader(self) -> Any:
        return halves(X_TRAIN), targets(Y_TRAIN)

    def build_validation_data_loader(self) -> Any:
        return halves(X_VAL), targets(Y_VAL)

    def session_config(self) -> Any:
        return tf.compat.v1.ConfigProto(allow_soft_placement=True)


def halves(images: Any) -> dict[str, Any]:
    return {"upper": images[:, :4], "lower": images[:, 4:]}


def targets(digits: Any) -> dict[str, Any]:
    return {"digit": digits, "even": (digits % 2 == 0).astype("float32")}


def test_a_functional_model_with_several_inputs_and_outputs() -> None:
    model = trained(HalvesTrial, configuration("val_digit_accuracy", epochs=15, branch_units=32))
    digit, even = model.predict(halves(X_VAL), verbose=0)
    assert (digit.argmax(1) == Y_VAL).mean() > SMALLEST_ACCURACY
    assert ((even[:, 0] > 0.5) == (Y_VAL % 2 == 0)).mean() > SMALLEST_ACCURACY


class ShiftedDigits(tf.keras.utils.Sequence):  # type: ignore[misc]  # TensorFlow has no types
    """Batches of images that are moved about by up to a pixel, other ones in every epoch."""

    def __init__(self, images: Any, labels: Any, batch_size: int, seed: int) -> None:
        self.images, self.labels, self.batch_size, self.seed = images, labels, batch_size, seed
        self.epoch = 0

    def __len__(self) -> int:
        return int(np.ceil(len(self.images) / self.batch_size))

    def __getitem__(self, index: int) -> Any:
        rows = slice(index * self.batch_size, (index + 1) * self.batch_size)
        random = np.random.default_rng([self.seed, self.epoch, index])
        moves = random.integers(-1, 2, size=(len(self.images[rows]), 2))
        moved = [np.roll(image, move, axis=(0, 1)) for image, move in zip(self.images[rows], moves, strict=True)]
        return np.stack(moved)[..., None], self.labels[rows]

    def on_epoch_end(self) -> None:
        self.epoch += 1


class AugmentedTrial(TFKerasTrial):
    """A convolutional model, trained from a Sequence in two threads."""

    def __init__(self, context: TFKerasTrialContext) -> None:
        self.context = context

    def build_model(self) -> tf.keras.models.Model:
        model = tf.keras.models.Sequential()
        model.add(tf.keras.layers.Conv2D(32, (3, 3), padding="same", activation="relu", input_shape=(8, 8, 1)))
        model.add(tf.keras.layers.MaxPooling2D())
        model.add(tf.keras.layers.Conv2D(64, (3, 3), padding="same", activation="relu"))
        model.add(tf.keras.layers.Flatten())
        model.add(tf.keras.layers.Dropout(self.context.get_hparam("dropout")))
        model.add(tf.keras.layers.Dense(10, activation="softmax"))
        model = self.context.wrap_model(model)
        optimizer = tf.keras.optimizers.Adam(self.context.get_hparam("learning_rate"))
        model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    def build_training_data_loader(self) -> SequenceAdapter:
        seed, size = self.context.get_trial_seed(), self.context.get_per_slot_batch_size()
        return SequenceAdapter(ShiftedDigits(X_TRAIN, Y_TRAIN, size, seed), workers=2, use_multiprocessing=False)

    def build_validation_data_loader(self) -> Any:
        return X_VAL[..., None], Y_VAL


@pytest.mark.long
def test_a_sequence_with_augmentation() -> None:
    model = trained(AugmentedTrial, configuration("val_accuracy", epochs=10, dropout=0.3))
    assert model.evaluate(X_VAL[..., None], Y_VAL, verbose=0)[1] > SMALLEST_ACCURACY


class MixedModel(tf.keras.Model):  # type: ignore[misc]  # TensorFlow has no types
    """A model that is trained on mixtures of two records, by a step of its own."""

    def train_step(self, data: Any) -> Any:
        images, labels = data
        share = 0.85
        mixed = share * images + (1 - share) * tf.reverse(images, axis=[0])
        with tf.GradientTape() as tape:
            predicted = self(mixed, training=True)
            loss = share * self.compiled_loss(labels, predicted)
            loss += (1 - share) * self.compiled_loss(tf.reverse(labels, axis=[0]), predicted)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))  # noqa: B905 (TensorFlow's takes none)
        self.compiled_metrics.update_state(labels, predicted)
        norm = tf.linalg.global_norm(gradients)
        return {**{metric.name: metric.result() for metric in self.metrics}, "gradient_norm": norm}


class MixedTrial(TFKerasTrial):
    """A training step of the model's own, on a Dataset."""

    def __init__(self, context: TFKerasTrialContext) -> None:
        self.context = context

    def build_model(self) -> tf.keras.models.Model:
        inputs = tf.keras.Input(shape=(8, 8))
        hidden = tf.keras.layers.Dense(256, activation="relu")(tf.keras.layers.Flatten()(inputs))
        outputs = tf.keras.layers.Dense(10, activation="softmax")(hidden)
        model = self.context.wrap_model(MixedModel(inputs, outputs))
        optimizer = tf.keras.optimizers.Adam(self.context.get_hparam("learning_rate"))
        model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    def build_training_data_loader(self) -> tf.data.Dataset:
        dataset = self.context.wrap_dataset(tf.data.Dataset.from_tensor_slices((X_TRAIN, Y_TRAIN)))
        dataset = dataset.shuffle(len(X_TRAIN), seed=self.context.get_trial_seed())
        return dataset.batch(self.context.get_per_slot_batch_size())

    def build_validation_data_loader(self) -> tf.data.Dataset:
        return self.context.wrap_dataset(tf.data.Dataset.from_tensor_slices((X_VAL, Y_VAL))).batch(64)

    def keras_callbacks(self) -> list[tf.keras.callbacks.Callback]:
        return [tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.95)]


@pytest.mark.long
def test_a_training_step_of_its_own() -> None:
    model = trained(MixedTrial, configuration("val_accuracy", epochs=15))
    assert isinstance(model, MixedModel)
    assert model.evaluate(X_VAL, Y_VAL, verbose=0)[1] > SMALLEST_ACCURACY
    rows = det.last_experiment().trials[0].metrics("training")
    assert rows[-1].keys() >= {"loss", "accuracy", "gradient_norm"}
