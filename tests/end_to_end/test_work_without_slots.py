"""``resources.slots_per_trial: 0`` on a real master: it waits for no slot, holds none, and sees no GPU."""

from __future__ import annotations

import json

import pytest
from faults import PATIENCE, Cluster, Gate, Kernel

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

BUSY = "busy = det.experimental.create(Digits, configuration(hyperparameters=settings, searcher=TWO))"
TWO = """
TWO = {"name": "grid"}
settings = {"stops": "2", "port": PORT, "x": {"type": "categorical", "vals": [1, 2]}}
"""
BESIDE = """
class Beside(Digits):
    def visit(self, batch_idx):
        import os
        if batch_idx == 0:
            print("GPUs:", repr(os.environ["CUDA_VISIBLE_DEVICES"]), torch.cuda.is_available())
        super().visit(batch_idx)
"""
WITHOUT = (
    "experiment = det.experimental.create(Beside, configuration(hyperparameters=settings, "
    "resources={'slots_per_trial': 0}))"
)


def test_it_runs_while_all_slots_are_busy(cluster: Cluster, kernel: Kernel, gate: Gate) -> None:
    kernel.run(TWO.replace("PORT", str(gate.port)))
    kernel.run(BUSY)
    holders = [gate.next(), gate.next()]  # both slots are taken, and stay so
    kernel.run(BESIDE)
    number = kernel.submit_with(WITHOUT, stops="3", port=gate.port)
    beside = gate.next()
    slots = json.loads(cluster.shown("slot", "list", "--json"))
    [trial] = cluster.attach(number).trials
    assert [(slot["id"], slot["trial_id"]) for slot in slots if slot["id"] is None] == [(None, trial.id)]
    assert all(slot["trial_id"] not in (None, trial.id) for slot in slots if slot["id"] is not None)
    assert "none" in cluster.shown("slot", "list")
    queued = {row["trial"]: row for row in json.loads(cluster.shown("queue", "list", "--json"))}
    assert (queued[trial.id]["slots"], queued[trial.id]["held"], queued[trial.id]["state"]) == (0, [], "Running")
    assert "none" in cluster.shown("queue", "list")
    shown = kernel.value("det.attach(experiment.id)._repr_mimebundle_()['text/html']")
    assert "none: it runs beside what has slots" in shown
    beside.go()
    experiment = cluster.attach(number)
    experiment.wait(timeout=PATIENCE)
    assert experiment.state is ExperimentState.COMPLETED
    assert any("GPUs: '' False" in line.text for line in trial.logs())
    for holder in holders:
        holder.go()
    kernel.run("busy.wait()")
