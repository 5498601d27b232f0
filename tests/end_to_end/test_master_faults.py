"""A master that goes away, and kernels that do: training goes on, and nothing is lost or told twice."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import psutil
import pytest
from faults import GATE_CELL, PATIENCE, Cluster, Gate, Kernel, assert_complete_rows, ended
from programs import BATCHES, CONFIG, TORCH_CREATE, TORCH_SETUP, TORCH_TRIAL

from det_native.schema.processes import wait_until_gone
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

ATTACH = """
import json, sys
import det_native as det
experiment = det.attach(int(sys.argv[1])).wait(timeout=60)
rows = [row["batch"] for row in experiment.trials[0].metrics("training")]
print(json.dumps({"state": experiment.state, "rows": rows, "history": experiment.history}))
"""


def _define(kernel: Kernel) -> None:
    for source in (TORCH_SETUP, GATE_CELL, CONFIG, TORCH_TRIAL):
        kernel.run(source)


def _submit(kernel: Kernel, **settings: object) -> int:
    kernel.run(f"settings = {settings}")
    return kernel.submit(TORCH_CREATE)


def _kill_master(cluster: Cluster) -> None:
    master = cluster.master
    os.kill(master.pid, signal.SIGKILL)
    assert wait_until_gone(master.pid, master.start, PATIENCE)


def test_training_goes_on_without_a_master(kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    _define(kernel)
    short = _submit(kernel, stops="5", port=gate.port)
    first = gate.next()
    long = _submit(kernel, stops="4 8 12", port=gate.port)
    second = gate.next()
    waiting = kernel.begin("experiment.wait()")
    kernel.shows(waiting, "running")
    ending = psutil.Process(first.pid)
    master = cluster.master

    _kill_master(cluster)
    first.go()
    second.go()
    ending.wait(timeout=PATIENCE)  # to its end, with nobody to report to
    second = gate.next()
    cluster.start("torch")
    assert cluster.master.pid != master.pid
    assert cluster.master.url == master.url
    assert ended(cluster.attach(short), ExperimentState.COMPLETED).restarts == 0

    assert "running trials go on" in cluster.det("down")
    second.go()
    third = gate.next()
    assert third.pid == second.pid
    assert "The master runs at" in cluster.det("up")
    third.go()
    assert ended(cluster.attach(long), ExperimentState.COMPLETED).restarts == 0
    for number in (short, long):
        assert_complete_rows(cluster.attach(number), BATCHES)
        assert cluster.attach(number).checkpoints[-1].batch == BATCHES
    assert "Error" not in kernel.finish(waiting)
    assert kernel.value("experiment.state") == "COMPLETED"


def test_two_kernels_at_once_start_one_master_which_outlives_them(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(tmp_path / "cluster")
    monkeypatch.setenv("DET_HOME", str(cluster.home.path))
    kernels = [Kernel(cluster, tmp_path / name) for name in ("one", "two")]
    try:
        for kernel in kernels:
            _define(kernel)
            kernel.run(f"settings = {{'stops': '7', 'port': {gate.port}}}")
        begun = [kernel.begin(TORCH_CREATE) for kernel in kernels]
        printed = [kernel.finish(cell) for kernel, cell in zip(kernels, begun, strict=True)]
        assert sum("Started a master on this machine" in text for text in printed) == 1, printed
        assert cluster.home.log.read_text().count(" answers at ") == 1
        numbers = [kernel.value("experiment.id") for kernel in kernels]
        visitors = [gate.next(), gate.next()]
        for kernel in kernels:
            kernel.kill()
        for visitor in visitors:
            visitor.go()
        assert sorted(numbers) == [1, 2]
        for number in numbers:
            seen = json.loads(cluster.script(ATTACH, str(number)).splitlines()[-1])
            assert seen["state"] == "COMPLETED"
            assert seen["rows"] == list(range(1, BATCHES + 1))
            assert {name: len(values) for name, values in seen["history"].items()} == {"loss": 3, "val_loss": 3}
    finally:
        for kernel in kernels:
            kernel.close()
        cluster.take_down()
