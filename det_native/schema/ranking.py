"""Which of two trials, and which of two checkpoints, is better: one rule for every list, view, handle and deletion.

A finite value of the searcher's metric comes before any other. Equal ones: the older trial first, and of one trial the
earlier checkpoint, as Keras's ``save_best_only`` keeps the first of equal epochs. Without a value nothing says which is
better: then the last checkpoint of a trial comes first. ``jupyter_ext/src/shared/ranking.ts`` has the same rule; the
cases in ``tests/schema/ranking_cases.json`` hold for both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from det_native.schema.numbers import number
from det_native.schema.rest import Checkpoint, Trial


def score(value: object, *, smaller_is_better: bool) -> float:
    """Return a number that is smaller for better values; what is missing, infinite or no number comes last."""
    known = number(value)
    if known is None or not math.isfinite(known):
        return math.inf
    return known if smaller_is_better else -known


def trial_rank(trial: Trial, *, smaller_is_better: bool) -> tuple[float, int]:
    """Return what trials are sorted by, best first."""
    return score(trial.best_validation, smaller_is_better=smaller_is_better), trial.id


def checkpoint_rank(
    checkpoint: Checkpoint, *, metric: str, smaller_is_better: bool
) -> tuple[float, int, int, str, str]:
    """Return what checkpoints are sorted by, best first.

    Parameters
    ----------
    metric : str
        The validation metric to compare by.
    """
    value = score(checkpoint.metrics.get(metric), smaller_is_better=smaller_is_better)
    batch = checkpoint.batch if math.isfinite(value) else -checkpoint.batch
    return value, checkpoint.trial_id, batch, checkpoint.created, checkpoint.uuid


def trials_best_first(trials: Sequence[Trial], *, smaller_is_better: bool) -> list[Trial]:
    """Return trials by their best validation, best first."""
    return sorted(trials, key=lambda trial: trial_rank(trial, smaller_is_better=smaller_is_better))


def checkpoints_best_first(
    checkpoints: Sequence[Checkpoint], *, metric: str, smaller_is_better: bool
) -> list[Checkpoint]:
    """Return checkpoints by their value of a metric, best first."""
    return sorted(
        checkpoints, key=lambda each: checkpoint_rank(each, metric=metric, smaller_is_better=smaller_is_better)
    )
