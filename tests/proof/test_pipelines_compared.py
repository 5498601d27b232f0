"""Fingerprints of TensorFlow's Datasets, which are never iterated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from det_native.keras.compared import settings_of, weights_of
from det_native.proof.call import differences, facts_of
from det_native.proof.content import content_of
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
    [found] = differences(proof, {"x": _made(ROWS * (1 + 1e-13))})
    assert found.rounding


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
        return [settings_of(model), weights_of(model)]

    first = content_of(made(["good film", "bad film"])).exact
    assert content_of(made(["good film", "bad film"])).exact == first
    assert content_of(made(["other words", "bad film"])).exact != first
