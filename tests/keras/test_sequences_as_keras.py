"""A Sequence is read as plain Keras reads it: its length, how often, and after a pause as if there was none."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_runs import Run, Trainings, equal, make_model
from keras_generation import only_keras_2

from det_native.keras import FitCall, TFKerasNativeContext
from det_native.keras.context import seed_keras
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import CheckpointManifest

pytestmark = [pytest.mark.slow, only_keras_2]

EPOCHS = 3
X = np.random.default_rng(1).normal(size=(64, 6)).astype("float32")
Y = X[:, :3].argmax(1)
IMAGES = np.random.default_rng(2).normal(size=(24, 3, 2, 1)).astype("float32")
SHARED = np.random.default_rng(9)
DRAWN = []


class Rows(tf.keras.utils.Sequence):  # type: ignore[misc]  # TensorFlow has no types
    """Three batches of eight."""

    def __init__(self) -> None:
        self.length, self.read = 3, []

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, number: int) -> Any:
        self.read.append(number)
        rows = slice(8 * number, 8 * number + 8)
        return X[rows], Y[rows]


class Growing(Rows):
    """One batch more in each epoch."""

    def on_epoch_end(self) -> None:
        self.length += 1


class Shrinking(Rows):
    """One batch less in each epoch."""

    def on_epoch_end(self) -> None:
        self.length = max(self.length - 1, 1)


class OwnStreams(Rows):
    """Noise from generators of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.state = {"numpy": np.random.default_rng(5), "old": np.random.RandomState(6)}
        self.python = random.Random(3)

    def __getitem__(self, number: int) -> Any:
        x, y = super().__getitem__(number)
        noise = self.state["numpy"].normal(size=x.shape) + self.state["old"].normal() + self.python.random()
        return x + noise, y


class FromGlobals(Rows):
    """Noise from a generator of a cell, and a list of the cell that grows."""

    def __getitem__(self, number: int) -> Any:
        x, y = super().__getitem__(number)
        DRAWN.append(float(SHARED.normal()))
        return x + DRAWN[-1] + 0.01 * len(DRAWN), y


class Reshuffled(Rows):
    """Rows in another order in each epoch, and noise, from the generators of the process."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = np.arange(24)

    def __getitem__(self, number: int) -> Any:
        self.read.append(number)
        rows = self.rows[8 * number : 8 * number + 8]
        return X[rows] + np.random.normal(size=(8, 6)) + random.random(), Y[rows]

    def on_epoch_end(self) -> None:
        np.random.shuffle(self.rows)


class Flow(Rows):
    """An iterator of images inside a Sequence of the user's."""

    def __init__(self, seed: int | None = 5) -> None:
        super().__init__()
        images = tf.keras.preprocessing.image.ImageDataGenerator(horizontal_flip=True, width_shift_range=0.3)
        self.flow = images.flow(IMAGES, Y[:24], batch_size=8, seed=seed)

    def __getitem__(self, number: int) -> Any:
        x, y = self.flow[number]
        return x.reshape(-1, 6), y

    def on_epoch_end(self) -> None:
        self.flow.on_epoch_end()


KINDS: dict[str, Callable[[], Any]] = {
    "growing": Growing,
    "shrinking": Shrinking,
    "own streams": OwnStreams,
    "streams of cells": FromGlobals,
    "reshuffled": Reshuffled,
    "flow with a seed": Flow,
    "flow without a seed": lambda: Flow(None),
}


#: Batches after which training is stopped: within an epoch, and where it has ended.
STOPS = {"reshuffled": (3,), "shrinking": (3, 5)}
LONGER = KINDS.keys() - {"growing"}


def begin() -> None:
    """Have what the cells would have made."""
    SHARED.bit_generator.state = np.random.default_rng(9).bit_generator.state
    DRAWN.clear()


def arguments(make: Callable[[], Any], *, validated: bool = True, **others: Any) -> dict[str, Any]:
    data = {"validation_data": make()} if validated else {}
    return {"x": make(), "epochs": EPOCHS, "verbose": 0, **data, **others}


def trainings_in(folder: Path, metric: str = "loss", **length: int) -> Trainings:
    lengths = {"max_length": length or {"epochs": EPOCHS}, "metric": metric}
    return Trainings(folder, records_per_epoch=24, min_checkpoint_period={"batches": 1}, searcher=lengths)


def trained(
    trainings: Trainings, make: Callable[[], Any], resume: CheckpointManifest | None = None, **others: Any
) -> tuple[Run, Any]:
    """Train by a call of ``fit`` with a checkpoint after each batch; return the run and the call."""
    begin()
    taken: list[FitCall] = []

    def call(environment: TrialEnvironment) -> FitCall:
        context = TFKerasNativeContext(environment, on_fit=taken.append, role="worker")
        seed_keras(environment.trial_seed)
        model = context.wrap_model(make_model())
        model.fit(**arguments(make, **others))
        return taken[0]

    return trainings._run(call, resume), taken[0]


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.long] * (kind in LONGER)) for kind in KINDS])
def test_it_trains_as_with_plain_keras_and_goes_on_after_a_pause(kind: str, tmp_path: Path) -> None:
    make, shuffle = KINDS[kind], kind != "growing"
    begin()
    model = make_model()
    given = arguments(make, shuffle=shuffle)
    history = model.fit(**given).history
    trainings = trainings_in(tmp_path, "val_loss")
    whole, call = trained(trainings, make, shuffle=shuffle)
    assert equal(whole.model, model)
    assert whole.outcome.result.history == history
    assert call.training.x.read == given["x"].read
    assert call.validation.x.read == given["validation_data"].read  # type: ignore[union-attr]
    batches = whole.schedule.progress.batches
    assert len(whole.reports.validations) == EPOCHS
    for batch in STOPS.get(kind, (5,)):
        stopped, _ = trained(trainings, make, whole.saved_at(batch), shuffle=shuffle)
        assert equal(stopped.model, model), batch
        assert stopped.schedule.progress.batches == batches


@pytest.mark.long
def test_a_sequence_that_grows_has_epochs_of_its_length(tmp_path: Path) -> None:
    run, call = trained(trainings_in(tmp_path), Growing, validated=False, shuffle=False)
    assert call.training.x.read == [0, 0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3, 4]
    assert [row.batch for row in run.reports.epochs] == [3, 7, 12]
    assert run.schedule.periods.length == 12


@pytest.mark.long
def test_steps_per_epoch_leave_a_sequence_that_grows_alone(tmp_path: Path) -> None:
    _, call = trained(trainings_in(tmp_path), Growing, validated=False, shuffle=False, steps_per_epoch=3)
    assert call.training.x.read == [0, 0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3, 4]  # Keras reads up to two ahead


@pytest.mark.parametrize("make", [Growing, pytest.param(Shrinking, marks=pytest.mark.soak)])
def test_a_length_in_batches_ends_within_an_epoch_of_any_length(make: Any, tmp_path: Path) -> None:
    run, call = trained(trainings_in(tmp_path, batches=8), make, validated=False, shuffle=False)
    assert run.schedule.progress.batches == 8
    parts = {Growing: [0, 0, 1, 2, 0, 1, 2, 3, 0], Shrinking: [0, 0, 1, 2, 0, 1, 0, 0, 0]}
    assert call.training.x.read[:9] == parts[make]


def test_looking_at_a_sequence_for_the_cluster_leaves_it_as_it_was() -> None:
    begin()
    sequence = Flow()
    other = OwnStreams()
    for given in (sequence, other):
        call = FitCall.of(
            TFKerasNativeContext(TrialEnvironment(config={}, hparams={}), on_fit=lambda _: None),
            make_model(),
            "fit",
            (given,),
            {},
        )
        assert call.configuration_fills()["records_per_epoch"] == 24
        call.not_here()
    assert sequence.flow.total_batches_seen == 0
    assert sequence.flow.index_array is None
    assert np.array_equal(other[0][0], OwnStreams()[0][0])


class GrowingStreams(OwnStreams):
    """Noise of its own, and one batch more after each time it was read."""

    def on_epoch_end(self) -> None:
        self.length += 1


class GrowingRows(Rows):
    """One batch more after each time it was read."""

    def on_epoch_end(self) -> None:
        self.length += 1


@pytest.mark.long
@pytest.mark.parametrize(("make", "stops"), [(GrowingRows, (5,)), (GrowingStreams, (3, 5))])
def test_validation_data_that_grow_go_on_after_a_pause(make: Any, stops: tuple[int, ...], tmp_path: Path) -> None:
    begin()
    model = make_model()
    given = arguments(Rows, validation_data=make(), shuffle=False)
    history = model.fit(**given).history
    trainings = trainings_in(tmp_path, "val_loss")
    whole, call = trained(trainings, Rows, validation_data=make(), shuffle=False)
    assert whole.outcome.result.history == history
    assert call.validation.x.read == given["validation_data"].read  # type: ignore[union-attr]
    for batch in stops:
        stopped, _ = trained(trainings, Rows, whole.saved_at(batch), validation_data=make(), shuffle=False)
        assert equal(stopped.model, model), batch
        expected = history["val_loss"][batch // 3 :]
        assert [found["val_loss"] for _, found in stopped.reports.validations] == expected, batch


class Longer(OwnStreams):
    """Four batches, with noise of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.length = 4


class Watched(Longer):
    """Tells when it has read the batch that is left over."""

    def __init__(self) -> None:
        super().__init__()
        self.left_over = threading.Semaphore(0)

    def __getitem__(self, number: int) -> Any:
        item = super().__getitem__(number)
        if number == 3:
            self.left_over.release()
        return item


class ReadAhead(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types
    """Lets no third batch end before the threads of Keras have read the fourth, which they do nearly always."""

    def __init__(self, training: Watched, validation: Watched) -> None:
        super().__init__()
        self._training, self._validation = training, validation

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        assert batch < 2 or self._training.left_over.acquire(timeout=60)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        assert batch < 2 or self._validation.left_over.acquire(timeout=60)


@pytest.mark.soak
def test_steps_below_the_length_read_as_far_ahead_as_keras(tmp_path: Path) -> None:
    begin()
    steps = {"steps_per_epoch": 3, "validation_steps": 3, "shuffle": False}
    model, given = make_model(), arguments(Watched, **steps)
    history = model.fit(**given, callbacks=[ReadAhead(given["x"], given["validation_data"])]).history
    trainings = trainings_in(tmp_path, "val_loss")
    whole, call = trained(trainings, Longer, **steps)
    assert call.training.x.read == given["x"].read == [0, *range(4), *range(4), *range(4)]
    assert call.validation.x.read == given["validation_data"].read  # type: ignore[union-attr]
    assert whole.outcome.result.history == history
    assert equal(whole.model, model)
    stopped, _ = trained(trainings, Longer, whole.saved_at(5), **steps)
    assert equal(stopped.model, model)
    assert [found["val_loss"] for _, found in stopped.reports.validations] == history["val_loss"][1:]


@pytest.mark.long
@pytest.mark.parametrize(("workers", "read"), [(1, 5), (0, 4)])
def test_what_is_read_ahead_does_not_depend_on_threads(workers: int, read: int, tmp_path: Path) -> None:
    def make() -> Any:
        rows = OwnStreams()
        rows.length = 6
        return rows

    how = {"steps_per_epoch": 3, "shuffle": False, "workers": workers}
    trainings = trainings_in(tmp_path)
    whole, call = trained(trainings, make, validated=False, **how)
    assert call.training.x.read == [0, *list(range(read)) * EPOCHS]
    stopped, _ = trained(trainings, make, whole.saved_at(5), validated=False, **how)
    assert equal(stopped.model, whole.model)


class Restoring(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types
    """Changes the weights when the epoch was validated, so that its checkpoint is validated once more."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.model.set_weights([weights * 0.5 for weights in self.model.get_weights()])


@pytest.mark.long
def test_validating_a_checkpoint_once_more_leaves_the_validation_data_as_keras_has_them(tmp_path: Path) -> None:
    begin()
    model = make_model()
    given = arguments(Rows, validation_data=GrowingStreams(), shuffle=False, callbacks=[Restoring()])
    history = model.fit(**given).history
    how = {"validation_data": GrowingStreams(), "shuffle": False, "callbacks": [Restoring()]}
    whole, _ = trained(trainings_in(tmp_path, "val_loss"), Rows, **how)
    assert whole.outcome.result.history == history
    assert equal(whole.model, model)


@pytest.mark.long
def test_validations_within_an_epoch_go_on_after_a_pause(tmp_path: Path) -> None:
    lengths = {"max_length": {"epochs": EPOCHS}, "metric": "val_loss"}
    periods: dict[str, Any] = {"min_validation_period": {"batches": 2}, "min_checkpoint_period": {"batches": 1}}
    trainings = Trainings(tmp_path, records_per_epoch=24, searcher=lengths, **periods)
    whole, _ = trained(trainings, Rows, validation_data=GrowingStreams(), shuffle=False)
    expected = dict(whole.reports.validations)
    stopped, _ = trained(trainings, Rows, whole.saved_at(2), validation_data=GrowingStreams(), shuffle=False)
    assert stopped.reports.validations == [(batch, found) for batch, found in expected.items() if batch > 2]
