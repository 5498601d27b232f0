"""What callbacks keep in attributes and files: after a restart in another folder as if there had been none."""

from __future__ import annotations

import collections
import csv
import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_runs import Run, Trainings, equal
from keras_generation import only_keras_2

from det_native.keras.generations import NUMBER

pytestmark = pytest.mark.slow


class Row(dict[str, Any]):
    """An object of a class of the user's."""


class Keeping(tf.keras.callbacks.Callback):
    """Keeps what callbacks keep, of every kind."""

    def __init__(self, other: Any) -> None:
        super().__init__()
        self.other = other
        self.average = tf.keras.metrics.Mean()
        self.numbers = itertools.count()
        self.seen: dict[str, list[float]] = collections.defaultdict(list)
        self.rows: list[Row] = []
        self.losses = self.seen["loss"]
        self.steps = tf.Variable(0)
        self.last: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        self.path = os.path.abspath("own.csv")
        self.file = open(self.path, "w")  # noqa: SIM115 - as users do
        self.writer = csv.writer(self.file)
        self.writer.writerow(["number", "loss"])
        self.shadow = [tf.Variable(weight) for weight in self.model.get_weights()]

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        number = next(self.numbers)
        self.writer.writerow([number, logs["loss"]])
        self.average.update_state(logs["loss"])
        self.seen["loss"].append(logs["loss"])
        self.rows.append(Row(number=number))
        self.steps.assign_add(1)
        self.last = tf.constant(logs["loss"])
        self.layer = self.model.layers[number % 2]
        self.model.optimizer.steps = getattr(self.model.optimizer, "steps", 0) + 1
        for mean, weight in zip(self.shadow, self.model.get_weights(), strict=True):
            mean.assign(0.9 * mean + 0.1 * weight)

    def on_train_end(self, logs: Any = None) -> None:
        self.file.close()

    def state(self) -> Any:
        """Return all that is to be the same."""
        shadow = [mean.numpy().tolist() for mean in self.shadow]
        counted = [next(self.numbers), int(self.steps), float(self.average.result()), float(self.last)]
        counted.append(self.model.optimizer.steps)
        return counted, shadow, dict(self.seen), self.rows, self.layer.name, type(self.rows[-1])


def callbacks() -> list[Any]:
    """Return callbacks whose state, or whose files, would not survive by themselves."""
    of_keras = tf.keras.callbacks
    log = open("log.txt", "w")  # noqa: SIM115 - opened where the program begins, as Keras's documentation does
    waiting = tf.io.gfile.GFile("waiting.txt", "w")
    stopping = of_keras.EarlyStopping("val_loss", min_delta=9.0, patience=3, restore_best_weights=True)
    return [
        stopping,
        of_keras.ReduceLROnPlateau("val_loss", min_delta=9.0, patience=1, factor=0.5),
        of_keras.ModelCheckpoint("models/best.keras", save_best_only=True),
        of_keras.CSVLogger("log.csv"),
        of_keras.TensorBoard("events"),
        of_keras.LambdaCallback(
            on_epoch_end=lambda epoch, logs: log.write(f"{epoch} {logs['loss']}\n"),
            on_train_end=lambda logs: log.close(),
        ),
        of_keras.LambdaCallback(
            on_epoch_end=lambda epoch, logs: waiting.write(f"{epoch}\n"), on_train_end=lambda logs: waiting.close()
        ),
        Keeping(stopping),
    ]


# With Keras 3's TensorFlow, what a GFile of TensorFlow buffers is not there when the checkpoint is taken.
TEXTS = ("log.csv", "log.txt", "own.csv", *(("waiting.txt",) if NUMBER == 2 else ()))


def assert_same(resumed: Run, whole: Run, state: Any) -> None:
    """Check that a continued run ended as the whole one."""
    assert equal(resumed.model, whole.model)
    for name in TEXTS:
        assert (resumed.work / name).read_text() == (whole.work / name).read_text(), name
    best = [tf.keras.models.load_model(run.work / "models/best.keras").get_weights() for run in (resumed, whole)]
    assert all(np.array_equal(*pair) for pair in zip(*best, strict=True))
    keeping = resumed.callbacks[-1]
    assert keeping.state() == state
    assert keeping.path == str(resumed.work / "own.csv")
    assert keeping.other is resumed.callbacks[0]
    assert keeping.layer in resumed.model.layers
    assert resumed.callbacks[0].best_epoch == 0
    assert (resumed.callbacks[0].stopped_epoch, resumed.schedule.progress.ended) == (3, True)


def test_a_run_that_continues_ends_as_one_that_was_never_interrupted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    longer = {"searcher": {"max_length": {"epochs": 6}, "metric": "val_loss"}}
    training = Trainings(tmp_path, rate=0.3, min_checkpoint_period={"batches": 12}, **longer)
    whole = training.native(callbacks)
    state = whole.callbacks[-1].state()
    assert len((whole.work / "log.csv").read_text().splitlines()) == 5
    assert len((whole.work / "own.csv").read_text().splitlines()) == 21
    assert_same(training.native(callbacks, resume=whole.saved_at(12)), whole, state)  # amid the third epoch
    # What TensorFlow says when Python frees what other tests have left, is not of this training.
    messages = [record.getMessage() for record in caplog.records if not record.name.startswith("tensorflow")]
    assert not any("survive" in line or "restored" in line for line in messages)


class Counting(tf.keras.callbacks.Callback):
    """Keeps a counter on the optimizer."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.model.optimizer.noted = getattr(self.model.optimizer, "noted", 0) + 1


@only_keras_2
def test_what_gathers_gradients_stays_with_its_process(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    training = Trainings(tmp_path, min_checkpoint_period={"batches": 12}, optimizations={"aggregation_frequency": 2})
    whole = training.native(lambda: [Counting()])
    resumed = training.native(lambda: [Counting()], resume=whole.saved_at(12))
    assert equal(resumed.model, whole.model)
    assert (resumed.model.optimizer.noted, whole.model.optimizer.noted) == (20, 20)
    assert not any("restarted" in message or "stay" in message for message in caplog.messages)


@pytest.mark.long
def test_a_run_continues_from_a_checkpoint_of_a_continued_run(tmp_path: Path) -> None:
    longer = {"searcher": {"max_length": {"epochs": 6}, "metric": "val_loss"}}
    training = Trainings(tmp_path, rate=0.3, min_checkpoint_period={"batches": 4}, **longer)
    whole = training.native(callbacks)
    at_8 = training.native(callbacks, resume=whole.saved_at(8))
    assert_same(training.native(callbacks, resume=at_8.saved_at(12)), whole, whole.callbacks[-1].state())


@pytest.mark.long
def test_a_trial_class_continues_at_an_epochs_end(tmp_path: Path) -> None:
    longer = {"searcher": {"max_length": {"epochs": 6}, "metric": "val_loss"}}
    training = Trainings(tmp_path, rate=0.3, min_checkpoint_period={"batches": 5}, **longer)
    whole = training.trial(callbacks)
    state = whole.callbacks[-1].state()
    assert_same(training.trial(callbacks, resume=whole.saved_at(10)), whole, state)
