"""What a training call was given in the notebook, so that a worker can tell whether it was given the same."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class InputFact(BaseModel):
    """What is known of one input of a call.

    Attributes
    ----------
    part : str
        Which input: ``x``, ``the model's weights``.
    name : str
        The notebook's variable that holds it, empty if none does.
    text : str
        What a person is told: ``array (1437, 64) float64, mean 4.884``.
    exact : str
        Fingerprint of all content.
    loose : str
        Fingerprint of all content but for floating-point numbers, of which it has shapes and types.
    samples : tuple of float
        Some of those numbers, always from the same places, and the least and the greatest of each part.
    means : tuple of float
        Of each part of those numbers, that of all of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    part: str
    name: str = ""
    text: str
    exact: str
    loose: str
    samples: tuple[float, ...] = ()
    means: tuple[float, ...] = ()


class CallProof(BaseModel):
    """The inputs of a training call in the notebook, which had these hyperparameters and this trial's seed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    facts: tuple[InputFact, ...] = ()
    hparams: dict[str, Any] = Field(default_factory=dict)
    seed: int
