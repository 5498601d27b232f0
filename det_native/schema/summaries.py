"""What is known of the metrics of a trial without reading them: REST models."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from det_native.schema.bodies import Answer
from det_native.schema.states import MetricKind


class MetricSummary(Answer):
    """The last value of a metric and its extremes, of numbers only.

    By the rule of restarted trials: what an earlier run has reported behind the restart does not count. Those of
    training metrics are renewed now and then while a trial trains, and at the end of each run.
    """

    model_config = ConfigDict(extra="ignore", ser_json_inf_nan="strings")

    kind: MetricKind
    name: str
    last_batch: int
    last: float | None
    minimum: float | None
    maximum: float | None


class TrialSummary(Answer):
    """A trial with its hyperparameters and the summaries of its metrics."""

    trial_id: int
    experiment_id: int
    hparams: dict[str, Any]
    metrics: list[MetricSummary] = Field(default_factory=list)
