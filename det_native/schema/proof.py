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
    untold : str
        Why it cannot be compared, a sentence; empty if it can.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    part: str
    name: str = ""
    text: str
    exact: str
    loose: str
    samples: tuple[float, ...] = ()
    means: tuple[float, ...] = ()
    untold: str = ""


class CallProof(BaseModel):
    """The inputs of a training call in the notebook, which had these hyperparameters and this trial's seed.

    `untold` says why nothing is known of them, empty if something is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    facts: tuple[InputFact, ...] = ()
    hparams: dict[str, Any] = Field(default_factory=dict)
    seed: int
    untold: str = ""

    @property
    def sentences(self) -> list[str]:
        """What cannot be compared, and why."""
        return [one for one in (self.untold, *(fact.untold for fact in self.facts)) if one]
