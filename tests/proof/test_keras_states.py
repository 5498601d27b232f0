"""Models of Keras that functions read, and that are not the ones in training: their numbers become the notebook's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from test_put_right import Call, _reading, compared, noted

keras = tf.keras


def _teacher(seed: int, *, frozen: bool) -> Any:
    keras.utils.set_random_seed(seed)
    teacher = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2), keras.layers.BatchNormalization()])
    teacher(np.random.rand(8, 3).astype("float32"), training=True)
    teacher.trainable = not frozen
    return teacher


@pytest.mark.parametrize("frozen", [True, False])
def test_a_model_that_a_function_reads_takes_the_notebooks_weights_and_averages(frozen: bool) -> None:
    there, here = (_teacher(seed, frozen=frozen) for seed in (0, 1))
    variables = here.layers[-1].moving_mean
    rows = compared(noted(Call({}, _reading(teacher=there))), Call({}, _reading(teacher=here)))
    assert {row.how for row in rows} == {"notebook's value"}
    for wanted, weight in zip(there.get_weights(), here.get_weights(), strict=True):
        np.testing.assert_array_equal(wanted, weight)
    assert here.layers[-1].moving_mean is variables
