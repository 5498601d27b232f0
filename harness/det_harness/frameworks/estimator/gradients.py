"""Gradients of an estimator's optimizer: averaged over the ranks, and gathered over batches before it makes a step.

An optimizer keeps its class: its ``apply_gradients`` gets the means, and is left out in batches that only gather. One
of ``tf.compat.v1.train`` gives them in ``compute_gradients`` already, so that code which clips them in between clips
the means. The global step counts batches, whether they make a step or not: schedules of learning rates go by it.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from det_harness.frameworks.keras.wire import Wire

#: The collection of a graph in which the variables lie that gradients are gathered in: each rank has its own.
_GATHERED = "det_native_gathered"


class Gradients:
    """What is done with gradients before an optimizer makes a step."""

    def __init__(self, wire: Wire, *, frequency: int = 1, average: bool = True) -> None:
        self.wire = wire
        self.frequency = frequency
        self.divisor = wire.size * (frequency if average else 1)
        self._optimizers: list[_Optimizer] = []
        self._restored: Sequence[Any] = ()

    def hook(self, optimizer: Any) -> None:
        """Put this before what an optimizer does; once."""
        if self.wire.size == 1 and self.frequency == 1:
            return
        if all(each.optimizer is not optimizer for each in self._optimizers):
            self._optimizers.append(_Optimizer(optimizer, len(self._optimizers), self))

    def restore(self, state: Sequence[Any]) -> None:
        """Go on gathering where :meth:`state` was taken."""
        self._restored = state

    def prepare(self) -> None:
        """Make what brings the gathered gradients to where they were, in the graph of the training."""
        variables = tf.compat.v1.get_collection(_GATHERED)
        self._begin = [variable.initializer for variable in variables]
        if len(self._restored) == len(variables):
            pairs = zip(variables, self._restored, strict=True)
            self._begin = [tf.compat.v1.assign(variable, value) for variable, value in pairs]

    def begin(self, session: Any) -> None:
        """Bring them there."""
        session.run(self._begin)

    def state(self, session: Any) -> list[Any]:
        """Return what was gathered since the last step."""
        found: list[Any] = session.run(session.graph.get_collection(_GATHERED))
        return [np.asarray(value) for value in found]


class _Optimizer:
    def __init__(self, optimizer: Any, number: int, owner: Gradients) -> None:
        self.optimizer = optimizer
        self._number = number
        self._owner = owner
        self._calls = 0
        self._due: Any = None
        # The graph in which the gradients that come next are means already.
        self._averaged_in: Any = None
        mine = vars(optimizer)
        self._apply = optimizer.apply_gradients
        mine["apply_gradients"] = self._apply_means
        if isinstance(optimizer, tf.compat.v1.train.Optimizer):
            self._compute = optimizer.compute_gradients
            mine["compute_gradients"] = self._compute_means

    def _compute_means(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        found = self._means(self._compute(*args, **kwargs))
        self._averaged_in = tf.compat.v1.get_default_graph()
        return found

    def _apply_means(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = list(grads_and_vars)
        if self._averaged_in is not tf.compat.v1.get_default_graph():
            pairs = self._means(pairs)
        self._averaged_in = None
        if self._owner.frequency == 1:
            return self._apply(pairs, *args, **kwargs)
        counter = self._counter(pairs, args, kwargs)

        def step() -> Any:
            with tf.control_dependencies(tf.nest.flatten(self._apply(pairs, *args, **kwargs))):
                return tf.constant(True)

        def wait() -> Any:
            counted = [] if counter is None else [tf.compat.v1.assign_add(counter, tf.ones((), counter.dtype))]
            with tf.control_dependencies(counted):
                return tf.constant(False)

        return tf.group(tf.cond(self._due, step, wait))

    def _counter(self, pairs: Any, args: Any, kwargs: Any) -> Any:
        """Return the global step, if it is what the optimizer counts its steps by."""
        if isinstance(self.optimizer, tf.compat.v1.train.Optimizer):
            given = inspect.signature(self._apply).bind(pairs, *args, **kwargs).arguments
            return given.get("global_step")
        counter = tf.compat.v1.train.get_global_step()
        return counter if self.optimizer.iterations is counter else None

    def _means(self, grads_and_vars: Any) -> list[tuple[Any, Any]]:
        """Return the means over the ranks, and over the batches of a step in the one that ends it."""
        pairs = list(grads_and_vars)
        name = f"det_native.gradients.{self._number}.{self._calls}"
        self._calls += 1
        given = [gradient for gradient, _ in pairs if gradient is not None]
        means = iter(self._sent(given, name) if self._owner.frequency == 1 else self._gathered(given, name))
        return [(gradient if gradient is None else next(means), variable) for gradient, variable in pairs]

    def _sent(self, gradients: Sequence[Any], name: str) -> list[Any]:
        owner = self._owner
        added = owner.wire.add_up(gradients, name) if gradients else []
        return [_divided(gradient, owner.divisor) for gradient in added]

    def _gathered(self, gradients: Sequence[Any], name: str) -> list[Any]:
        dense = [tf.convert_to_tensor(gradient) for gradient in gradients]
        count = _variable((), tf.int64)
        variables = [_variable(gradient.shape, gradient.dtype) for gradient in dense]
        pairs = zip(variables, dense, strict=True)
        added = [tf.convert_to_tensor(variable.assign_add(gradient)) for variable, gradient in pairs]
        self._due = tf.equal(tf.convert_to_tensor(count.assign_add(1)) % self._owner.frequency, 0)

        def send() -> list[Any]:
            sent = self._sent(added, name)
            with tf.control_dependencies(sent):
                cleared = [variable.assign(tf.zeros_like(variable)) for variable in variables]
            with tf.control_dependencies([tf.group(*cleared)]):
                return [tf.identity(gradient) for gradient in sent]

        found = tf.cond(self._due, send, lambda: [tf.identity(gradient) for gradient in added])
        return list(found) if isinstance(found, list | tuple) else [found]


def _variable(shape: Any, dtype: Any) -> Any:
    with tf.init_scope():  # out of loops and branches
        return tf.compat.v1.Variable(
            tf.zeros(shape, dtype),
            trainable=False,
            collections=[_GATHERED],
            use_resource=True,
            name="det_native_gathered",
        )


def _divided(gradient: Any, divisor: int) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values / divisor, gradient.indices, gradient.dense_shape)
    return gradient / divisor
