"""By fair share, who makes room is found without a look at everybody for each trial that waits."""

from __future__ import annotations

from collections import Counter

import pytest

from det_native.master.scheduling.facts import Pending, Running
from det_native.master.scheduling.holders import Holders


def _steps(experiments: int, waiting: int) -> int:
    """Return what was looked at until as many trials have got a slot each of experiments that hold ten."""
    running = [
        Running(trial_id=number, experiment_id=number % experiments, slot_ids=(f"s{number}",))
        for number in range(10 * experiments)
    ]
    kept = Counter(trial.experiment_id for trial in running)
    ending: set[int] = set()
    holders = Holders(running, ending, kept)
    for number in range(waiting):
        trial = Pending(trial_id=-1 - number, experiment_id=-1 - number, slots=1, order=0)
        found, gained = holders.spare(trial, 1.0, 1, lambda one: len(one.slot_ids))
        assert gained == 1
        for one in found:
            ending.add(one.trial_id)
            kept[one.experiment_id] -= 1
            holders.changed(one.experiment_id)
        holders.refresh(kept)
    assert max(kept.values()) - min(kept.values()) <= 1
    return holders.steps


@pytest.mark.parametrize("experiments", [20, 400])
def test_work_grows_with_the_trials_that_wait_and_not_with_the_experiments(experiments: int) -> None:
    assert _steps(experiments, 50) <= 4 * 50
    assert _steps(experiments, 100) <= 4 * 100
