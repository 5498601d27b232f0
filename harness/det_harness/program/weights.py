"""Weights that a training in the notebook came to, put into the same model here."""

from __future__ import annotations

import io
from typing import Any

from det_native.errors import TrialDefinitionError


def put_into(name: str, model: Any, content: bytes) -> None:
    """Give a model of Keras, and its optimizer, the weights that it had in the notebook.

    Raises
    ------
    TrialDefinitionError
        If it is another model.
    """
    import numpy as np

    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        weights = [arrays[f"weight_{place}"] for place in range(sum(one.startswith("weight") for one in arrays))]
        states = [arrays[f"optimizer_{place}"] for place in range(sum(one.startswith("opt") for one in arrays))]
    if not _assigned(model.weights, weights):
        raise TrialDefinitionError(
            f"`{name}` was trained in the notebook, and its weights travel; here it is another model: it has "
            f"{len(model.weights)} arrays of weights, and {len(weights)} there, or other shapes."
        )
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None or not states:
        return
    if hasattr(optimizer, "build") and not getattr(optimizer, "built", False):
        optimizer.build(model.trainable_variables)
    variables = optimizer.variables
    _assigned(variables() if callable(variables) else variables, states)


def _assigned(variables: Any, arrays: list[Any]) -> bool:
    """Assign, if all shapes are the same."""
    if [tuple(one.shape) for one in variables] != [array.shape for array in arrays]:
        return False
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)
    return True
