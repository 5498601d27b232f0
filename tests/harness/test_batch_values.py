"""What single batches contribute to Keras's means, undone from the means."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from det_harness.frameworks.keras.batch_values import BatchValues
from keras_support import Session, arrays, digits, make_model, validation
from shared_model import fresh_model

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Import and trace what the whole module needs, once."""
    fresh_model().fit(*digits()[2:], verbose=0)


def losses_by_hand(records: int, epochs: int) -> list[float]:
    """Train by single batches, as fit() does without a shuffle, and note the loss of each."""
    model = fresh_model()
    x, y = digits()[:2]
    losses = []
    for start in [*range(0, records, 32)] * epochs:
        batch = slice(start, min(start + 32, records))
        model.reset_metrics()
        losses.append(float(model.train_on_batch(x[batch], y[batch], return_dict=True)["loss"]))
    return losses


def test_the_values_are_those_of_training_by_single_batches(tmp_path: Path) -> None:
    session = Session(tmp_path)
    model = session.context.wrap_model(fresh_model())
    history = model.fit(**{**arrays(630), "shuffle": False}, epochs=2, validation_data=validation(), verbose=0)
    rows = session.recorder.rows
    assert [rows[batch]["batch_loss"] for batch in sorted(rows)] == pytest.approx(losses_by_hand(630, 2), rel=1e-4)
    assert rows[20]["loss"] == pytest.approx(history.history["loss"][0])
    assert set(history.history) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    for batch in (19, 20, 39, 40):
        hits = rows[batch]["batch_accuracy"] * (22 if batch in (20, 40) else 32)
        assert hits == pytest.approx(round(hits), abs=1e-3), "a whole number of records was right"


def test_what_is_no_mean_has_a_value_per_epoch(tmp_path: Path) -> None:
    session = Session(tmp_path)
    model = make_model()  # not the shared one: it is compiled anew
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=[tf.keras.metrics.MeanIoU(10, sparse_y_pred=False)])
    session.context.wrap_model(model).fit(**arrays(), epochs=2, verbose=0)
    rows = session.recorder.rows
    (name,) = [name for name in rows[1] if name.startswith("epoch_")]
    told = {batch: row[name] for batch, row in rows.items() if row[name] is not None}
    assert told == {20: rows[20][name.removeprefix("epoch_")], 40: rows[40][name.removeprefix("epoch_")]}


def test_where_weights_differ_there_is_a_value_per_epoch(tmp_path: Path) -> None:
    given: Any = arrays()
    weights = np.random.default_rng(1).uniform(0.1, 2, len(given["y"])).astype("float32")
    session = Session(tmp_path)
    model = make_model()  # not the shared one: it is compiled anew
    model.compile("sgd", "sparse_categorical_crossentropy", weighted_metrics=["accuracy"])
    session.context.wrap_model(model).fit(**given, sample_weight=weights, epochs=1, verbose=0)
    rows = session.recorder.rows
    told = {batch: row["batch_accuracy"] for batch, row in rows.items() if row["batch_accuracy"] is not None}
    assert told == {1: rows[1]["accuracy"], 20: rows[20]["accuracy"]}


def test_a_loss_that_is_nan_is_recorded_as_one(tmp_path: Path) -> None:
    given: Any = arrays()
    weights = np.ones(len(given["y"]), "float32")
    weights[5 * 32] = np.nan
    session = Session(tmp_path)
    history = session.context.wrap_model(fresh_model()).fit(
        **{**given, "shuffle": False}, sample_weight=weights, epochs=2, verbose=0
    )
    assert np.isnan(history.history["loss"]).all()
    assert session.runs[0].outcome.batches == 40, "as in plain Keras"
    rows = session.recorder.rows
    assert next(batch for batch, row in rows.items() if np.isnan(row["loss"])) == 6
    assert np.isnan(rows[6]["batch_loss"])
    assert not np.isnan(rows[5]["batch_loss"])


@pytest.mark.parametrize("together", [False, True])
def test_a_smaller_batch_in_the_midst_of_an_epoch_makes_no_wrong_values(together: bool) -> None:
    loss = tf.keras.metrics.Mean("loss")
    model: Any = SimpleNamespace(metrics=[loss])
    values, told, means = BatchValues(4, smaller_last=False), [], []
    for epoch in range(2):
        loss.reset_state()
        values.begin_epoch(model)
        for batch, (value, size) in enumerate(((1.0, 8), (2.0, 4), (3.0, 8), (4.0, 8)), start=1):
            loss.update_state([value] * size)
            means.append(float(loss.result()))
            if epoch == 0 or not together or batch == 4:
                numbers = range(batch - len(means) + 1, batch + 1)
                told += values.columns(model, list(numbers), {"loss": means})["batch_loss"]
                means = []
    later = [None, None, None, 72 / 28] if together else [1.0, 2.0, 3.0, 4.0]
    assert told == pytest.approx([1.0, 2.0, 3.0, 4.0, *later])
