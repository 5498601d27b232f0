"""The Keras controller against plain Keras: every argument of fit, and what is reported, validated and saved when."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from keras_support import Session, close, digits, seeded
from shared_model import fresh_model, trained

from det_native.errors import TrialDefinitionError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Import and trace what the whole module needs, once."""
    fresh_model().fit(*digits()[2:], verbose=0)


class Halves(tf.keras.utils.Sequence):
    """Digits in batches of 64, as a Sequence."""

    def __init__(self) -> None:
        self.epochs_ended = 0

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> Any:
        x, y, _, _ = digits()
        return x[index * 64 : (index + 1) * 64], y[index * 64 : (index + 1) * 64]

    def on_epoch_end(self) -> None:
        self.epochs_ended += 1


def endless() -> Any:
    sequence = Halves()
    number = 0
    while True:
        yield sequence[number % 10]
        number += 1


def dataset(records: int = 640) -> tf.data.Dataset:
    x, y, _, _ = digits()
    return tf.data.Dataset.from_tensor_slices((x[:records], y[:records])).batch(64)


def arrays(records: int = 640) -> dict[str, Any]:
    x, y, _, _ = digits()
    return {"x": x[:records], "y": y[:records]}


def validation() -> tuple[Any, Any]:
    return digits()[2:]


WEIGHTS = np.linspace(0.1, 2.0, 640).astype("float32")

CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "epochs": lambda: {**arrays(), "epochs": 3, "shuffle": False},
    "batch_size with a smaller last batch": lambda: {**arrays(), "batch_size": 100, "epochs": 2, "shuffle": False},
    "validation_data": lambda: {**arrays(), "shuffle": False, "validation_data": validation(), "epochs": 2},
    "validation_data with weights": lambda: {
        **arrays(),
        "shuffle": False,
        "validation_data": (*validation(), np.linspace(0, 1, 360)),
    },
    "validation_data as Dataset, validation_steps": lambda: {
        **arrays(),
        "shuffle": False,
        "validation_data": dataset(),
        "validation_steps": 3,
    },
    "validation_data as Sequence": lambda: {**arrays(), "shuffle": False, "validation_data": Halves()},
    "validation_split": lambda: {**arrays(), "shuffle": False, "validation_split": 0.25, "epochs": 2},
    "validation_batch_size and steps": lambda: {
        **arrays(),
        "shuffle": False,
        "validation_data": validation(),
        "validation_batch_size": 50,
        "validation_steps": 2,
    },
    "validation_steps alone": lambda: {
        **arrays(),
        "shuffle": False,
        "validation_data": validation(),
        "validation_steps": 4,
    },
    "validation_freq": lambda: {
        **arrays(),
        "shuffle": False,
        "validation_data": validation(),
        "epochs": 4,
        "validation_freq": 2,
    },
    "validation_freq as list": lambda: {
        **arrays(),
        "shuffle": False,
        "validation_data": validation(),
        "epochs": 4,
        "validation_freq": [1, 4],
    },
    "class_weight": lambda: {**arrays(), "shuffle": False, "class_weight": {n: 1.0 + n for n in range(10)}},
    "sample_weight": lambda: {**arrays(), "shuffle": False, "sample_weight": WEIGHTS, "epochs": 2},
    "initial_epoch": lambda: {**arrays(), "shuffle": False, "initial_epoch": 2, "epochs": 4},
    "steps_per_epoch with arrays": lambda: {
        **arrays(),
        "batch_size": 32,
        "shuffle": False,
        "steps_per_epoch": 5,
        "epochs": 4,
    },
    "steps_per_epoch makes the batch size": lambda: {**arrays(), "shuffle": False, "steps_per_epoch": 8},
    "x and y as tensors": lambda: {**{k: tf.constant(v) for k, v in arrays().items()}, "shuffle": False},
    "x and y as lists": lambda: {
        "x": [[float(v) for v in row] for row in arrays(64)["x"]],
        "y": [int(v) for v in arrays(64)["y"]],
        "shuffle": False,
    },
    "Dataset": lambda: {"x": dataset(), "epochs": 3},
    "Dataset with steps_per_epoch": lambda: {"x": dataset().repeat(), "epochs": 3, "steps_per_epoch": 7},
    "Sequence": lambda: {"x": Halves(), "epochs": 2, "shuffle": False},
    "generator": lambda: {"x": endless(), "steps_per_epoch": 6, "epochs": 2},
    "validation by generator": lambda: {
        **arrays(),
        "shuffle": False,
        "validation_data": endless(),
        "validation_steps": 3,
    },
}


@pytest.mark.parametrize("name", CASES)
def test_an_argument_of_fit_gives_what_plain_keras_gives(name: str, tmp_path: Path) -> None:
    expected = fresh_model().fit(**CASES[name](), verbose=0)
    weights = trained()
    session = Session(tmp_path)
    model = session.context.wrap_model(fresh_model())
    history = model.fit(**CASES[name](), verbose=0)
    assert isinstance(history, tf.keras.callbacks.History)
    assert close(history.history, expected.history), (history.history, expected.history)
    assert history.epoch == expected.epoch
    assert all(np.allclose(mine, other, atol=1e-6) for mine, other in zip(trained(), weights, strict=True))


def test_a_sequence_read_by_threads_gives_the_same_and_hears_of_every_epochs_end_once(tmp_path: Path) -> None:
    expected = fresh_model().fit(Halves(), epochs=3, shuffle=False, validation_data=Halves(), verbose=0)
    sequence, held_out = Halves(), Halves()
    model = Session(tmp_path).context.wrap_model(fresh_model())
    given = {"epochs": 3, "shuffle": False, "workers": 2, "max_queue_size": 3, "verbose": 0}
    history = model.fit(sequence, validation_data=held_out, **given)
    assert close(history.history, expected.history)
    assert sequence.epochs_ended == held_out.epochs_ended == 3


def test_fit_generator_is_fit(tmp_path: Path) -> None:
    expected = fresh_model().fit(endless(), steps_per_epoch=6, epochs=2, verbose=0)
    model = Session(tmp_path).context.wrap_model(fresh_model())
    assert close(model.fit_generator(endless(), 6, 2, 0).history, expected.history)


def test_several_inputs_by_name_and_weights_for_one_of_two_outputs(tmp_path: Path) -> None:
    def build() -> Any:
        seeded()
        left, right = (tf.keras.Input((32,), name=name) for name in ("left", "right"))
        hidden = tf.keras.layers.Dense(8)(tf.keras.layers.concatenate([left, right]))
        outputs = {name: tf.keras.layers.Dense(1, name=name)(hidden) for name in ("a", "b")}
        model = tf.keras.Model({"left": left, "right": right}, outputs)
        model.compile("sgd", {"a": "mse", "b": "mae"})
        return model

    x, y, _, _ = digits()
    given = {
        "x": {"left": x[:320, :32], "right": x[:320, 32:]},
        "y": {"a": y[:320], "b": x[:320, 20]},
        "sample_weight": {"a": WEIGHTS[:320]},
        "shuffle": False,
        "verbose": 0,
    }
    expected = build().fit(**given)
    history = Session(tmp_path).context.wrap_model(build()).fit(**given)
    assert close(history.history, expected.history)


def test_shuffling_orders_every_epoch_anew_and_takes_every_row_once(tmp_path: Path) -> None:
    seen: list[list[float]] = []

    class Reader(tf.keras.Sequential):
        def train_step(self, data: Any) -> Any:
            rows, _ = data
            tf.numpy_function(lambda part: seen.append(part[:, 0].tolist()), [rows], [])
            return super().train_step(data)

    for shuffle in (True, "batch"):
        seen.clear()
        model = Reader([tf.keras.layers.Dense(1, input_shape=(1,))])
        model.compile("sgd", "mse")
        rows = np.arange(50.0).reshape(50, 1)
        session = Session(tmp_path / str(shuffle))
        session.context.wrap_model(model).fit(rows, rows, batch_size=8, epochs=2, shuffle=shuffle, verbose=0)
        first, second = list(chain(*seen[:7])), list(chain(*seen[7:]))
        assert sorted(first) == sorted(second) == list(range(50))
        assert first != second
        if shuffle == "batch":
            assert all({int(row) // 8 for row in batch} == {int(batch[0]) // 8} for batch in seen)


def test_array_likes_and_sparse_matrices_are_trained_on(tmp_path: Path) -> None:
    from scipy.sparse import csr_matrix

    class OnDisk:
        """What an HDF5 dataset allows: slices and ascending rows."""

        def __init__(self, content: Any) -> None:
            self.content, self.shape, self.dtype = content, content.shape, content.dtype

        def __len__(self) -> int:
            return len(self.content)

        def __getitem__(self, rows: Any) -> Any:
            assert isinstance(rows, slice) or list(rows) == sorted(set(rows))
            return self.content[rows]

    given = arrays()
    expected = fresh_model().fit(**given, shuffle=False, verbose=0).history
    for kind in (OnDisk, csr_matrix):
        session = Session(tmp_path / kind.__name__)
        y = OnDisk(given["y"]) if kind is OnDisk else given["y"]
        model = session.context.wrap_model(fresh_model())
        assert close(model.fit(kind(given["x"]), y, shuffle=False, verbose=0).history, expected, 1e-5)
        Session(tmp_path / f"{kind.__name__} shuffled").context.wrap_model(fresh_model())
        assert not close(model.fit(kind(given["x"]), y, shuffle=True, verbose=0).history, expected, 1e-5)


def test_rows_of_training_are_keras_running_logs_once_per_batch(tmp_path: Path) -> None:
    seen: dict[int, dict[str, float]] = {}

    class Note(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen[len(seen) + 1] = dict(logs)

    session = Session(tmp_path)
    model = session.context.wrap_model(fresh_model())
    history = model.fit(**arrays(), epochs=2, callbacks=[Note()], verbose=0)
    assert session.recorder.rows == seen
    assert list(session.recorder.rows) == list(range(1, 41))
    assert session.recorder.rows[20]["loss"] == pytest.approx(history.history["loss"][0])


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


def test_initial_validation_sees_the_untrained_model(tmp_path: Path) -> None:
    session = Session(tmp_path, perform_initial_validation=True)
    untrained = fresh_model()
    loss, _ = untrained.evaluate(*validation(), verbose=0)
    session.context.wrap_model(fresh_model()).fit(**arrays(), validation_data=validation(), verbose=0)
    batch, metrics = session.recorder.validations[0]
    assert batch == 0
    assert metrics["val_loss"] == pytest.approx(loss, rel=1e-5)


def test_best_policy_saves_after_a_validation_that_is_the_best(tmp_path: Path) -> None:
    session = Session(tmp_path, checkpoint_policy="best")
    session.recorder.best = -1.0
    session.context.wrap_model(fresh_model()).fit(**arrays(), epochs=3, validation_data=validation(), verbose=0)
    assert session.folders.saved == [60]
    better = Session(tmp_path / "better", checkpoint_policy="best")
    better.context.wrap_model(fresh_model()).fit(**arrays(), epochs=3, validation_data=validation(), verbose=0)
    assert better.folders.saved == [20, 40, 60]


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


def test_user_code_may_ask_for_a_stop(tmp_path: Path) -> None:
    session = Session(tmp_path)
    stop = tf.keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: session.context.set_stop_requested(batch == 6)
    )
    session.context.wrap_model(fresh_model()).fit(**arrays(), epochs=5, callbacks=[stop], verbose=0)
    assert session.runs[0].outcome.batches == 7
    assert session.runs[0].outcome.stopped


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
    assert session.runs[0].outcome.stopped
    assert all(np.array_equal(mine, other) for mine, other in zip(trained(), weights, strict=True))
    names = sorted(path.name for path in (tmp_path / "plain").iterdir())
    assert sorted(path.name for path in (tmp_path / "ours").iterdir()) == names
    assert (tmp_path / "ours/log.csv").read_text() == (tmp_path / "plain/log.csv").read_text()


@pytest.mark.parametrize(("role", "verbose", "lines"), [("local", 0, 0), ("local", 2, 2), ("worker", "auto", 2)])
def test_verbose(role: str, verbose: Any, lines: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    session = Session(tmp_path)
    session.role = role
    session.context.wrap_model(fresh_model()).fit(**arrays(), epochs=2, verbose=verbose)
    printed = capfd.readouterr().out
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


def test_a_metric_that_is_no_number_ends_the_trial(tmp_path: Path) -> None:
    session = Session(tmp_path)
    weighted = (*validation(), np.full(360, math.nan))
    with pytest.raises(TrialDefinitionError, match=r"nan.*val_loss"):
        session.context.wrap_model(fresh_model()).fit(**arrays(), validation_data=weighted, verbose=0)


def test_an_exception_in_a_generator_arrives_as_itself(tmp_path: Path) -> None:
    class BrokenRecordError(Exception):
        pass

    def broken() -> Any:
        yield from (Halves()[0], Halves()[1])
        raise BrokenRecordError("record 129")

    with pytest.raises(BrokenRecordError, match="record 129"):
        Session(tmp_path).context.wrap_model(fresh_model()).fit(broken(), steps_per_epoch=9, verbose=0)


def test_data_that_end_early_are_saved_and_said(tmp_path: Path) -> None:
    session = Session(tmp_path)
    short = iter([Halves()[index] for index in range(5)])
    with pytest.warns(UserWarning, match="ended after 5 of 18 batches"):
        session.context.wrap_model(fresh_model()).fit(short, steps_per_epoch=9, epochs=2, verbose=0)
    assert session.folders.saved == [5]
    assert session.runs[0].outcome.stopped


def test_random_numbers_of_the_process_are_not_drawn_by_a_generator(tmp_path: Path) -> None:
    def noisy() -> Any:
        while True:
            x, y = Halves()[0]
            yield x + np.random.normal(size=x.shape), y

    model = Session(tmp_path).context.wrap_model(fresh_model())
    before = np.random.get_state()[2]
    model.fit(noisy(), steps_per_epoch=4, verbose=0)
    assert np.random.get_state()[2] == before


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
