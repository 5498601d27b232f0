"""Numbers of TensorFlow, as they are logged."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from det_harness.logged.numbers import array_of, number_of


def test_tensors_and_variables_are_numbers_and_symbols_are_not() -> None:
    assert number_of(tf.constant(0.5)) == 0.5
    assert number_of(tf.Variable(3)) == 3.0
    assert number_of(tf.zeros(2)) is None
    with tf.Graph().as_default():
        assert number_of(tf.constant(0.5)) is None  # it has no value yet


def test_tensors_are_arrays_whatever_their_type_is() -> None:
    for dtype in (tf.float32, tf.bfloat16, tf.float16, tf.int64):
        assert np.array_equal(array_of(tf.constant([1, 2], dtype)).astype(float), [1.0, 2.0])
