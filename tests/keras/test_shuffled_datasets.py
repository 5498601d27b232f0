"""In which order a shuffled Dataset is read, now and after the training: as in plain Keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import det_native as det
from det_native.keras import shuffles

pytestmark = pytest.mark.slow


def numbers(**kwargs: Any) -> tf.data.Dataset:
    tf.random.set_seed(3)
    rows = tf.data.Dataset.range(20).map(lambda number: (tf.cast(tf.reshape(number, [1]), tf.float32), 0.0))
    return rows.shuffle(20, **kwargs)


def order(dataset: tf.data.Dataset) -> list[float]:
    return [float(x[0]) for x, _ in dataset.as_numpy_iterator()]


class TestPlaces:
    """How many seeds the shuffles of a Dataset have drawn."""

    @pytest.fixture(params=["few bytes", "many bytes"], autouse=True)
    def _size(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        if request.param == "many bytes":
            monkeypatch.setattr(shuffles, "_LITTLE", -1)

    def test_a_dataset_goes_on_from_any_pass(self) -> None:
        dataset = numbers()
        passes = [order(dataset) for _ in range(4)]
        assert shuffles.places(dataset.batch(3)) == [8]
        for number in (2, 0, 3):
            shuffles.put_places(dataset.repeat(), [2 * number])
            assert order(dataset) == passes[number]

    def test_to_ask_changes_nothing(self) -> None:
        dataset, asked = numbers(), numbers()
        assert shuffles.places(asked) == shuffles.places(asked.take(3)) == [0]
        assert [order(asked), order(asked)] == [order(dataset), order(dataset)]

    def test_each_shuffle_of_a_pipeline_has_its_own(self) -> None:
        below, other = numbers(), numbers()
        order(below)
        pipeline = tf.data.Dataset.zip((below.shuffle(5), other)).repeat()
        assert sorted(shuffles.places(pipeline)) == [0, 0, 2]
        assert shuffles.places(numbers(reshuffle_each_iteration=False)) == []
        with pytest.raises(ValueError, match="shorter"):
            shuffles.put_places(pipeline, [0])

    @pytest.mark.parametrize("passes_before", [0, 1])
    def test_another_process_fills_a_cache_as_the_first_one_did(self, passes_before: int) -> None:
        below = numbers()
        for _ in range(passes_before):
            order(below)
        dataset, fresh = (rows.cache().shuffle(20, seed=5).prefetch(1) for rows in (below, numbers()))
        for _ in range(3):
            order(dataset)
        shuffles.put_places(fresh, shuffles.places(dataset))
        iter(fresh), iter(dataset)  # as Keras makes another one before it reads
        assert [order(fresh), order(fresh)] == [order(dataset), order(dataset)]

    def test_a_full_cache_is_left_alone(self) -> None:
        dataset = numbers().cache()
        before = order(dataset)
        assert shuffles.places(dataset) == [~0]
        shuffles.put_places(dataset, [4])
        assert [order(dataset), shuffles.places(dataset)] == [before, [~0]]
        here = numbers().cache()
        shuffles.put_places(here, [~0], fill=False)
        assert [shuffles.places(here), order(here)] == [[0], before]

    def test_a_python_generator_is_not_read(self) -> None:
        def fail() -> Any:
            raise AssertionError
            yield 0

        dataset = tf.data.Dataset.from_generator(fail, output_signature=tf.TensorSpec([])).shuffle(5)
        assert shuffles.places(dataset) == [0]


Part = Callable[[tf.data.Dataset], tf.data.Dataset]
TRAININGS: dict[str, tuple[Part, Part | None, dict[str, Any]]] = {
    "whole epochs": (lambda rows: rows.batch(5), None, {}),
    "fewer steps": (lambda rows: rows.batch(5).prefetch(2), None, {"steps_per_epoch": 3, "epochs": 1}),
    "as many steps": (lambda rows: rows.batch(5), None, {"steps_per_epoch": 4}),
    "endless": (lambda rows: rows.batch(5).repeat(), None, {"steps_per_epoch": 3}),
    "repeated": (lambda rows: rows.batch(5).repeat(2), None, {}),
    "unknown length": (lambda rows: rows.filter(lambda x, y: True).batch(5), None, {}),
    "fold": (lambda rows: rows.take(12).batch(4), lambda rows: rows.skip(12).batch(4), {}),
    "best weights": (
        lambda rows: rows.take(12).batch(4),
        lambda rows: rows.skip(12).batch(4),
        {"epochs": 4, "callbacks": lambda: [tf.keras.callbacks.EarlyStopping(restore_best_weights=True, mode="max")]},
    ),
}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind in ("fold", "fewer steps") else pytest.mark.long) for kind in TRAININGS],
)
def test_passes_begin_as_often_as_in_keras(kind: str) -> None:
    training, validation, given = TRAININGS[kind]

    def run(wrap: Callable[[Any], Any]) -> tuple[list[float], list[int]]:
        rows = numbers()
        model = wrap(tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")]))
        model.compile("sgd", "mse")
        arguments = {"epochs": 2, "verbose": 0, **given}
        arguments["callbacks"] = given["callbacks"]() if "callbacks" in given else []
        history = model.fit(training(rows), validation_data=validation and validation(rows), **arguments)
        return history.history["loss"], shuffles.places(rows)

    plain = run(lambda model: model)
    assert run(det.experimental.keras.init(local=True).wrap_model) == plain


def test_a_python_generator_is_read_as_often_as_in_keras() -> None:
    """It counts its passes and draws numbers; nobody knows its length before it ends."""

    def run(wrap: Callable[[Any], Any]) -> tuple[list[float], list[int], float]:
        passes: list[int] = []
        numbers = np.random.RandomState(3)

        def rows() -> Any:
            passes.append(len(passes))
            for number in range(10):
                yield numbers.rand(3) + len(passes), number

        dataset = tf.data.Dataset.from_generator(rows, output_signature=(tf.TensorSpec((3,)), tf.TensorSpec([])))
        model = wrap(tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")]))
        model.compile("sgd", "mse")
        history = model.fit(dataset.batch(4), epochs=3, verbose=0)
        return history.history["loss"], passes, numbers.rand()

    plain = run(lambda model: model)
    assert plain[1] == [0, 1, 2]
    assert run(det.experimental.keras.init(local=True).wrap_model) == plain


def test_a_model_is_built_without_a_call_on_data() -> None:
    """A layer with a generator of its own draws in training only."""

    class Noise(tf.keras.layers.Layer):  # type: ignore[misc]  # TensorFlow has no types
        def __init__(self) -> None:
            super().__init__()
            self.drawn = tf.random.Generator.from_seed(7)

        def call(self, rows: Any) -> Any:
            return rows + self.drawn.normal(tf.shape(rows))

    def run(wrap: Callable[[Any], Any]) -> tuple[list[float], list[int]]:
        tf.keras.utils.set_random_seed(1)
        noise = Noise()
        model = wrap(tf.keras.Sequential([tf.keras.layers.Dense(2), noise, tf.keras.layers.Dense(1)]))
        model.compile("sgd", "mse")
        history = model.fit(tf.ones((12, 3)), tf.ones((12, 1)), epochs=2, batch_size=4, verbose=0)
        return history.history["loss"], noise.drawn.state.numpy().tolist()

    plain = run(lambda model: model)
    assert run(det.experimental.keras.init(local=True).wrap_model) == plain
