"""How much each hyperparameter of a search has to do with a metric: REST models."""

from __future__ import annotations

from pydantic import Field

from det_native.schema.bodies import Answer


class HyperparameterImportance(Answer):
    """The share of a metric's variance that one hyperparameter explains, from 0 to 1."""

    name: str
    importance: float


class Importance(Answer):
    """Importance of the hyperparameters of an experiment, greatest first.

    Attributes
    ----------
    trials : int
        How many trials it was worked out from.
    total : int
        How many trials have a value of the metric.
    importances : list of HyperparameterImportance
        Empty where it cannot be worked out.
    notes : list of str
        Sentences: why there is none, what was left out, how sure it is.
    """

    metric: str
    trials: int
    total: int
    importances: list[HyperparameterImportance] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
