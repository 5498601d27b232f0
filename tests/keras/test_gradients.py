"""What is done with the gradients of an optimizer of Keras before it makes a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from det_harness.frameworks.keras.gradients import Gradients
from det_harness.frameworks.keras.optimizers import aggregation_name, innermost, optimizers_of
from det_harness.frameworks.keras.wire import NoWire

pytestmark = pytest.mark.slow

NEW, LEGACY = tf.keras.optimizers, tf.keras.optimizers.legacy
SGD: list[Callable[[], Any]] = [lambda: NEW.SGD(1.0), lambda: LEGACY.SGD(1.0)]


class TwoRanks:
    """A wire with another rank at its end, of which it is known what it sends."""

    size = 2

    def __init__(self, gradient: float, share: float) -> None:
        self._sent, self._share = gradient * share, share
        self.names: list[str] = []

    def add_up(self, values: Any, name: str) -> list[Any]:
        self.names.append(name)
        return [value + (self._share if name.endswith("weight") else self._sent) for value in values]


def gathered(optimizer: Any, batches: list[tuple[float, float]], **how: Any) -> list[float]:
    """Return a variable, from 0, after each batch of (gradient, share of the rows)."""
    variable = tf.Variable(0.0)
    gradients = Gradients(NoWire(), **how)
    gradients.hook([optimizer])
    found = []
    for gradient, share in batches:
        gradients.begin_step(tf.constant(share), tf.constant(share))
        optimizer.apply_gradients([(tf.constant(gradient), variable)])
        gradients.end_step()
        found.append(float(variable))
    gradients.unhook()
    return found


@pytest.mark.parametrize("make", SGD)
def test_a_step_is_made_of_the_mean_over_the_rows_of_several_batches(make: Any) -> None:
    # Four rows of the one batch, two of the other: as one batch of six rows.
    optimizer = make()
    assert gathered(optimizer, [(3.0, 1.0), (6.0, 0.5), (1.0, 1.0)], frequency=2) == [0.0, -4.0, -4.0]
    assert int(optimizer.iterations) == 1


@pytest.mark.parametrize("make", SGD)
def test_or_of_their_sum(make: Any) -> None:
    assert gathered(make(), [(3.0, 1.0), (6.0, 1.0)], frequency=2, average=False) == [0.0, -9.0]


@pytest.mark.parametrize("make", SGD)
def test_ranks_count_by_their_rows(make: Any) -> None:
    wire, variable, optimizer = TwoRanks(gradient=8.0, share=0.125), tf.Variable(0.0), make()
    gradients = Gradients(wire)
    gradients.hook([optimizer])
    gradients.begin_step(tf.constant(0.5), tf.constant(0.625))
    optimizer.apply_gradients([(tf.constant(2.0), variable)])
    gradients.end_step()
    assert float(variable) == pytest.approx(-(2.0 * 4 + 8.0) / 5)
    gradients.unhook()
    optimizer.apply_gradients([(tf.constant(1.0), variable)])
    assert len(wire.names) == 1  # given back, it exchanges nothing


def test_gathered_gradients_are_exchanged_once_a_step() -> None:
    wire, variable, optimizer = TwoRanks(gradient=4.0, share=1.0), tf.Variable(0.0), NEW.SGD(1.0)
    gradients = Gradients(wire, frequency=2)
    gradients.hook([optimizer])
    for gradient in (1.0, 3.0):
        gradients.begin_step(tf.constant(0.5), tf.constant(1.0))
        optimizer.apply_gradients([(tf.constant(gradient), variable)])
        gradients.end_step()
    # Eager, each branch is made only when it is taken: one exchange of the weight, one of the gradient.
    assert len(wire.names) == len(set(wire.names)) == 2
    assert float(variable) == pytest.approx(-(0.5 * 1 + 0.5 * 3 + 4) / 2)


def test_gathering_goes_on_where_its_state_was_taken() -> None:
    def step(gradients: Gradients, optimizer: Any, gradient: Any) -> None:
        gradients.begin_step(tf.constant(1.0), tf.constant(1.0))
        optimizer.apply_gradients([(gradient, variable)])
        gradients.end_step()

    variable = tf.Variable([[0.0], [0.0]])
    of_rows = tf.IndexedSlices(tf.constant([[2.0]]), tf.constant([1]), tf.constant([2, 1]))  # of an embedding
    first, optimizer = Gradients(NoWire(), frequency=2), NEW.SGD(1.0)
    first.hook([optimizer])
    step(first, optimizer, of_rows)
    state = first.state()
    assert [value.tolist() for value in state[0]["gathered"]] == [[[0.0], [2.0]]]
    first.unhook()
    second, other = Gradients(NoWire(), frequency=2), NEW.SGD(1.0)
    second.restore(state)
    second.hook([other])
    assert second.state() == state
    step(second, other, tf.constant([[4.0], [4.0]]))
    np.testing.assert_array_equal(variable.numpy(), [[-2.0], [-3.0]])
    assert second.state()[0]["count"] == 2


@pytest.mark.parametrize("module", [NEW, LEGACY])
def test_the_private_method_by_which_an_optimizer_averages_its_gradients(module: Any) -> None:
    called = []
    optimizer = module.SGD(1.0, clipvalue=0.5)
    name = aggregation_name(optimizer)
    assert name == ("aggregate_gradients" if module is NEW else "_aggregate_gradients")
    assert callable(getattr(optimizer, name))
    vars(optimizer)[name] = lambda pairs: called.append(list(pairs)) or called[0]
    variable = tf.Variable(0.0)
    optimizer.apply_gradients([(tf.constant(3.0), variable)])
    # What is clipped is the mean.
    assert [[float(gradient) for gradient, _ in pairs] for pairs in called] == [[3.0]]
    assert float(variable) == -0.5


def test_all_optimizers_of_a_model_are_found_once_and_inside_the_scaling_of_a_loss() -> None:
    scaled = tf.keras.mixed_precision.LossScaleOptimizer(NEW.SGD(1.0))
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile(scaled, "mse")
    model.others = {"one": NEW.Adam(), "two": [LEGACY.SGD()]}
    model.inner = scaled.inner_optimizer
    found = optimizers_of(model)
    assert [type(each).__name__ for each in found] == ["LossScaleOptimizerV3", "Adam", "SGD"]
    assert innermost(scaled) is scaled.inner_optimizer
    assert innermost(found[1]) is found[1]
