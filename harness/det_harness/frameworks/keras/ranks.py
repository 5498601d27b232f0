"""What the ranks of a Keras trial do together between batches, so that they stay equal and go the same way."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf

from det_harness.frameworks.keras.model_state import metric_values, set_metric_values
from det_harness.frameworks.keras.wire import added_up, is_number
from det_harness.ranks.communicator import Communicator
from det_native.errors import TrialDefinitionError
from det_native.keras.generations import internals

logger = logging.getLogger("det_native")

Columns = Mapping[str, Sequence[float | None]]


class Ranks:
    """The ranks of a trial, or the one that there is: then nothing here costs anything."""

    def __init__(self, communicator: Communicator) -> None:
        self.several = communicator.size > 1
        self._communicator = communicator

    def agree(self, flag: bool) -> bool:
        """Return whether a flag is set on any rank; a collective call."""
        return self._communicator.all_reduce_any(flag)()[0] if self.several else flag

    def most(self, number: int) -> int:
        """Return the largest of the ranks' numbers; a collective call."""
        return max(self._communicator.all_gather_object(number)) if self.several else number

    def broadcast_model(self, model: Any) -> None:
        """Make the weights, and the optimizer's state, those of the first rank; a collective call.

        Raises
        ------
        TrialDefinitionError
            If the ranks have made models of different shapes.
        """
        if not self.several:
            return
        variables = _variables(model)
        shapes = [(tuple(each.shape), tf.as_dtype(each.dtype).name) for each in variables]
        for rank, other in enumerate(self._communicator.all_gather_object(shapes)):
            if other != shapes:
                raise TrialDefinitionError(
                    f"The slots have made different models: the one of slot {rank} has {len(other)} variables of other "
                    f"shapes than the {len(shapes)} here. Build the same model on each; what differs by slot is data."
                )
        internals.set_values(variables, self._communicator.broadcast_object(internals.values_of(variables)))

    def swap_in_state(self, model: Any) -> list[Any]:
        """Make what is not trained (moving means, say) the first rank's, for a validation; returns what was there."""
        if not self.several:
            return []
        return self._take_firsts(model.non_trainable_weights)

    def swap_back_state(self, model: Any, own: Sequence[Any]) -> None:
        """Put back what :meth:`swap_in_state` has returned."""
        if self.several:
            _assign(model.non_trainable_weights, own)

    @contextmanager
    def first_weights(self, model: Any) -> Iterator[None]:
        """Have the weights of the first rank on all of them in the block; collective."""
        if not self.several:
            yield
            return
        own = self._take_firsts(model.weights)
        try:
            yield
        finally:
            _assign(model.weights, own)

    def _take_firsts(self, variables: Sequence[Any]) -> list[Any]:
        """Give variables the values of the first rank; return those that they had."""
        own = [variable.numpy() for variable in variables]
        _assign(variables, self._communicator.broadcast_object(own))
        return own

    def merged(
        self, model: Any, logs: Mapping[str, Any], *, counts: bool = True, states: Sequence[Any] | None = None
    ) -> dict[str, Any]:
        """Return metrics over the data of all ranks, each as often as it has data; a collective call.

        The states of Keras's metrics are sums, which are added up: so an area under a curve is that of all data, too.
        What is no metric of the model's is averaged.

        Parameters
        ----------
        counts : bool
            False if what this rank has seen belongs to another one's data.
        states : sequence, optional
            What the metrics had before this rank was given what belongs to another one.
        """
        own = metric_values(model)
        # A step of the user's may report under the name of a metric what that metric was not told.
        certain = {name for name, value in _results(model).items() if name in logs and _same(logs[name], value)}
        given = own if states is None else states
        parts = self._communicator.all_gather_object((given, dict(logs), certain, counts))
        counted = [part for part in parts if part[-1]]
        of_ranks = [part[0] for part in counted]
        means = _means([part[1] for part in counted])
        certain = set.intersection(*(part[2] for part in counted))
        if len({len(state) for state in of_ranks}) > 1:
            logger.warning("The slots have different metrics: what is reported is the mean of theirs.")
            return means
        variables = internals.metric_variables(model)
        columns = zip(variables, zip(*of_ranks, strict=True), strict=True)
        added = [added_up(variable, values) for variable, values in columns]
        set_metric_values(model, added)
        found = {name: value for name, value in _results(model).items() if name in certain}
        set_metric_values(model, own)
        return {**means, **found}

    def averaged(self, columns: Columns) -> dict[str, list[float | None]]:
        """Return columns of training metrics as means over the ranks; a collective call."""
        parts = self._communicator.all_gather_object(dict(columns))
        return {
            name: [_mean([part.get(name, [None] * len(own))[row] for part in parts]) for row in range(len(own))]
            for name, own in parts[0].items()
        }


def _assign(variables: Sequence[Any], values: Sequence[Any]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def _variables(model: Any) -> list[Any]:
    from det_harness.frameworks.keras.optimizers import optimizers_of

    variables = list(model.weights)  # not the states of random layers, which are each rank's own
    for optimizer in optimizers_of(model):
        known = optimizer.variables
        variables += known() if callable(known) else known
    return [each for each in internals.variables_in(variables) if is_number(each)]


def _results(model: Any) -> dict[str, Any]:
    found = {name: np.asarray(value) for name, value in model.get_metrics_result().items()}
    return {name: value.item() if value.ndim == 0 else value for name, value in found.items()}


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(np.allclose(one, other, rtol=1e-5, atol=1e-7, equal_nan=True))
    except (TypeError, ValueError):
        return False


def _means(logs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in logs[0].items():
        try:
            found[name] = np.mean([np.asarray(each[name], float) for each in logs], axis=0)[()]
        except (KeyError, TypeError, ValueError):
            found[name] = value
    return found


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if len(numbers) == len(values) else None
