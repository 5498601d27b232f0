"""Keras 3 trains here, of the backend that this process has: each kind of data, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import det_native as det
from det_native.errors import CheckpointError, SignatureError, UnsupportedFeatureError
from det_native.keras.generations import BACKEND
from det_native.keras.generations.keras3 import class_weighting, metrics_given, weighted

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]

keras = tf.keras
RECORDS, STEPS = 44, 6
X = np.random.default_rng(1).normal(size=(RECORDS, 6)).astype("float32")
Y = X[:, :3].argmax(1)
CONFIG: dict[str, Any] = {
    "hyperparameters": {"global_batch_size": 8},
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"epochs": 2}},
    "records_per_epoch": RECORDS,
    "reproducibility": {"experiment_seed": 5},
}


def made(*more: Any) -> Any:
    return keras.Sequential([keras.Input((6,)), keras.layers.Dense(5, "relu"), keras.layers.Dropout(0.3), *more])


def compiled(model: Any, **given: Any) -> Any:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"], **given)
    return model


class Rows(keras.utils.PyDataset):  # type: ignore[misc]  # TensorFlow has no types
    """Batches of eight rows, made in two threads."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.epochs = 0

    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, number: int) -> Any:
        rows = slice(8 * number, 8 * number + 8)
        return X[rows], Y[rows]

    def on_epoch_end(self) -> None:
        self.epochs += 1


def generated() -> Any:
    while True:
        for number in range(STEPS):
            yield X[8 * number : 8 * number + 8], Y[8 * number : 8 * number + 8]


@pytest.mark.usefixtures("recorded")
def test_fit_trains_validates_and_comes_back(tmp_path: Path) -> None:
    context = det.experimental.keras.init({"reproducibility": {"experiment_seed": 5}}, local=True)
    model = compiled(context.wrap_model(made(keras.layers.Dense(3))))
    history = model.fit(X, Y, batch_size=8, epochs=3, validation_data=(X, Y), verbose=0)
    assert [len(history.history[name]) for name in ("loss", "accuracy", "val_loss", "val_accuracy")] == [3] * 4
    checkpoint = context.experiment.top_checkpoint()
    loaded = checkpoint.load()
    found = loaded.evaluate(X, Y, verbose=0, return_dict=True)
    assert found["loss"] == pytest.approx(min(history.history["val_loss"]), rel=1e-4)
    assert int(loaded.optimizer.iterations) == 3 * STEPS
    # Plain Keras reads the checkpoint, too.
    (whole,) = Path(checkpoint.download(tmp_path / "checkpoint")).rglob("model.keras")
    assert np.allclose(keras.models.load_model(whole).predict(X, verbose=0), loaded.predict(X, verbose=0), atol=1e-6)
    assert np.allclose(keras.models.load_model(checkpoint.path).predict(X), loaded.predict(X), atol=1e-6)
    loaded.fit(X, Y, verbose=0)  # it is plain Keras again


KINDS: dict[str, Callable[[], dict[str, Any]]] = {
    "PyDataset": lambda: {"x": Rows(workers=2), "validation_data": Rows()},
    "Dataset": lambda: {
        "x": tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(44).batch(8),
        "validation_data": (X, Y),
    },
    "generator": lambda: {
        "x": generated(),
        "steps_per_epoch": STEPS,
        "validation_data": generated(),
        "validation_steps": 2,
    },
    "weights": lambda: {"x": X, "y": Y, "sample_weight": np.ones(RECORDS), "batch_size": 8, "validation_split": 0.2},
    "classes": lambda: {"x": Rows(), "class_weight": {0: 1.0, 1: 2.0, 2: 0.5}, "validation_data": Rows()},
}


@pytest.mark.long
@pytest.mark.parametrize("kind", [each for each in KINDS if each != "PyDataset"])
def test_each_kind_of_data(kind: str) -> None:
    trained(kind)


def test_a_py_dataset_is_read_in_its_threads() -> None:
    trained("PyDataset")


def trained(kind: str) -> None:
    seen: list[int] = []
    context = det.experimental.keras.init(local=True)
    model = compiled(context.wrap_model(made(keras.layers.Dense(3))))
    note = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch))
    history = model.fit(**KINDS[kind](), epochs=2, verbose=0, callbacks=[note])
    steps = 5 if kind == "weights" else STEPS
    assert seen == [*range(steps)] * 2
    assert np.isfinite(history.history["val_loss"]).all()


class Digits(det.keras.TFKerasTrial):
    """A trial on arrays, which ends early."""

    def build_model(self) -> Any:
        return compiled(self.context.wrap_model(made(keras.layers.BatchNormalization(), keras.layers.Dense(3))))

    def build_training_data_loader(self) -> Any:
        return X, Y

    def build_validation_data_loader(self) -> Any:
        return X, Y

    def keras_callbacks(self) -> list[Any]:
        return [keras.callbacks.EarlyStopping("val_loss", min_delta=9.0, patience=1)]


@pytest.mark.usefixtures("recorded")
@pytest.mark.long
def test_a_trial_class_ends_by_its_callback_and_comes_back() -> None:
    config = {**CONFIG, "searcher": {**CONFIG["searcher"], "max_length": {"epochs": 5}}}
    config["min_validation_period"] = {"epochs": 1}
    experiment = det.experimental.create(Digits, config, local=True)
    assert len(experiment.history["val_loss"]) == 2
    loaded = experiment.top_checkpoint().load()
    assert loaded.evaluate(X, Y, verbose=0) is not None
    again = det.experimental.create(Digits, config, local=True)
    assert again.history["val_loss"] == experiment.history["val_loss"]


@pytest.mark.parametrize(
    ("more", "match"),
    [
        pytest.param(
            {"resources": {"slots_per_trial": 2}},
            r"slots_per_trial: 2 .*KERAS_BACKEND=tensorflow.*PyTorch",
            marks=pytest.mark.skipif(BACKEND == "tensorflow", reason="It does on TensorFlow."),
        ),
        ({"optimizations": {"aggregation_frequency": 2}}, "gradient_accumulation_steps=2"),
    ],
)
def test_what_keras_3_has_not_is_one_sentence(more: dict[str, Any], match: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=match) as refused:
        det.experimental.create(Digits, {**CONFIG, **more}, local=True)
    assert "\n" not in str(refused.value)


def test_arguments_that_keras_3_has_elsewhere() -> None:
    context = det.experimental.keras.init(local=True)
    model = compiled(context.wrap_model(made(keras.layers.Dense(3))))
    with pytest.raises(SignatureError, match="'workers' in Keras 3: give it to the PyDataset"):
        model.fit(Rows(), workers=2)
    model = compiled(context.wrap_model(made(keras.layers.Dense(3))), steps_per_execution=4)
    with pytest.raises(UnsupportedFeatureError, match=r"steps_per_execution=4\) does not divide the 6 batches"):
        model.fit(X, Y, batch_size=8, verbose=0)


def test_a_checkpoint_of_tf_keras_2_is_told(tmp_path: Path) -> None:
    from det_harness.frameworks.keras.keras3 import state
    from det_harness.trial import state_files

    state_files.dump(tmp_path, "training", {"format": 1, "progress": {}})
    with pytest.raises(CheckpointError, match="was written by Keras 2, and this Python has Keras 3"):
        state.load_built(made(), tmp_path, 1)


class TestInterface:
    """What ``generations/keras3.py`` asks of Keras."""

    def test_weights_of_classes(self) -> None:
        weights = {0: 1.0, 2: 3.0}
        assert weighted((X[:2], np.array([2, 1])), weights)[2].tolist() == [3.0, 1.0]
        assert weighted((X[:2], np.eye(3)[[2, 0]]), weights)[2].tolist() == [3.0, 1.0]
        rows = tf.data.Dataset.from_tensor_slices((X[:2], [[2], [0]])).batch(2).map(class_weighting(weights))
        assert next(iter(rows))[2].numpy().tolist() == [3.0, 1.0]

    def test_metrics_given(self) -> None:
        model = made(keras.layers.Dense(3))
        top = keras.metrics.SparseTopKCategoricalAccuracy(2, name="top")
        model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy", top], weighted_metrics=[])
        assert metrics_given(model) == ["accuracy", "top"]

    def test_the_backend_is_the_one_that_was_asked_for(self) -> None:
        import os

        assert os.environ.get("KERAS_BACKEND", "tensorflow") == BACKEND
