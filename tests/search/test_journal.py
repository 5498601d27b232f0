"""Events as JSON, and searchers that are told them again."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.master.store.encoding import dumps
from det_native.schema.loading import load_config
from det_native.search.base import Event, Started, TrialCompleted, TrialFailed, TrialValidated
from det_native.search.journal import event_data, event_of
from det_native.search.make import make_searcher

metrics = st.one_of(st.none(), st.floats(), st.integers(-5, 5).map(float))
events = st.one_of(
    st.just(Started()),
    st.builds(TrialFailed, st.integers(0, 9)),
    st.builds(
        TrialCompleted,
        st.integers(0, 9),
        metrics,
        st.one_of(st.none(), st.integers(1, 99)),
        st.booleans(),
        st.lists(metrics, max_size=3).map(tuple),
    ),
    st.builds(TrialValidated, st.integers(0, 9), st.integers(1, 99), metrics),
)


@given(events)
def test_an_event_is_the_same_after_its_way_through_json(event: Event) -> None:
    assert repr(event_of(json.loads(dumps(event_data(event))))) == repr(event)  # by their texts: NaN is like no number


SEARCHES: dict[str, dict[str, Any]] = {
    "async_halving": {"num_rungs": 3, "max_trials": 12, "max_concurrent_trials": 4},
    "sync_halving": {"num_rungs": 3, "budget": {"batches": 300}},
    "adaptive_asha": {"max_trials": 12, "max_concurrent_trials": 4},
}


@pytest.mark.parametrize("name", SEARCHES)
@given(values=st.lists(st.sampled_from([0.25, 0.5, math.inf, -math.inf, math.nan, None]), min_size=60, max_size=60))
def test_a_searcher_from_a_snapshot_and_later_events_goes_on_alike(name: str, values: list[float | None]) -> None:
    searcher = {"name": name, "metric": "m", "max_length": {"batches": 64}, "smaller_is_better": False}
    space = {"global_batch_size": 32, "x": {"type": "double", "minval": 0, "maxval": 1}}
    config = load_config({"searcher": searcher | SEARCHES[name], "hyperparameters": space}, warn=False).with_seed(3)
    one = make_searcher(config)
    actions, waiting = one.handle(Started()), []
    snapshot, later = json.loads(dumps(one.snapshot())), []
    for number, value in enumerate(values):
        waiting += [(action.request, action.units) for action in actions if getattr(action, "units", None) is not None]
        if not waiting:
            break
        request, units = waiting.pop(0)
        event = TrialCompleted(request, value, units)
        other = make_searcher(config, snapshot)
        for before in later:
            other.handle(event_of(before))
        actions = one.handle(event)
        assert other.handle(event) == actions
        later.append(json.loads(dumps(event_data(event))))
        if number % 7 == 6:
            snapshot, later = json.loads(dumps(one.snapshot())), []
