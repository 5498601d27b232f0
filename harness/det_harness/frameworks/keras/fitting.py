"""Whether a model is made as the one of a checkpoint, and how it stays as it is where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from det_harness.frameworks.keras.optimizers import innermost, optimizers_of
from det_native.errors import ArgumentError, CheckpointError
from det_native.keras.generations import internals

_REMEDY = "experiment.top_checkpoint().load() makes the model as it was trained."


def described(model: Any) -> dict[str, Any]:
    """Return what a model and its optimizers are made of, for a checkpoint.

    The variables that an optimizer trains are named by their places among those of the model.
    """
    weights = internals.variables_in(model.weights)
    places = {internals.key_of(variable): place for place, variable in enumerate(weights)}
    optimizers = []
    for optimizer in optimizers_of(model):
        trained = internals.trained_by(innermost(optimizer))
        known = trained is not None and all(key in places for key in trained)
        trains = [places[key] for key in trained or ()] if known else None
        optimizers.append({"class": type(optimizer).__name__, "trains": trains})
    return {"weights": [[_name(each), _shape(each)] for each in weights], "optimizers": optimizers}


def check(model: Any, made_of: Mapping[str, Any] | None) -> None:
    """Compare a model with what the checkpoint's was made of, before anything is loaded.

    Parameters
    ----------
    made_of : mapping or None
        From :func:`described`; a checkpoint of an earlier version has none.

    Raises
    ------
    CheckpointError
        If weights or optimizers differ, or the model has no weights yet; it names both sides.
    """
    here = [(_name(each), _shape(each)) for each in _weights(model)]
    if not model.built and len(here) < len(made_of["weights"] if made_of else [""]):
        raise CheckpointError(
            f"The model '{model.name}' has no weights yet to load into: call it on a batch, or give it an Input, first."
        )
    if made_of is None:
        return
    saved = [(name, list(shape)) for name, shape in made_of["weights"]]
    if [shape for _, shape in saved] != [shape for _, shape in here]:
        places = range(max(len(saved), len(here)))
        shapes = [[part[place][1] if place < len(part) else None for part in (saved, here)] for place in places]
        place = next(place for place in places if shapes[place][0] != shapes[place][1])
        raise CheckpointError(
            f"The trained weights do not fit the model '{model.name}': the experiment's has {_shown(saved, place)}, "
            f"this one has {_shown(here, place)}. {_REMEDY}"
        )
    classes = [optimizer["class"] for optimizer in made_of["optimizers"]]
    own = [type(each).__name__ for each in optimizers_of(model)]
    if own and own != classes:
        raise CheckpointError(
            f"The optimizer of the model '{model.name}' is {' and '.join(own)}, the experiment trained with "
            f"{' and '.join(classes) or 'none'}: compile() the model as it was then, or load before compile()."
        )


def build_optimizers(model: Any, made_of: Mapping[str, Any] | None) -> None:
    """Make the variables of optimizers that have not trained yet."""
    own, weights = optimizers_of(model), _weights(model)
    for optimizer, saved in zip(own, (made_of or {}).get("optimizers", ()), strict=False):
        trains = saved["trains"]
        if trains is not None and not internals.trained_by(innermost(optimizer)):
            internals.build_for(optimizer, [weights[place] for place in trains])


@contextmanager
def unchanged_on_error(model: Any) -> Iterator[None]:
    """Give the variables of a model their values back if the block fails."""
    internals.settle(model)
    variables = [*internals.variables_in(model.variables), *optimizer_variables(model), *internals.counters_of(model)]
    variables = list({id(each): each for each in variables}.values())
    values = internals.values_of(variables)
    try:
        yield
    except BaseException:
        internals.set_values(variables, values)
        raise


def checked_target(target: Any, optimizer: Any) -> Any:
    """Return the model that a user names.

    Raises
    ------
    ArgumentError
        If it is none, or an optimizer is named beside it.
    """
    if not isinstance(target, tf.keras.Model):
        name = target.__name__ if isinstance(target, type) else f"a {type(target).__name__}"
        raise ArgumentError(
            f"load_into() of an experiment of Keras takes a Keras model, not {name}: "
            "experiment.top_checkpoint().load() makes the model by itself."
        )
    if optimizer is not None and optimizer is not getattr(target, "optimizer", None):
        raise ArgumentError("load_into() finds the optimizer in the Keras model: leave optimizer= out.")
    return target


def optimizer_variables(model: Any) -> list[Any]:
    """Return the variables of all optimizers of a model."""
    found: list[Any] = []
    for optimizer in optimizers_of(model):
        variables = getattr(optimizer, "variables", ())
        found += variables() if callable(variables) else variables
    return found


def _weights(model: Any) -> list[Any]:
    """Return the weights of a model, none of one that waits for its first batch."""
    try:
        return internals.variables_in(model.weights)
    except ValueError:
        return []


def _name(variable: Any) -> str:
    return str(getattr(variable, "path", None) or variable.name)


def _shape(variable: Any) -> list[int]:
    return [int(size) for size in variable.shape]


def _shown(weights: Sequence[tuple[str, list[int]]], place: int) -> str:
    """Return how a weight is named, with how many there are."""
    count = f"{len(weights)} weights"
    if place >= len(weights):
        return f"only {count}"
    name, shape = weights[place]
    return f"{count}, of them {name} {tuple(shape)}"
