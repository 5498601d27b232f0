"""What is known of the metrics of a trial without reading them: REST models."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from det_native.schema.bodies import Answer, NumericAnswer
from det_native.schema.states import MetricKind


class MetricSummary(NumericAnswer):
    """The last value of a metric and its extremes, of numbers only.

    By the rule of restarted trials: what an earlier run has reported behind the restart does not count. Those of
    training metrics are renewed now and then while a trial trains, and at the end of each run.
    """

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
