"""Values of tensors and elements of Datasets, whether TensorFlow executes eagerly or builds graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf


def number_of(tensor: Any) -> int:
    """Return the value of a tensor of one whole number."""
    return int(tf.keras.backend.get_value(tensor))


def elements_of(dataset: Any) -> Iterator[Any]:
    """Yield the elements of a Dataset: tensors, or arrays where graphs are built.

    Each call reads the Dataset from its start.
    """
    if tf.executing_eagerly():
        yield from dataset
        return
    iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
    element = iterator.get_next()
    # The session of Keras, in which Datasets that look something up find what they look in.
    session = tf.compat.v1.keras.backend.get_session()
    session.run(iterator.initializer)
    while True:
        try:
            found = session.run(element)
        except tf.errors.OutOfRangeError:
            return
        yield found
