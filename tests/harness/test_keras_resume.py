"""Continuation from a checkpoint: bit-equal to a run that was never interrupted, on CPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras_programs
import numpy as np
import pytest
import tensorflow as tf
from det_harness.frameworks.keras.harness import KerasHarness
from det_harness.frameworks.keras.model_state import load_into_model
from det_harness.trial.after_training import weights_in
from keras_programs import PROGRAMS, run
from keras_support import Session, digits, equal_weights, make_model

from det_native.errors import CheckpointCorruptError, CheckpointError
from det_native.keras import TFKerasNativeContext
from det_native.keras import callbacks as det_callbacks

pytestmark = pytest.mark.slow

#: In `make lanes`: the same goes on exactly in tests/keras too, in `make test`.
LONG = ("dataset", "validation_generator")
#: Programs of which `make test` has others that are like them.
LIKE = ("drawing_eagerly", "lazy_model_and_old_optimizer")


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Import what the whole module needs, once."""
    make_model().fit(*digits()[2:], verbose=0)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.soak] * (name in LIKE) + [pytest.mark.long] * (name in LONG))
        for name in PROGRAMS
    ],
)
def test_a_resumed_run_ends_as_the_uninterrupted_one(name: str, tmp_path: Path) -> None:
    _, whole = run(name, tmp_path)
    saved = [batch for batch in whole.folders.saved if batch < whole.outcome.batches]
    # In the middle of a later epoch; for arrays of the first one too.
    for batch in (saved[0], saved[-1]) if name == "arrays" else saved[-1:]:
        _, resumed = run(name, tmp_path, resume=batch)
        assert resumed.outcome.batches == whole.outcome.batches
        assert resumed.outcome.stopped == whole.outcome.stopped
        assert equal_weights(resumed.model, whole.model)
        assert resumed.history == whole.history
        rows = resumed.recorder.rows
        assert min(rows) == batch + 1
        assert all(whole.recorder.rows[number] == row for number, row in rows.items())
        later = [each for each in whole.recorder.validations if each[0] > batch]
        assert resumed.recorder.validations == later


@pytest.mark.long
def test_a_checkpoint_at_an_epochs_end_continues_with_the_next(tmp_path: Path) -> None:
    _, whole = run("arrays", tmp_path, every=20)
    assert whole.folders.saved[0] == 20
    _, resumed = run("arrays", tmp_path, resume=20, every=20)
    assert equal_weights(resumed.model, whole.model)
    assert resumed.history == whole.history


@pytest.mark.long
def test_a_checkpoint_before_the_last_validation_is_validated_after_a_restart(tmp_path: Path) -> None:
    _, whole = run("arrays", tmp_path)
    _, resumed = run("arrays", tmp_path, resume=whole.outcome.batches)
    assert resumed.recorder.rows == {}
    assert resumed.recorder.validations == whole.recorder.validations[-1:]
    assert resumed.history == whole.history


@pytest.mark.long
def test_a_stopped_run_continues_where_it_stopped(tmp_path: Path) -> None:
    _, whole = run("arrays", tmp_path / "whole")
    session = Session(tmp_path / "cut")
    session.stop_at(33)
    PROGRAMS["arrays"](session)
    assert session.folders.saved == [33]
    resumed = Session(tmp_path / "cut")
    resumed.folders.resume = 33
    model = PROGRAMS["arrays"](resumed)
    assert equal_weights(model, whole.model)
    assert resumed.runs[0].history == whole.history


@pytest.mark.parametrize("name", ["dataset", "drawing_eagerly"])
@pytest.mark.long
def test_a_killed_process_is_continued_by_a_new_one(name: str, tmp_path: Path) -> None:
    def process(kill_after: str, resume: str) -> int:
        here = Path(__file__).parent
        command = [sys.executable, keras_programs.__file__, name, str(tmp_path / "run"), kill_after, resume]
        environment = {**os.environ, "PYTHONPATH": str(here), "TF_CPP_MIN_LOG_LEVEL": "3"}
        return subprocess.run(command, env=environment, cwd=tmp_path, check=False, timeout=120).returncode

    (tmp_path / "run").mkdir()
    assert process("28", "") == -signal.SIGKILL
    saved = sorted(int(folder.name) for folder in (tmp_path / "run").iterdir() if folder.name.isdigit())
    assert saved[-1] == 28
    assert not (tmp_path / "run/weights.npz").exists()
    assert process("", "28") == 0
    _, whole = run(name, tmp_path / "whole")
    with np.load(tmp_path / "run/weights.npz") as weights:
        arrays = [weights[key] for key in weights.files]
    expected = whole.model.get_weights()
    assert all(np.array_equal(mine, other) for mine, other in zip(arrays, expected, strict=True))


@pytest.mark.long
def test_loading_gives_the_trained_model_as_plain_keras(tmp_path: Path) -> None:
    _, whole = run("lazy_model_and_old_optimizer", tmp_path)
    last = tmp_path / str(whole.folders.saved[-1])
    loaded: list[Any] = []

    def take(call: Any) -> None:
        loaded.append(KerasHarness().load(call, last, call.context.env))

    session = Session(tmp_path)
    session.context = TFKerasNativeContext(session.context.env, on_fit=take, role="load")
    PROGRAMS["lazy_model_and_old_optimizer"](session)
    (model,) = loaded
    x_val, y_val = digits()[2:]
    assert np.array_equal(model.predict(x_val, verbose=0), whole.model.predict(x_val, verbose=0))
    model.fit(x_val, y_val, verbose=0)
    assert len(loaded) == 1


@pytest.mark.long
def test_a_checkpoint_of_other_layers_is_refused(tmp_path: Path) -> None:
    import tensorflow as tf

    _, whole = run("arrays", tmp_path)
    session = Session(tmp_path)
    session.folders.resume = whole.folders.saved[0]
    other = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(20), tf.keras.layers.Dense(10)])
    other.compile("adam", "sparse_categorical_crossentropy")
    x, y, _, _ = digits()
    with pytest.raises(CheckpointError, match="does not fit the model"):
        session.context.wrap_model(other).fit(x[:640], y[:640], epochs=3, verbose=0)


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "5").mkdir()
    session = Session(tmp_path)
    session.folders.resume = 5
    x, y, _, _ = digits()
    with pytest.raises(CheckpointCorruptError, match="not a checkpoint of a Keras model"):
        session.context.wrap_model(make_model()).fit(x, y, verbose=0)


class Halving(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types
    """Halves the weights at the end of the training."""

    def on_train_end(self, logs: Any = None) -> None:
        self.model.set_weights([weight / 2 for weight in self.model.get_weights()])


def halved(directory: Path, epochs: int, resume: int | None = None) -> Any:
    session = Session(directory)
    session.folders.resume = resume
    model = session.context.wrap_model(make_model(dropout=0.3, optimizer=tf.keras.optimizers.Adam(0.01)))
    model.fit(*digits()[2:], batch_size=64, epochs=epochs, verbose=0, callbacks=[Halving()])
    return session.runs[-1]


@pytest.mark.long
def test_a_trial_goes_on_from_before_the_end_of_its_training_and_its_weights_are_those_after(tmp_path: Path) -> None:
    short = halved(tmp_path / "trial", 2)
    folder = tmp_path / "trial" / str(short.outcome.batches)
    assert weights_in(folder) == folder / "after_training"
    fresh = make_model(dropout=0.3)
    load_into_model(fresh, folder, 1)
    assert equal_weights(fresh, short.model)
    # Ended and started again, it ends as it did; with more to train, as one that never had an end there.
    again = halved(tmp_path / "trial", 2, resume=short.outcome.batches)
    assert equal_weights(again.model, short.model)
    longer = halved(tmp_path / "trial", 3, resume=short.outcome.batches)
    whole = halved(tmp_path / "whole", 3)
    assert equal_weights(longer.model, whole.model)
    assert not equal_weights(whole.model, short.model)


@pytest.mark.long
def test_means_that_an_optimizer_puts_into_the_model_at_the_end_are_those_that_are_loaded(tmp_path: Path) -> None:
    session = Session(tmp_path)
    optimizer = tf.keras.optimizers.Adam(0.01, use_ema=True)
    model = session.context.wrap_model(make_model(optimizer=optimizer))
    model.fit(*digits()[2:], batch_size=64, epochs=1, verbose=0)
    folder = tmp_path / str(session.runs[-1].outcome.batches)
    fresh = make_model(optimizer=tf.keras.optimizers.Adam(use_ema=True))
    load_into_model(fresh, folder, 1)
    assert equal_weights(fresh, model)


class Worse(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types
    """Makes the weights worse from epoch to epoch, so that the first ones stay the best."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.model.set_weights([weight * (3.0 if epoch else 1.0) for weight in self.model.get_weights()])


@pytest.mark.long
@pytest.mark.parametrize("moment", ["epoch", "validation", "end"])
def test_the_number_of_the_last_checkpoint_is_of_the_weights_that_early_stopping_has_put_back(
    tmp_path: Path, moment: str
) -> None:
    x, y, x_val, y_val = digits()
    session = Session(tmp_path)
    tests: list[int] = []
    kind = det_callbacks.EarlyStopping if moment == "validation" else tf.keras.callbacks.EarlyStopping
    stop = kind(patience=2, restore_best_weights=True)
    if moment == "end":
        stop = Halving()
    count = tf.keras.callbacks.LambdaCallback()
    count.on_test_begin = lambda logs=None: tests.append(1)
    model = session.context.wrap_model(make_model(optimizer=tf.keras.optimizers.SGD(1e-6)))
    data = {"validation_data": (x_val, y_val), "batch_size": 64, "verbose": 0}
    history = model.fit(x, y, epochs=4, callbacks=[Worse(), stop, count], **data)
    last = session.folders.saved[-1]
    metrics = session.folders.own_metrics[last]
    loss, accuracy = model.evaluate(x_val, y_val, verbose=0)
    assert metrics == pytest.approx({"val_loss": loss, "val_accuracy": accuracy})
    assert metrics["val_loss"] != pytest.approx(session.recorder.validations[-1][1]["val_loss"], rel=1e-3)
    fresh = make_model(optimizer=tf.keras.optimizers.SGD())
    load_into_model(fresh, tmp_path / str(last), 1)
    assert equal_weights(fresh, model)
    # The user's callbacks see what they see in plain Keras, and a plain fit() after it has its own validation data.
    assert len(tests) == len(history.history["val_loss"])
    assert not hasattr(model, "_eval_data_handler")


@pytest.mark.long
def test_weights_of_the_end_have_no_number_without_data_to_validate_them(tmp_path: Path) -> None:
    session = Session(tmp_path)
    model = session.context.wrap_model(make_model(optimizer=tf.keras.optimizers.Adam(0.01, use_ema=True)))
    model.fit(*digits()[2:], batch_size=64, epochs=1, verbose=0)
    assert list(session.folders.own_metrics.values()) == [{}]


@pytest.mark.long
def test_a_validation_generator_is_not_read_further_than_keras_reads_it(tmp_path: Path) -> None:
    x, y, x_val, y_val = digits()
    given: list[int] = []

    def batches() -> Iterator[Any]:
        while True:
            given.append(1)
            yield x_val[:32], y_val[:32]

    session = Session(tmp_path)
    model = session.context.wrap_model(make_model(optimizer=tf.keras.optimizers.Adam(0.01, use_ema=True)))
    model.fit(x, y, batch_size=64, epochs=2, validation_data=batches(), validation_steps=2, verbose=0)
    assert session.folders.own_metrics[session.folders.saved[-1]] == {}
    assert len(given) <= 5


@pytest.mark.long
def test_an_end_that_changes_nothing_leaves_nothing(tmp_path: Path) -> None:
    session = Session(tmp_path)
    stopping = tf.keras.callbacks.EarlyStopping("loss", patience=5)
    session.context.wrap_model(make_model()).fit(*digits()[2:], epochs=1, verbose=0, callbacks=[stopping])
    folder = tmp_path / str(session.runs[-1].outcome.batches)
    assert weights_in(folder) == folder
