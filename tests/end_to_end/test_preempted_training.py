"""A training that has to make room for another one ends as one that was left alone, bit for bit."""

from __future__ import annotations

from typing import Any

import pytest
from faults import Cluster, Gate, Kernel, assert_complete_rows, ended, events_until
from programs import BATCHES

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

CREATE = "experiment = det.experimental.create(Digits, configuration(hyperparameters=settings, **changes))"


def test_the_end_is_the_same_bit_for_bit(kernel: Kernel, torch_end: Any, cluster: Cluster, gate: Gate) -> None:
    kernel.run("changes = {'max_restarts': 0}")
    low = cluster.attach(kernel.submit_with(CREATE, stops="8", holds="8", port=gate.port))
    preempted = gate.next()
    assert preempted.text == "8"
    kernel.run("changes = {'searcher': {'name': 'random', 'max_trials': 2}}")
    high = cluster.attach(kernel.submit_with(CREATE, starts=True, port=gate.port))
    others = [gate.next()]  # one has the free slot
    high.set_priority(10)
    preempted.go()
    others.append(gate.next())
    events_until(low, lambda event: event.type == "experiment" and bool(event.data["waits_for"]))
    detail = low.detail()
    assert detail.waits_for == f"1 of 2 slots: #{high.id} has them"
    assert detail.waits_for in cluster.shown("queue", "list")
    for other in others:
        other.go()
    assert ended(low, ExperimentState.COMPLETED).restarts == 0
    assert_complete_rows(low, BATCHES)
    assert kernel.end_of(low.id) == torch_end
    told = str(low.logs())
    assert f"experiment {high.id} comes before it" in told
    assert "Paused after batch 8." in told
    ended(high, ExperimentState.COMPLETED)
