"""Which checkpoints stay when an experiment has ended; the same rule on a master and for local runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from det_native.schema import rest
from det_native.schema.numbers import number
from det_native.schema.states import CheckpointState


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
    among the `trial_best` best ones of its trial or the `experiment_best` best ones of the experiment.
    """
    complete = [one for one in found if one.state is CheckpointState.COMPLETED]
    kept: set[str] = set()
    scored = []
    for one in complete:
        value = number(one.metrics.get(metric))
        if value is not None and value == value:
            # One that is infinite, whichever way, is no result: it comes last.
            rank = math.inf if math.isinf(value) else value if smaller_is_better else -value
            scored.append((rank, one.created, one.uuid, one))
    scored.sort(key=lambda entry: entry[:3])
    kept.update(entry[3].uuid for entry in scored[:experiment_best])
    for trial_id in {one.trial_id for one in complete}:
        best = [entry[3].uuid for entry in scored if entry[3].trial_id == trial_id]
        kept.update(best[:trial_best])
        mine = sorted((one for one in complete if one.trial_id == trial_id), key=lambda one: (one.batch, one.created))
        kept.update(one.uuid for one in mine[max(len(mine) - trial_latest, 0) :])
    return [one.uuid for one in complete if one.uuid not in kept]
