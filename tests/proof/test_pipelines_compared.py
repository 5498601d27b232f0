"""Fingerprints of TensorFlow's Datasets, which are never iterated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from det_native.heap.compare import Table, differences, is_rounding
from det_native.heap.words import describe

pytestmark = pytest.mark.slow

ROWS = np.arange(8.0)


def _differing(there: Any, here: Any) -> list[str]:
    """Return what differs between two values, by title."""
    tables = [Table({"x": value}).entries for value in (there, here)]
    return [entry.title for _, entry, _ in differences(*tables)]


def _made(rows: Any, batch: int = 2, add: float = 1.0) -> Any:
    return tf.data.Dataset.from_tensor_slices(rows).map(lambda x: x + add).shuffle(4).batch(batch)


def test_equal_datasets_are_equal() -> None:
    assert _differing(_made(ROWS), _made(ROWS)) == []


@pytest.mark.parametrize(
    "other", [_made(ROWS * 2), _made(ROWS, batch=4), _made(ROWS, add=3.0), _made(ROWS).take(1), _made(ROWS).cache()]
)
def test_other_datasets_are_others(other: Any) -> None:
    assert _differing(_made(ROWS), other)


def test_last_digits_of_its_rows() -> None:
    tables = [Table({"x": _made(rows)}).entries for rows in (ROWS, ROWS * (1 + 1e-13))]
    assert [is_rounding(there, here) for _, there, here in differences(*tables)] == [True]


def test_one_that_is_too_large_to_write_or_runs_python_counts_by_its_form() -> None:
    def rows() -> Any:
        raise AssertionError("it was iterated")
        yield 1.0

    spec = tf.TensorSpec((), tf.float64)
    assert Table({"x": tf.data.Dataset.from_generator(rows, output_signature=spec)}).entries
    large = tf.data.Dataset.from_tensors(np.zeros(5_000_000)).repeat(3)
    assert _differing(large, large) == []


def _of_texts(texts: list[str]) -> Any:
    return tf.data.Dataset.from_tensor_slices((texts * 20, [0, 1] * 20)).map(lambda text, _: tf.strings.length(text))


def test_texts_in_a_pipeline_are_compared() -> None:
    first = _of_texts(["a b", "c d"])
    assert _differing(_of_texts(["a b", "c d"]), first) == []
    assert _differing(_of_texts(["a b", "c e"]), first)
    one = tf.data.Dataset.from_tensors(b"\xff not text").map(lambda text: tf.strings.join([text, "and more"]))
    assert Table({"x": one}).entries


def test_a_layer_with_a_table_of_words_is_compared() -> None:
    def made(words: list[str]) -> Any:
        layer = tf.keras.layers.TextVectorization(max_tokens=50, output_sequence_length=4)
        layer.adapt(words)
        embedding = tf.keras.layers.Embedding(50, 4, embeddings_initializer="ones")
        model = tf.keras.Sequential([tf.keras.Input((1,), dtype="string"), layer, embedding])
        return model

    first = made(["good film", "bad film"])
    assert _differing(made(["good film", "bad film"]), first) == []
    assert _differing(made(["other words", "bad film"]), first)


def test_whole_numbers_in_what_a_pipeline_maps_are_compared_and_its_seeds_are_not() -> None:
    def made(target: int) -> Any:
        rows = tf.data.Dataset.from_tensor_slices([1, 2, 3]).shuffle(3)
        return rows.map(lambda row: tf.cast(row == target, tf.int64), num_parallel_calls=target)

    first = made(2)
    assert _differing(made(2), first) == []
    assert _differing(made(3), first)


def _augmented(factor: float = 0.1, mean: float = 0.0) -> Any:
    augment = tf.keras.Sequential([tf.keras.layers.RandomTranslation(factor, factor, seed=1)])
    scale = tf.keras.layers.Normalization(mean=mean, variance=1.0)
    centre = tf.Variable(mean)
    rows = tf.data.Dataset.from_tensor_slices(np.ones((6, 4, 4, 1), "float32")).batch(2)
    return rows.map(lambda images: augment(scale(images), training=True) - centre)


def test_a_pipeline_with_an_augmenting_layer_is_the_same_once_it_was_trained_with() -> None:
    first, used = _augmented(), _augmented()
    for _ in used:
        pass
    assert _differing(used, first) == []
    assert _differing(_augmented(factor=0.2), first)
    assert _differing(_augmented(mean=1.0), first)


def test_a_variable_that_a_pipeline_only_reads_is_compared_beside_a_generator() -> None:
    def made(centre: int, seed: int) -> Any:
        variable, generator = tf.Variable(float(centre)), tf.random.Generator.from_seed(seed)
        return tf.data.Dataset.range(3).map(lambda _: generator.normal(()) - variable)

    first = made(1, 1)
    assert _differing(made(1, 2), first) == []
    assert _differing(made(2, 1), first)


def test_a_pipeline_in_words() -> None:
    rows = tf.data.Dataset.from_tensor_slices((np.ones((6, 4), "float32"), [1] * 6)).batch(2).prefetch(2)
    assert describe(rows) == "_PrefetchDataset of 3 (tuple of 2: (None, 4) float32; (None,) int32)"
    any_shape = tf.data.Dataset.from_generator(list, output_signature=tf.TensorSpec(None, tf.float32))
    assert describe(any_shape).endswith("((...) float32)")


def _model(gamma: float, scale: float = 1.0) -> Any:
    class Scaled(tf.keras.layers.Layer):  # type: ignore[misc]
        def call(self, inputs: Any) -> Any:
            return inputs * scale

    def focal(given: float) -> Any:
        def loss(wanted: Any, found: Any) -> Any:
            return given * tf.reduce_mean(tf.square(wanted - found), axis=-1)

        return loss

    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Input((3,)), Scaled(), tf.keras.layers.Dense(1)])
    model.compile("adam", focal(gamma), metrics=["mae"])
    return model


def test_what_a_loss_was_made_with_and_what_layers_compute_are_compared() -> None:
    def values(model: Any) -> Any:
        return {"model": model, "loss": model.loss}

    first = values(_model(2.0))
    assert _differing(first, values(_model(2.0))) == []
    assert _differing(first, values(_model(3.0)))
    assert _differing(first, values(_model(2.0, scale=2.0)))


def test_settings_of_callbacks_are_compared() -> None:
    def stops(patience: int) -> Any:
        return tf.keras.callbacks.EarlyStopping(monitor="loss", patience=patience)

    def rates(factor: float) -> Any:
        return tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * factor)

    assert _differing(stops(3), stops(3)) == []
    assert _differing(stops(3), stops(4))
    assert _differing(rates(0.5), rates(0.5)) == []
    assert _differing(rates(0.5), rates(0.6))
