"""Pausing a real training: whenever it is asked, the end is that of a training that was left alone, bit for bit."""

from __future__ import annotations

import pytest
from faults import GATE_CELL, Cluster, Gate, Kernel, assert_complete_rows, ended, events_until
from programs import (
    CONFIG,
    KERAS_CALLBACK,
    KERAS_DATA,
    KERAS_FIT,
    KERAS_SETUP,
    KERAS_WEIGHTS,
    TORCH_CREATE,
    TORCH_SETUP,
    TORCH_TRIAL,
    TORCH_WEIGHTS,
)

from det_native.client.handles import Experiment
from det_native.client.waiting import wait as wait_for_end
from det_native.errors import RequestError
from det_native.schema import rest
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

BATCHES = 60

# Batches that take their time, so that there are some left when the worker hears that it is to end.
TORCH_SLOW = """
class Slow(Digits):
    def visit(self, batch_idx):
        super().visit(batch_idx)
        time.sleep(self.context.get_hparam("seconds"))
"""

KERAS_SLOW = """
import time

class Slow(Visit):
    def on_train_batch_begin(self, batch, logs=None):
        super().on_train_batch_begin(batch, logs)
        time.sleep(context.get_hparam("seconds"))
"""

TORCH = (TORCH_SETUP, GATE_CELL, CONFIG, TORCH_TRIAL, TORCH_SLOW, TORCH_WEIGHTS)
KERAS = (KERAS_SETUP, GATE_CELL, CONFIG, KERAS_DATA, KERAS_CALLBACK, KERAS_SLOW, KERAS_WEIGHTS)
LONGER = "configuration(max_restarts=0, searcher={'max_length': {'epochs': 12}}, hyperparameters=settings)"


def _longer(call: str) -> str:
    return call.replace("configuration(hyperparameters=settings)", LONGER)


CALLS = (
    _longer(TORCH_CREATE).replace("(Digits", "(Slow"),
    _longer(KERAS_FIT).replace("Visit()", "Slow()"),
)


def _submit(kernel: Kernel, cluster: Cluster, call: str, **settings: object) -> Experiment:
    kernel.run(f"settings = {settings | {'seconds': 0.02}}")
    return cluster.attach(kernel.submit(call))


def _until_waiting(experiment: Experiment, times: int) -> None:
    """Wait until the trial has become QUEUED so many times after its first start."""
    waits = 0

    def holds(event: object) -> bool:
        nonlocal waits
        waits += event.type == "trial" and event.data["state"] == "QUEUED" and bool(event.data["started"])  # type: ignore[attr-defined]
        return waits >= times

    events_until(experiment, holds)


@pytest.mark.parametrize(("cells", "call"), [(TORCH, CALLS[0]), (KERAS, CALLS[1])], ids=["torch", "keras"])
def test_the_end_is_the_same_bit_for_bit(
    cells: tuple[str, ...], call: str, kernel: Kernel, cluster: Cluster, gate: Gate
) -> None:
    for cell in cells:
        kernel.run(cell)
    undisturbed = _submit(kernel, cluster, call)
    paused = _submit(kernel, cluster, call, stops="8 25", port=gate.port)
    _pause_in_mid_epoch(paused, gate)
    _activate_before_the_worker_has_ended(paused, gate)
    _pause_before_the_first_batch(paused)
    expected = []
    for experiment in (undisturbed, paused):
        assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
        assert_complete_rows(experiment, BATCHES)
        expected.append(kernel.value(f"weights(det.attach({experiment.id}))"))
    assert expected[1] == expected[0]
    rows = [
        [trial.metrics(kind) for kind in ("training", "validation")]
        for trial in (undisturbed.trials[0], paused.trials[0])
    ]
    assert rows[1] == rows[0]
    assert str(paused.logs()).count("Paused after batch") == 3
    with pytest.raises(RequestError, match=r"has ended \(COMPLETED\); it cannot be paused"):
        paused.pause()


def _pause_in_mid_epoch(experiment: Experiment, gate: Gate) -> None:
    visitor = gate.next()
    assert visitor.text == "8"
    experiment.pause()
    assert experiment.state is ExperimentState.PAUSED
    visitor.go()
    _until_waiting(experiment, 1)
    with pytest.raises(TimeoutError, match=r"it is paused. experiment.activate\(\) goes on"):
        wait_for_end(experiment._source, experiment.id, view := _View(), timeout=0.1)
    assert "paused (experiment.activate() goes on)" in view.texts[-1]
    experiment.activate()


def _activate_before_the_worker_has_ended(experiment: Experiment, gate: Gate) -> None:
    visitor = gate.next()
    experiment.pause()
    experiment.activate()
    visitor.go()
    _until_waiting(experiment, 2)


def _pause_before_the_first_batch(experiment: Experiment) -> None:
    """Ask while the next worker starts, which is the third."""
    starts = 0

    def has_started(event: rest.Event) -> bool:
        nonlocal starts
        starts += event.type == "trial" and event.data["state"] == "RUNNING"
        return starts >= 3

    events_until(experiment, has_started)
    experiment.pause()
    _until_waiting(experiment, 3)
    experiment.activate()


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
