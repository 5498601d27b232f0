"""A model that travels gives its weights to the one that the program has made, which may be wrapped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from det_native.heap.graft import graft_names

pytestmark = pytest.mark.slow


def graft(there: Any, value: Any) -> tuple[Any, list[str]]:
    """Return what stands for one object that was given the state of another, and what could not be set."""
    names = {"value": there}
    sentences = graft_names(names, {"value": value})
    return names["value"], sentences


def made() -> tf.keras.Sequential:
    return tf.keras.Sequential([tf.keras.layers.Dense(3), tf.keras.layers.Dense(2)])


def test_one_that_is_not_built_is_built_as_the_other() -> None:
    there, other = made(), made()
    other(np.zeros((1, 4), dtype="float32"))
    result, sentences = graft(there, other)
    assert result is there
    assert sentences == []
    assert [one.tolist() for one in there.get_weights()] == [one.tolist() for one in other.get_weights()]


def test_one_of_another_build_becomes_that_build() -> None:
    there, other = made(), made()
    x = np.ones((1, 4), dtype="float32")
    there(np.zeros((1, 5), dtype="float32"))
    wanted = other(x).numpy().tolist()
    assert graft(there, other) == (there, [])
    assert there(x).numpy().tolist() == wanted
