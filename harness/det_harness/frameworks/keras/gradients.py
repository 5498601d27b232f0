"""Gradients of a Keras optimizer: averaged over the ranks, and gathered over several batches before it makes a step.

An optimizer keeps its class and its state: only what it does with the gradients that it is given is put before its own
method, in the instance, and taken back. So models, checkpoints and users' own training steps see the same optimizer.
The mean is over the rows of a global batch, of which ranks may have different numbers: each multiplies its gradients by
its share of the rows, and the sum is divided by the sum of the shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from det_harness.frameworks.keras.optimizers import aggregation_name, innermost
from det_harness.frameworks.keras.wire import Wire
from det_native.keras.generations import NUMBER

Pairs = list[tuple[Any, Any]]


class Gradients:
    """What is done with the gradients of a model's optimizers before they make a step."""

    def __init__(self, wire: Wire, *, frequency: int = 1, average: bool = True) -> None:
        self.wire = wire
        self.frequency = frequency
        self.average = average
        self._share: Any = None
        self._total: Any = None
        self._calls = 0
        self._optimizers: list[_Optimizer] = []
        self._restored: list[Any] = []

    def begin_step(self, share: Any, total: Any) -> None:
        """Begin the training step that is being made.

        Parameters
        ----------
        share : tf.Tensor
            This rank's rows, as a part of a full global batch.
        total : tf.Tensor
            The shares of all ranks.
        """
        self._share, self._total, self._calls = share, total, 0

    def end_step(self) -> None:
        """End it: what comes now has no share of its own."""
        self._share = self._total = None

    def hook(self, optimizers: Iterable[Any]) -> None:
        """Put this before what optimizers do; each once."""
        for optimizer in optimizers:
            if all(each.optimizer is not optimizer for each in self._optimizers):
                self._optimizers.append(_Optimizer(optimizer, len(self._optimizers), self))
        for each, state in zip(self._optimizers, self._restored, strict=False):
            each.restored = state

    def unhook(self) -> None:
        """Give the optimizers back as they were."""
        for each in self._optimizers:
            each.unhook()
        self._optimizers = []

    def state(self) -> list[Any]:
        """Return what was gathered since the last steps, by optimizer."""
        return [each.state() for each in self._optimizers]

    def restore(self, state: Sequence[Any]) -> None:
        """Go on gathering where :meth:`state` was taken."""
        self._restored = list(state)
        for each, one in zip(self._optimizers, self._restored, strict=False):
            each.restore(one)

    @property
    def share(self) -> Any:
        """The share of the batch; outside a training step, that of a rank among equals."""
        return tf.constant(1.0 / self.wire.size) if self._share is None else self._share

    @property
    def total(self) -> Any:
        """The sum of the shares."""
        return tf.constant(1.0) if self._total is None else self._total

    def name(self, number: int) -> str:
        """Return a name for what an optimizer sends next; the same on every rank."""
        self._calls += 1
        return f"det_native.gradients.{number}.{self._calls}"


class _Optimizer:
    """One optimizer.

    Attributes
    ----------
    restored
        What :meth:`state` returned before a restart, until it is used.
    """

    def __init__(self, optimizer: Any, number: int, owner: Gradients) -> None:
        self.optimizer = optimizer
        self.restored: Any = None
        self._number = number
        self._owner = owner
        self._inner = innermost(optimizer)
        self._gathered: dict[Any, tf.Variable] = {}
        self._weight: Any = None
        self._count: Any = None
        self._stepping = False
        self._replaced: list[tuple[dict[str, Any], str, Any]] = []
        if owner.wire.size > 1 and NUMBER > 2:
            self._apply_of_3: Callable[..., Any] = optimizer.apply
            self._replace(optimizer, "apply", self._apply_means)
        elif owner.wire.size > 1:
            self._replace(self._inner, aggregation_name(self._inner), self._mean)
        if owner.frequency > 1:
            self._apply_now: Callable[..., Any] = optimizer.apply_gradients
            self._replace(optimizer, "apply_gradients", self._gather)

    def unhook(self) -> None:
        for attributes, name, before in reversed(self._replaced):
            attributes.pop(name)
            if before is not None:
                attributes[name] = before
        self._replaced = []

    def state(self) -> Any:
        if self._count is None:
            return self.restored
        gathered = [variable.numpy() for variable in self._gathered.values()]
        return {"gathered": gathered, "weight": self._weight.numpy(), "count": int(self._count)}

    def restore(self, state: Any) -> None:
        self.restored = state
        if self._count is None or state is None:
            return
        for variable, value in zip(self._gathered.values(), state["gathered"], strict=True):
            variable.assign(value)
        self._weight.assign(state["weight"])
        self._count.assign(state["count"])

    def _replace(self, owner: Any, name: str, method: Any) -> None:
        # Past the tracking of attributes, which would make it a part of checkpoints.
        attributes = vars(owner)
        self._replaced.append((attributes, name, attributes.get(name)))
        attributes[name] = method

    def _apply_means(self, grads: Iterable[Any], trainable_variables: Any = None) -> Any:
        """Have an optimizer of Keras 3, which has no place of its own for it, clip and use the means."""
        gradients = list(grads)
        means = self._mean(zip(gradients, gradients, strict=True))
        return self._apply_of_3([gradient for gradient, _ in means], trainable_variables)

    def _mean(self, grads_and_vars: Iterable[tuple[Any, Any]]) -> Pairs:
        """Return the means over the ranks."""
        owner, pairs = self._owner, list(grads_and_vars)
        name = owner.name(self._number)
        share, total = owner.share, owner.total
        if self._stepping:  # what was gathered has its shares in it
            [weight] = owner.wire.add_up([self._weight.read_value()], f"{name}.weight")
            share, total = None, weight / self._sum_of_means
        given = [gradient for gradient, _ in pairs if gradient is not None]
        own = given if share is None else [_times(gradient, share) for gradient in given]
        added = iter(owner.wire.add_up(own, name) if own else ())
        return [
            (gradient if gradient is None else _times(next(added), 1.0 / total), variable)
            for gradient, variable in pairs
        ]

    @property
    def _sum_of_means(self) -> float:
        """By what a mean over the gathered batches is multiplied."""
        return 1.0 if self._owner.average else float(self._owner.frequency)

    def _gather(self, grads_and_vars: Iterable[tuple[Any, Any]], *args: Any, **kwargs: Any) -> Any:
        """Add the gradients of a batch up; let the optimizer make its step of the last of them."""
        owner = self._owner
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars if gradient is not None]
        with tf.init_scope():
            self._make([variable for _, variable in pairs])
        for gradient, variable in pairs:
            self._gathered[variable.ref()].assign_add(_times(tf.convert_to_tensor(gradient), owner.share))
        self._weight.assign_add(owner.share)
        self._count.assign_add(1)

        def step() -> Any:
            own = [(self._gathered[variable.ref()].read_value(), variable) for _, variable in pairs]
            if owner.wire.size == 1:
                scale = self._sum_of_means / self._weight
                own = [(_times(gradient, scale), variable) for gradient, variable in own]
            self._stepping = True
            try:
                self._apply_now(own, *args, **kwargs)
            finally:
                self._stepping = False
            for _, variable in pairs:
                gathered = self._gathered[variable.ref()]
                gathered.assign(tf.zeros_like(gathered))
            self._weight.assign(0.0)
            return tf.constant(True)

        tf.cond(tf.equal(self._count % owner.frequency, 0), step, lambda: tf.constant(False))
        return self.optimizer.iterations

    def _make(self, variables: Sequence[Any]) -> None:
        """Make what gradients are gathered in, with what was in it before a restart."""
        state = self.restored
        for variable in variables:
            if variable.ref() in self._gathered:
                continue
            number = len(self._gathered)
            known = state is not None and number < len(state["gathered"])
            first = state["gathered"][number] if known else tf.zeros(variable.shape, variable.dtype)
            self._gathered[variable.ref()] = tf.Variable(first, trainable=False, dtype=variable.dtype)
        if self._count is None:
            weight, count = (0.0, 0) if state is None else (state["weight"], state["count"])
            self._weight = tf.Variable(weight, trainable=False, dtype=tf.float32)
            self._count = tf.Variable(count, trainable=False, dtype=tf.int64)


def _times(gradient: Any, factor: Any) -> Any:
    factor = tf.cast(factor, gradient.dtype)
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
    return gradient * factor
