"""The stream of ``keras.random``: a replay of a cell draws what the notebook drew, and a checkpoint keeps its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
from det_harness.trial import rng

from det_native.process.streams import current_streams, encoded

pytestmark = pytest.mark.slow

keras = tf.keras


def drawn() -> list[float]:
    values = keras.random.normal((3,))
    return [float(each) for each in keras.ops.convert_to_numpy(values)]


@pytest.fixture(autouse=True)
def _streams_as_before() -> Any:
    with rng.preserved():
        yield
    keras.utils.clear_session()


def forget() -> None:
    """Be as a process that has drawn nothing."""
    keras.utils.clear_session()


def go_on() -> None:
    """Be a process that has drawn something else."""
    keras.utils.set_random_seed(99)
    drawn()


@pytest.mark.parametrize("elsewhere", [forget, go_on])
@pytest.mark.parametrize("before", [0, 2])
def test_a_replay_draws_what_the_notebook_drew(before: int, elsewhere: Callable[[], None]) -> None:
    keras.utils.set_random_seed(4)
    for _ in range(before):
        drawn()
    sent = encoded(current_streams())
    expected = [drawn(), drawn()]
    elsewhere()
    rng.apply_encoded(sent)
    assert [drawn(), drawn()] == expected


def test_a_draw_is_noted() -> None:
    keras.utils.set_random_seed(4)
    drawn()
    before = current_streams()["keras_3"]
    drawn()
    assert current_streams()["keras_3"] != before


def test_what_a_process_keeps_and_puts_back() -> None:
    keras.utils.set_random_seed(4)
    drawn()
    kept = rng.capture()
    expected = drawn()
    go_on()
    rng.apply(kept)
    assert drawn() == expected
