"""What each generation of Keras is asked for; the modules beside this one have these functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Generation(Protocol):
    """A module for one generation.

    Attributes
    ----------
    QUEUE_DEFAULTS : mapping
        Arguments of ``fit`` for how data are read that this generation's ``fit`` has not, with their defaults.
    """

    QUEUE_DEFAULTS: Mapping[str, Any]

    def takes_several_batches(self, model: Any) -> bool:
        """Return whether one call of the model's training function takes several batches."""

    def class_weighting(self, class_weight: dict[int, float]) -> Any:
        """Return what is mapped over a Dataset of ``(x, y)`` or ``(x, y, sample_weight)`` for weights of classes."""

    def is_compiled(self, model: Any) -> bool:
        """Return whether a model is compiled."""

    def build_on(self, model: Any, inputs: Any) -> None:
        """Make the variables of a model for inputs like these; its layers compute nothing, and draw no numbers."""

    def trained_by(self, optimizer: Any) -> list[Any] | None:
        """Return keys of the variables that an optimizer was built for; None where it does not tell."""

    def build_for(self, optimizer: Any, variables: Sequence[Any]) -> None:
        """Make the variables that an optimizer needs to train these."""

    def key_of(self, variable: Any) -> Any:
        """Return the key of a variable."""

    def metrics_of(self, model: Any) -> list[Any]:
        """Return the single metrics of a model, with those of the losses of its outputs."""

    def metric_variables(self, model: Any) -> list[Any]:
        """Return the variables of all metrics."""

    def variables_in(self, weights: Iterable[Any]) -> list[Any]:
        """Return the variables among what Keras counts as weights."""

    def values_of(self, variables: Sequence[Any]) -> list[Any]:
        """Return the values of variables as arrays."""

    def set_values(self, variables: Sequence[Any], values: Sequence[Any]) -> None:
        """Give variables values."""

    def settle(self, model: Any) -> None:
        """Put into the variables of a model what its training has reached."""

    def counters_of(self, model: Any) -> list[Any]:
        """Return the variables that count the steps of a model."""

    def layers_of(self, model: Any, *, include_self: bool = True) -> list[Any]:
        """Return the layers of a model and theirs in turn."""

    def as_in_fit(self, model: Any) -> AbstractContextManager[Any]:
        """Return a context in which layers are trained or not as ``fit()`` has them."""

    def metrics_given(self, model: Any) -> list[Any] | None:
        """Return what a model was compiled with as metrics; None where that does not tell what it will report."""

    def metric_objects_given(self, model: Any) -> list[Any]:
        """Return what a model was compiled with as metrics, for all of its outputs."""

    def greater_is_better(self, name: str) -> bool:
        """Return whether Keras's callbacks with ``mode="auto"`` take greater values of a metric for better."""

    def seed_as_plain(self, seed: int) -> None:
        """Seed what plain Keras draws from in a new process, so that seeds set later count as they do there."""

    def seed(self, seed: int) -> None:
        """Make the weights of models built from now on follow from a seed."""

    def reading_of(self, sequence: Any) -> dict[str, Any]:
        """Return how a Sequence says itself that it is read, as arguments for Keras's queues."""
