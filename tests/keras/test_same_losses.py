"""The same seeds give the losses of plain Keras, bit for bit, also where a training is stopped and goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import plain_keras
import pytest
import tensorflow as tf
from callback_runs import Trainings, equal
from det_harness.frameworks.keras.arrays import keras_orders
from forked_programs import ForkedPrograms
from keras_generation import only_keras_2

from det_native.keras.generations import NUMBER

pytestmark = pytest.mark.slow

# With Keras 3 the batches of a Sequence are ordered, and those of a Dataset are shuffled, in another way.
SAME = [*plain_keras.KINDS]
if NUMBER > 2:
    SAME = [kind for kind in SAME if kind not in ("dataset", "recurrent", "sequence")]


@pytest.mark.long
def test_local_training_has_the_losses_of_plain_keras(tmp_path: Path, tensorflow_programs: ForkedPrograms) -> None:
    commands = [[plain_keras.__file__, how, *SAME] for how in ("plain", "local")]
    codes, outputs = tensorflow_programs.run(tmp_path, commands, {})
    assert codes == [0, 0], "\n".join(outputs)
    lines = [line for output in outputs for line in output.splitlines() if line.startswith("LOSSES ")]
    plain, local = (json.loads(line.removeprefix("LOSSES ")) for line in lines)
    for kind in SAME:
        assert local[kind] == plain[kind], kind


@pytest.mark.soak
@only_keras_2
def test_orders_can_be_had_from_any_epoch_on() -> None:
    tf.random.set_seed(3)
    whole = [order.numpy().tolist() for order in keras_orders(20, 0, 6)]
    assert [order.numpy().tolist() for order in keras_orders(20, 4, 6)] == whole[4:]
    assert len({tuple(order) for order in whole}) == 6
    assert all(sorted(order) == list(range(20)) for order in whole)


@only_keras_2
def test_a_layer_goes_on_from_a_state_that_is_put_back() -> None:
    """What a recurrent layer draws in one step has a generator for each."""
    from det_harness.frameworks.keras import model_state

    from det_native.keras.generations import keras2

    def made() -> Any:
        tf.keras.utils.set_random_seed(5)
        model = plain_keras.recurrent()
        model.build((None, 6))
        model_state.seed_random_layers(model, 7)
        return model, tf.function(lambda rows: model(rows, training=True))

    _, draw = made()
    rows = plain_keras.X[:8]
    drawn = [draw(rows).numpy() for _ in range(4)]
    other, again = made()
    assert np.array_equal(again(rows), drawn[0])
    assert np.array_equal(again(rows), drawn[1])
    states = [each.state.numpy() for each in keras2.generators_of(other)]
    numbers = keras2.numbers_of_generators(other)
    assert len(states) == len(numbers) + sum(numbers) > 2
    third, going_on = made()
    keras2.extend_generators(third, keras2.numbers_of_generators(other))
    for generator, state in zip(keras2.generators_of(third), states, strict=True):
        generator.state.assign(state)
    assert np.array_equal(going_on(rows), drawn[2])
    assert np.array_equal(going_on(rows), drawn[3])


@pytest.mark.soak
@only_keras_2
def test_a_layer_with_a_seed_of_its_own_gives_its_next_graph_that_of_a_run_that_was_never_stopped(
    tmp_path: Path,
) -> None:
    """A run that goes on makes a graph once more; the one that ``compile()`` brings is the same all the same."""
    from det_native.keras.generations import keras2

    trainings = Trainings(tmp_path, rate=0.3, own_seed=4, checkpoint_policy="all")
    whole = trainings.native(list)
    stopped = trainings.native(list, resume=whole.saved_at(10))
    assert equal(whole.model, stopped.model)
    assert keras2.own_seeds(stopped.model) == keras2.own_seeds(whole.model)
    assert keras2.own_seeds(whole.model)[0] > 4  # type: ignore[operator]
