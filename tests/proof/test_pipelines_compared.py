"""Fingerprints of TensorFlow's Datasets, which are never iterated."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from det_native.keras.compared import code_of, inputs_of_model, settings_of_callback
from det_native.proof.call import Severity, differences, facts_of
from det_native.proof.content import content_of
from det_native.proof.lookups import read_by
from det_native.proof.words import describe

from det_native.schema.proof import CallProof

pytestmark = pytest.mark.slow

ROWS = np.arange(8.0)


def _made(rows: Any, batch: int = 2, add: float = 1.0) -> Any:
    return tf.data.Dataset.from_tensor_slices(rows).map(lambda x: x + add).shuffle(4).batch(batch)


def test_equal_datasets_are_equal() -> None:
    assert content_of(_made(ROWS)).exact == content_of(_made(ROWS)).exact


@pytest.mark.parametrize(
    "other", [_made(ROWS * 2), _made(ROWS, batch=4), _made(ROWS, add=3.0), _made(ROWS).take(1), _made(ROWS).cache()]
)
def test_other_datasets_are_others(other: Any) -> None:
    assert content_of(_made(ROWS)).exact != content_of(other).exact


def test_last_digits_of_its_rows() -> None:
    proof = CallProof(facts=facts_of({"x": _made(ROWS)}), seed=1)
    [difference] = differences(proof, {"x": _made(ROWS * (1 + 1e-13))})
    assert difference.severity is Severity.ROUNDING


def test_one_that_is_too_large_to_write_or_runs_python_counts_by_its_form() -> None:
    def rows() -> Any:
        raise AssertionError("it was iterated")
        yield 1.0

    spec = tf.TensorSpec((), tf.float64)
    assert content_of(tf.data.Dataset.from_generator(rows, output_signature=spec)).exact
    large = tf.data.Dataset.from_tensors(np.zeros(5_000_000)).repeat(3)
    assert content_of(large).exact == content_of(large).exact


def _of_texts(texts: list[str]) -> Any:
    return tf.data.Dataset.from_tensor_slices((texts * 20, [0, 1] * 20)).map(lambda text, _: tf.strings.length(text))


def test_texts_in_a_pipeline_are_compared() -> None:
    first = content_of(_of_texts(["a b", "c d"])).exact
    assert content_of(_of_texts(["a b", "c d"])).exact == first
    assert content_of(_of_texts(["a b", "c e"])).exact != first
    one = tf.data.Dataset.from_tensors(b"\xff not text").map(lambda text: tf.strings.join([text, "and more"]))
    assert content_of(one).exact


def test_a_layer_with_a_table_of_words_is_compared() -> None:
    def made(words: list[str]) -> Any:
        layer = tf.keras.layers.TextVectorization(max_tokens=50, output_sequence_length=4)
        layer.adapt(words)
        embedding = tf.keras.layers.Embedding(50, 4, embeddings_initializer="ones")
        model = tf.keras.Sequential([tf.keras.Input((1,), dtype="string"), layer, embedding])
        return [given.value for given in inputs_of_model(model).values()]

    first = content_of(made(["good film", "bad film"])).exact
    assert content_of(made(["good film", "bad film"])).exact == first
    assert content_of(made(["other words", "bad film"])).exact != first


def test_whole_numbers_in_what_a_pipeline_maps_are_compared_and_its_seeds_are_not() -> None:
    def made(target: int) -> Any:
        rows = tf.data.Dataset.from_tensor_slices([1, 2, 3]).shuffle(3)
        return rows.map(lambda row: tf.cast(row == target, tf.int64), num_parallel_calls=target)

    first = content_of(made(2)).exact
    assert content_of(made(2)).exact == first
    assert content_of(made(3)).exact != first


def _augmented(factor: float = 0.1, mean: float = 0.0) -> Any:
    augment = tf.keras.Sequential([tf.keras.layers.RandomTranslation(factor, factor, seed=1)])
    scale = tf.keras.layers.Normalization(mean=mean, variance=1.0)
    centre = tf.Variable(mean)
    rows = tf.data.Dataset.from_tensor_slices(np.ones((6, 4, 4, 1), "float32")).batch(2)
    return rows.map(lambda images: augment(scale(images), training=True) - centre)


def test_a_pipeline_with_an_augmenting_layer_is_the_same_once_it_was_trained_with() -> None:
    first, used = content_of(_augmented()), _augmented()
    for _ in used:
        pass
    assert content_of(used).exact == first.exact
    assert content_of(_augmented(factor=0.2)).exact != first.exact
    assert content_of(_augmented(mean=1.0)).exact != first.exact


def test_a_variable_that_a_pipeline_only_reads_is_compared_beside_a_generator() -> None:
    def made(centre: int, seed: int) -> Any:
        variable, generator = tf.Variable(float(centre)), tf.random.Generator.from_seed(seed)
        return tf.data.Dataset.range(3).map(lambda _: generator.normal(()) - variable)

    first = content_of(made(1, 1)).exact
    assert content_of(made(1, 2)).exact == first
    assert content_of(made(2, 1)).exact != first


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

    model = tf.keras.Sequential([tf.keras.layers.Input((3,)), Scaled(), tf.keras.layers.Dense(1)])
    model.compile("adam", focal(gamma), metrics=["mae"])
    return model


def test_what_a_loss_was_made_with_and_what_layers_compute_are_compared() -> None:
    def content(model: Any) -> Any:
        parts = {name: given for name, given in inputs_of_model(model).items() if given.role != "weights"}
        return [CallProof(facts=facts_of(found), seed=1) for found in (parts, read_by(code_of(model)))]

    first, again = content(_model(2.0)), content(_model(2.0))
    assert first == again
    assert content(_model(3.0))[0] != first[0]
    assert content(_model(2.0, scale=2.0))[1] != first[1]


def test_settings_of_callbacks_are_compared_but_not_what_training_changes() -> None:
    def stops(patience: int) -> Any:
        return tf.keras.callbacks.EarlyStopping(monitor="loss", patience=patience)

    def rates(factor: float) -> Any:
        return tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * factor)

    def content(callback: Any) -> Any:
        [fact] = facts_of({"callback": settings_of_callback(callback)})
        return [(leaf.path, leaf.masked or leaf.exact) for leaf in fact.leaves]

    used = stops(3)
    model = _model(1.0)
    model.fit(ROWS[:6].reshape(2, 3), ROWS[:2], callbacks=[used, history := tf.keras.callbacks.History()], verbose=0)
    assert content(used) == content(stops(3)) != content(stops(4))
    assert content(history) == content(tf.keras.callbacks.History())
    assert content(rates(0.5)) == content(rates(0.5)) != content(rates(0.6))
    boards = [tf.keras.callbacks.TensorBoard(f"logs/{time.strftime('%Y-%m-%d')}-07{minute}") for minute in (10, 20)]
    assert content(boards[0]) == content(boards[1])
