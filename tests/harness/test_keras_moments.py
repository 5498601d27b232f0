"""When the Keras controller reports, validates, saves and ends, and what user code sees of it."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from keras_support import Session, arrays, dataset, digits, validation
from shared_model import fresh_model, trained

from det_native.errors import TrialDefinitionError
from det_native.schema.numbers import shown_number

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Import and trace what the whole module needs, once."""
    fresh_model().fit(*digits()[2:], verbose=0)


def test_rows_of_training_are_keras_running_logs_once_per_batch(tmp_path: Path) -> None:
    seen: dict[int, dict[str, float]] = {}

    class Note(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen[len(seen) + 1] = dict(logs)

    session = Session(tmp_path)
    model = session.context.wrap_model(fresh_model())
    history = model.fit(**arrays(), epochs=2, callbacks=[Note()], verbose=0)
    own = {
        batch: {name: value for name, value in row.items() if not name.startswith("batch_")}
        for batch, row in session.recorder.rows.items()
    }
    assert own == seen
    assert list(session.recorder.rows) == list(range(1, 41))
    assert session.recorder.rows[20]["loss"] == pytest.approx(history.history["loss"][0])


@pytest.mark.long
def test_batches_before_an_exception_are_reported_and_counted(tmp_path: Path) -> None:
    class Raise(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 10:
                raise ZeroDivisionError

    session = Session(tmp_path)
    model = session.context.wrap_model(fresh_model())
    with pytest.raises(ZeroDivisionError):
        model.fit(**arrays(), epochs=2, callbacks=[Raise()], verbose=0)
    assert list(session.recorder.rows) == list(range(1, 11))
    assert session.schedule is not None
    assert session.schedule.progress.batches == 10


def test_nothing_is_validated_twice_at_a_batch(tmp_path: Path) -> None:
    session = Session(tmp_path, min_validation_period={"batches": 10}, searcher={"max_length": {"batches": 40}})
    model = session.context.wrap_model(fresh_model())
    tests = []
    count = tf.keras.callbacks.LambdaCallback(on_train_begin=lambda logs: None)
    count.on_test_begin = lambda logs=None: tests.append(1)
    history = model.fit(**arrays(), epochs=2, validation_data=validation(), callbacks=[count], verbose=0)
    assert [batch for batch, _ in session.recorder.validations] == [10, 20, 30, 40]
    assert len(tests) == 4
    assert history.history["val_loss"] == [session.recorder.validations[n][1]["val_loss"] for n in (1, 3)]


def test_validation_in_mid_epoch_leaves_the_epoch_as_it_is(tmp_path: Path) -> None:
    expected = fresh_model().fit(**arrays(), epochs=2, shuffle=False, validation_data=validation(), verbose=0)
    session = Session(tmp_path, min_validation_period={"batches": 7})
    model = session.context.wrap_model(fresh_model())
    history = model.fit(**arrays(), epochs=2, shuffle=False, validation_data=validation(), verbose=0)
    assert history.history == expected.history
    assert [batch for batch, _ in session.recorder.validations] == [7, 14, 20, 27, 34, 40]


@pytest.mark.long
def test_initial_validation_sees_the_untrained_model(tmp_path: Path) -> None:
    session = Session(tmp_path, perform_initial_validation=True)
    untrained = fresh_model()
    loss, _ = untrained.evaluate(*validation(), verbose=0)
    session.context.wrap_model(fresh_model()).fit(**arrays(), validation_data=validation(), verbose=0)
    batch, metrics = session.recorder.validations[0]
    assert batch == 0
    assert metrics["val_loss"] == pytest.approx(loss, rel=1e-5)


@pytest.mark.long
def test_best_policy_saves_after_a_validation_that_is_the_best(tmp_path: Path) -> None:
    session = Session(tmp_path, checkpoint_policy="best")
    session.recorder.best = -1.0
    session.context.wrap_model(fresh_model()).fit(**arrays(), epochs=3, validation_data=validation(), verbose=0)
    assert session.folders.saved == [60]
    better = Session(tmp_path / "better", checkpoint_policy="best")
    better.context.wrap_model(fresh_model()).fit(**arrays(), epochs=3, validation_data=validation(), verbose=0)
    assert better.folders.saved == [20, 40, 60]


@pytest.mark.long
def test_the_configuration_rules_length_and_batch_size(tmp_path: Path) -> None:
    config = {"hyperparameters": {"global_batch_size": 64}, "searcher": {"max_length": {"epochs": 2}}}
    session = Session(tmp_path, **config)
    history = session.context.wrap_model(fresh_model()).fit(**arrays(600), epochs=5, batch_size=32, verbose=0)
    assert len(history.history["loss"]) == 2
    # 600 records in batches of 64 are 10 batches, the last one smaller; truncation would end after 18.
    assert session.runs[0].outcome.batches == 20


def test_a_length_inside_an_epoch_ends_there_with_a_validation(tmp_path: Path) -> None:
    session = Session(tmp_path, searcher={"max_length": {"batches": 27}})
    model = session.context.wrap_model(fresh_model())
    history = model.fit(**arrays(), epochs=2, validation_data=validation(), verbose=0)
    assert session.runs[0].outcome.batches == 27
    assert session.folders.saved == [27]
    assert [batch for batch, _ in session.recorder.validations] == [20, 27]
    assert len(history.history["val_loss"]) == len(history.history["loss"]) == 2


@pytest.mark.long
def test_records_per_epoch_of_the_configuration_makes_the_epochs(tmp_path: Path) -> None:
    session = Session(tmp_path, records_per_epoch=160, searcher={"max_length": {"epochs": 3}})
    for number, data in enumerate((arrays(), {"x": dataset()}), start=1):
        history = session.context.wrap_model(fresh_model()).fit(**data, epochs=9, verbose=0)
        assert len(history.history["loss"]) == 3
        assert session.runs[-1].outcome.batches == 3 * (5 if number == 1 else 2)
        session.recorder.rows.clear()


def test_a_stop_saves_at_once_and_leaves_whole_epochs_in_the_history(tmp_path: Path) -> None:
    ends: list[int] = []
    session = Session(tmp_path)
    session.stop_at(25)
    model = session.context.wrap_model(fresh_model())
    note = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: ends.append(epoch))
    history = model.fit(**arrays(), epochs=5, validation_data=validation(), callbacks=[note], verbose=0)
    outcome = session.runs[0].outcome
    assert outcome.stopped
    assert session.folders.saved == [outcome.batches]
    assert outcome.batches == 25
    assert ends == history.epoch == [0]
    type(model).fit(model, **arrays(32), verbose=0)  # the model is as usable as before


@pytest.mark.long
def test_callbacks_of_keras_work_as_in_plain_keras(tmp_path: Path) -> None:
    def callbacks(folder: Path) -> list[Any]:
        return [
            tf.keras.callbacks.EarlyStopping("val_loss", min_delta=0.05, patience=1, restore_best_weights=True),
            tf.keras.callbacks.ReduceLROnPlateau("val_loss", min_delta=0.1, patience=1, factor=0.5),
            tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9),
            tf.keras.callbacks.ModelCheckpoint(str(folder / "{epoch}.weights.h5"), save_weights_only=True),
            tf.keras.callbacks.CSVLogger(str(folder / "log.csv")),
        ]

    given = {**arrays(), "shuffle": False, "epochs": 30, "validation_data": validation(), "verbose": 0}
    (tmp_path / "plain").mkdir()
    (tmp_path / "ours").mkdir()
    expected = fresh_model().fit(**given, callbacks=callbacks(tmp_path / "plain"))
    weights = trained()
    session = Session(tmp_path / "checkpoints")
    model = session.context.wrap_model(fresh_model())
    history = model.fit(**given, callbacks=callbacks(tmp_path / "ours"))
    assert history.history == expected.history
    assert len(history.epoch) < 30
    assert session.schedule is not None
    assert session.schedule.progress.ended
    assert all(np.array_equal(mine, other) for mine, other in zip(trained(), weights, strict=True))
    names = sorted(path.name for path in (tmp_path / "plain").iterdir())
    assert sorted(path.name for path in (tmp_path / "ours").iterdir()) == names
    assert (tmp_path / "ours/log.csv").read_text() == (tmp_path / "plain/log.csv").read_text()


@pytest.mark.parametrize(
    ("role", "verbose", "lines"),
    [pytest.param("local", 0, 0, marks=pytest.mark.long), ("local", 2, 2), ("worker", "auto", 2)],
)
def test_verbose(role: str, verbose: Any, lines: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    session = Session(tmp_path)
    session.role = role
    history = session.context.wrap_model(fresh_model()).fit(**arrays(), epochs=2, verbose=verbose)
    printed = capfd.readouterr().out
    if role == "worker":
        expected = rf"Epoch 2/2: loss {shown_number(history.history['loss'][-1])}, accuracy 0\.\d+"
        assert [line[:6] for line in printed.splitlines()] == ["Epoch "] * lines
        assert re.fullmatch(expected, printed.splitlines()[-1])
    else:
        assert printed.count("20/20 - ") == lines
    assert "\b" not in printed


def test_without_validation_data_the_metrics_of_training_stand_in(tmp_path: Path) -> None:
    session = Session(tmp_path)
    history = session.context.wrap_model(fresh_model()).fit(**arrays(), epochs=2, verbose=0)
    ((batch, metrics),) = session.recorder.validations
    assert batch == 40
    assert metrics["loss"] == pytest.approx(history.history["loss"][-1])


def test_a_metric_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    session = Session(tmp_path, searcher={"metric": "val_f1"})
    with pytest.raises(TrialDefinitionError, match=r"val_f1.*val_loss, val_accuracy"):
        session.context.wrap_model(fresh_model()).fit(**arrays(), validation_data=validation(), verbose=0)


def test_a_metric_that_is_no_number_ends_nothing(tmp_path: Path) -> None:
    session = Session(tmp_path)
    weighted = (*validation(), np.full(360, math.nan))
    session.context.wrap_model(fresh_model()).fit(**arrays(), validation_data=weighted, epochs=2, verbose=0)
    assert [math.isnan(metrics["val_loss"]) for _, metrics in session.recorder.validations] == [True] * 2


def test_a_quick_check_validates_on_one_batch(tmp_path: Path) -> None:
    session = Session(tmp_path, searcher={"max_length": {"batches": 1}})
    session.validation_batches = 1
    tests: list[int] = []
    count = tf.keras.callbacks.LambdaCallback()
    count.on_test_batch_end = lambda batch, logs=None: tests.append(batch)
    model = session.context.wrap_model(fresh_model())
    model.fit(**arrays(), validation_data=validation(), callbacks=[count], verbose=0)
    assert tests == [0]
    assert session.folders.saved == [session.runs[0].outcome.batches] == [1]
