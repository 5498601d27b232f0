"""The Keras controller against plain Keras: every argument of fit, and what is reported, validated and saved when."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from keras_support import Halves, Session, arrays, close, dataset, digits, endless, seeded, validation
from shared_model import fresh_model, trained

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Import and trace what the whole module needs, once."""
    fresh_model().fit(*digits()[2:], verbose=0)


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


@pytest.mark.long
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


@pytest.mark.long
def test_shuffling_orders_every_epoch_anew_and_takes_every_row_once(tmp_path: Path) -> None:
    seen: list[list[float]] = []

    class Reader(tf.keras.Sequential):
        def train_step(self, data: Any) -> Any:
            rows, _ = data
            tf.numpy_function(lambda part: seen.append(part[:, 0].tolist()), [rows], [])
            return super().train_step(data)

    for shuffle in (True, "batch"):
        seen.clear()
        model = Reader([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
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
