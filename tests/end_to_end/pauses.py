"""A training that is paused whenever it can be, for every framework."""

from __future__ import annotations

from typing import Any

import pytest
from faults import Cluster, Gate, Kernel, assert_complete_rows, ended, events_until
from programs import BATCHES

from det_native.client.handles import Experiment
from det_native.client.waiting import wait as wait_for_end
from det_native.errors import RequestError
from det_native.schema.states import ExperimentState


def check_that_pauses_change_nothing(kernel: Kernel, cluster: Cluster, gate: Gate, call: str, undisturbed: Any) -> None:
    """Pause in mid-epoch; activate before the worker has ended; pause before the first batch. Compare the ends."""
    settings = {"starts": True, "stops": "8 11", "holds": "8 11 12"}
    experiment = cluster.attach(kernel.submit_with(call, **settings, port=gate.port))
    _begins(gate)
    _pause_in_mid_epoch(experiment, gate)
    _begins(gate)
    _activate_before_the_worker_has_ended(experiment, gate)
    _pause_before_the_first_batch(experiment, gate)
    _begins(gate)
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    assert_complete_rows(experiment, BATCHES)
    assert kernel.end_of(experiment.id) == undisturbed
    told = str(experiment.logs())
    assert told.count("Paused after batch") == 3
    for batch in (8, 11, 12):
        assert f"Paused after batch {batch}." in told
    with pytest.raises(RequestError, match=r"has ended \(Completed\); it cannot be paused"):
        experiment.pause()


def _begins(gate: Gate) -> None:
    visitor = gate.next()
    assert visitor.text == "start"
    visitor.go()


def _pause_in_mid_epoch(experiment: Experiment, gate: Gate) -> None:
    visitor = gate.next()
    assert visitor.text == "8"
    experiment.pause()
    assert experiment.state is ExperimentState.PAUSED
    visitor.go()
    _until_waiting(experiment, 1)
    with pytest.raises(TimeoutError, match=r"it is paused. experiment.resume\(\) goes on"):
        wait_for_end(experiment._source, experiment.id, view := _View(), timeout=0.1)
    assert "paused (experiment.resume() goes on)" in view.texts[-1]
    experiment.resume()


def _activate_before_the_worker_has_ended(experiment: Experiment, gate: Gate) -> None:
    visitor = gate.next()
    assert visitor.text == "11"
    experiment.pause()
    experiment.resume()
    visitor.go()


def _pause_before_the_first_batch(experiment: Experiment, gate: Gate) -> None:
    visitor = gate.next()
    assert visitor.text == "start"
    experiment.pause()
    visitor.go()
    _until_waiting(experiment, 3)
    experiment.resume()


def _until_waiting(experiment: Experiment, times: int) -> None:
    """Wait until the trial has become QUEUED so many times after its first start."""
    waits = 0

    def holds(event: Any) -> bool:
        nonlocal waits
        waits += event.type == "trial" and event.data["state"] == "QUEUED" and bool(event.data["started"])
        return waits >= times

    events_until(experiment, holds)


class _View:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def update(self, fraction: float, text: str) -> None:
        self.texts.append(text)

    def flush(self) -> None:
        pass

    def message(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass
