"""Which checkpoints stay, while an experiment goes on and when it has ended; on a master and for local runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from det_native.schema import rest
from det_native.schema.numbers import number
from det_native.schema.ranking import checkpoints_best_first
from det_native.schema.states import CheckpointState

#: A trial that goes on continues from its last checkpoint, or from the one before where the last is damaged.
LAST_WHILE_RUNNING = 2


def superfluous(
    found: Sequence[rest.Checkpoint],
    *,
    metric: str,
    smaller_is_better: bool,
    experiment_best: int,
    trial_best: int,
    trial_latest: int,
) -> list[str]:
    """Return the uuids of the checkpoints to delete.

    A checkpoint stays if it is among the `trial_latest` last ones of its trial, or has a value of the metric and is
    among the `trial_best` best ones of its trial or the `experiment_best` best ones of the experiment. Which of equal
    ones is better, `ranking` says: the same that the handles and views call best.
    """
    complete = [one for one in found if one.state is CheckpointState.COMPLETED]
    kept: set[str] = set()
    values = {one.uuid: number(one.metrics.get(metric)) for one in complete}
    measured = [one for one in complete if not math.isnan(math.nan if (value := values[one.uuid]) is None else value)]
    ranked = checkpoints_best_first(measured, metric=metric, smaller_is_better=smaller_is_better)
    kept.update(one.uuid for one in ranked[:experiment_best])
    for trial_id in {one.trial_id for one in complete}:
        kept.update([one.uuid for one in ranked if one.trial_id == trial_id][:trial_best])
        kept.update(_last((one for one in complete if one.trial_id == trial_id), trial_latest))
    return [one.uuid for one in complete if one.uuid not in kept]


def superfluous_already(
    found: Sequence[rest.Checkpoint],
    *,
    metric: str,
    smaller_is_better: bool,
    experiment_best: int,
    trial_best: int,
    trial_latest: int,
    last: int = LAST_WHILE_RUNNING,
    runs: Collection[str] = (),
    backed_up: str | None = None,
) -> list[str]:
    """Return the uuids of the checkpoints that can be deleted while the experiment goes on.

    No later checkpoint makes one of them stay by :func:`superfluous`. The `last` ones of each trial stay, whatever the
    configuration says, and of each of `runs`, the latest ones of the trials: a trial may have to continue from them,
    and what lies further may be damaged. So does the last one before the database was `backed_up`, which is the last
    that a restored database knows, and one that was validated by other metrics only: which of them trials are compared
    by may not be known yet.
    """
    doomed = superfluous(
        found,
        metric=metric,
        smaller_is_better=smaller_is_better,
        experiment_best=experiment_best,
        trial_best=trial_best,
        trial_latest=max(trial_latest, last),
    )
    complete = [one for one in found if one.state is CheckpointState.COMPLETED]
    kept = {one.uuid for one in found if one.metrics and metric not in one.metrics}
    for run_id in runs:
        kept.update(_last((one for one in complete if one.manifest.run_id == run_id), last))
    if backed_up is not None:
        for trial_id in {one.trial_id for one in complete}:
            kept.update(_last((one for one in complete if one.trial_id == trial_id and one.created <= backed_up), 1))
    return [uuid for uuid in doomed if uuid not in kept]


def _last(found: Iterable[rest.Checkpoint], count: int) -> list[str]:
    """Return the uuids of the `count` last ones."""
    ordered = sorted(found, key=lambda one: (one.batch, one.created))
    return [one.uuid for one in ordered[max(len(ordered) - count, 0) :]]
