"""Which events of an experiment are worth a message."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from det_native.schema.notify import EventName, Plateau
from det_native.schema.states import ExperimentState


def event_of_state(state: ExperimentState, wanted: Iterable[EventName]) -> EventName | None:
    """Return the event that an experiment of this state is for somebody who wants to hear of these, None for none.

    One that has failed is a failure for whoever wants to hear of failures, and an end for others: never both.
    """
    if not state.terminal:
        return None
    wanted = set(wanted)
    if state is ExperimentState.ERROR and "failure" in wanted:
        return "failure"
    return "end" if "end" in wanted else None


def first_nan(metrics: Mapping[str, Any]) -> str | None:
    """Return the first metric, by its name, that is not a number; numbers may be words as they travel."""
    return next((name for name in sorted(metrics) if _is_nan(metrics[name])), None)


def _is_nan(value: Any) -> bool:
    return value == "NaN" or (isinstance(value, float) and math.isnan(value))


def is_better(value: float, best: float, smaller_is_better: bool, min_delta: float = 0.0) -> bool:
    """Whether a value is better than the best one so far, by more than `min_delta`."""
    return value < best - min_delta if smaller_is_better else value > best + min_delta


def plateau_begin(
    rows: Sequence[tuple[int, float]],
    rule: Plateau,
    smaller_is_better: bool,
    batches_per_epoch: int | None = None,
) -> tuple[int, float] | None:
    """Return where the plateau began that lasts now: the batch and the value of the best row; None if there is none.

    Parameters
    ----------
    rows : sequence of (int, float)
        Batch and value of the metric, in rising order of the batches. Values that are not finite count as no better.
    batches_per_epoch : int or None
        Without it, each row counts as an epoch.
    """
    best: tuple[int, float] | None = None
    since = 0
    for batch, value in rows:
        if best is None or (math.isfinite(value) and is_better(value, best[1], smaller_is_better, rule.min_delta)):
            if math.isfinite(value):
                best, since = (batch, value), 0
        else:
            since += 1
    if best is None:
        return None
    if rule.validations is not None or (rule.epochs is not None and not batches_per_epoch):
        lasting, needed = since, rule.validations or rule.epochs or 1
    else:
        lasting = rows[-1][0] - best[0]
        needed = rule.batches or (rule.epochs or 1) * (batches_per_epoch or 1)
    return best if lasting >= needed else None
