"""ASHA by hand: which trial is promoted by which value, and who ends when."""

from __future__ import annotations

import json
import math

import pytest

from det_native.search.async_halving import AsyncHalving
from det_native.search.base import REPLACED_PER_TRIAL
from det_native.search.method import Begin, End, Extend

NEW = Begin(1)


def halving(trials: int, *, at_once: int = 0, stop_once: bool = False) -> AsyncHalving:
    """Return a search of two rungs that promotes every second trial from 1 unit to 3."""
    return AsyncHalving([1, 3], max_trials=trials, divisor=2, at_once=at_once, stop_once=stop_once)


def test_the_best_half_is_promoted_and_the_rest_ends_once_all_have_come() -> None:
    method = halving(4)
    assert method.start() == [NEW, NEW]
    assert method.reached(0, 0.5) == [NEW]
    assert method.reached(1, 0.3) == [Extend(1, 3)]
    assert method.reached(2, 0.9) == [NEW]
    assert method.reached(1, 0.2) == [End(1)], "all trials have begun, and one may still come through the first rung"
    assert method.reached(3, 0.8) == [Extend(0, 3), End(3), End(2)]
    assert method.reached(0, 0.4) == [End(0)]


def test_of_equal_values_the_earlier_trial_is_better() -> None:
    method = halving(2)
    method.start()
    assert method.reached(0, 0.5) == []
    assert method.reached(1, 0.5) == [Extend(0, 3), End(1)]


def test_decided_at_once_a_trial_trains_on_if_it_is_the_best_so_far_and_never_later() -> None:
    method = halving(4, stop_once=True)
    assert method.start() == [NEW, NEW]
    assert method.reached(0, 0.5) == [Extend(0, 3)]
    assert method.reached(1, 0.6) == [End(1), NEW]
    assert method.reached(2, 0.1) == [Extend(2, 3)]
    assert method.reached(0, 0.4) == [End(0), NEW]
    assert method.reached(3, 0.3) == [Extend(3, 3)], "it is the second of four"
    assert method.reached(2, 0.1) == [End(2)]


@pytest.mark.parametrize(("trials", "at_once", "begun"), [(9, 0, 4), (9, 1, 1), (9, 5, 5), (3, 0, 3), (3, 7, 3)])
def test_so_many_begin_at_the_start(trials: int, at_once: int, begun: int) -> None:
    method = AsyncHalving([1, 2, 4], max_trials=trials, divisor=2, at_once=at_once)
    assert method.start() == [NEW] * begun


def test_a_refused_trial_is_replaced_and_counts_in_no_rung() -> None:
    method = halving(2)
    method.start()
    assert method.refused(0) == [End(0), NEW]
    assert method.reached(1, 0.5) == []
    assert method.reached(2, 0.4) == [Extend(2, 3), End(1)]


def test_where_a_promoted_trial_is_refused_the_next_best_is_promoted() -> None:
    method = halving(6, at_once=5)
    method.start()
    moves = [method.reached(trial, 0.1 * trial) for trial in range(5)]
    assert moves == [[NEW], [Extend(0, 3)], [], [Extend(1, 3)], []]
    assert method.refused(0) == [End(0), Extend(2, 3)]
    assert method.reached(1, 0.0) == [End(1), NEW], "that of the refused one"


def test_refused_trials_are_replaced_so_often_only() -> None:
    method = AsyncHalving([1], max_trials=1, divisor=2)
    assert method.start() == [NEW]
    for trial in range(REPLACED_PER_TRIAL):
        assert method.refused(trial) == [End(trial), NEW]
    assert method.refused(REPLACED_PER_TRIAL) == [End(REPLACED_PER_TRIAL)]


@pytest.mark.parametrize(("trials", "units"), [(9, 9 + 2 * 3 + 6), (2, 2 + 2 + 6), (18, 18 + 2 * 6 + 6 * 2)])
def test_the_expected_training_is_that_of_all_rungs(trials: int, units: int) -> None:
    assert AsyncHalving([1, 3, 9], max_trials=trials, divisor=3).total_units == units


def interrupted() -> AsyncHalving:
    """Return a search whose first rung has closed: trials 2 and 3 have ended, 0 and 1 train on."""
    method = halving(4)
    method.start()
    for trial, value in ((0, 0.5), (1, 0.3), (2, math.inf), (3, 0.8)):
        method.reached(trial, value)
    return method


def test_a_restored_search_goes_on_where_it_was() -> None:
    method, restored = interrupted(), halving(4)
    snapshot = json.loads(json.dumps(method.snapshot(), allow_nan=False))
    restored.restore(snapshot)
    assert json.loads(json.dumps(restored.snapshot())) == snapshot
    assert restored.reached(0, 0.1) == method.reached(0, 0.1) == [End(0)]
    assert restored.refused(1) == method.refused(1)


def test_a_snapshot_of_an_earlier_version_ends_nobody_twice() -> None:
    snapshot = interrupted().snapshot()
    let_go, replaced = snapshot.pop("let_go"), snapshot.pop("replaced")
    restored = halving(4)
    restored.restore(snapshot)
    assert (restored.snapshot()["let_go"], restored.snapshot()["replaced"]) == (let_go, replaced) == ([2, 3], 0)
