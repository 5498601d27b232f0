"""A master that goes away, and kernels that do: training goes on, and nothing is lost or told twice."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from faults import GATE_CELL, PATIENCE, Cluster, Gate, Kernel, assert_complete_rows, checkpoint_at, ended
from programs import BATCHES, CONFIG, TORCH_CREATE, TORCH_SETUP, TORCH_TRIAL

from det_native.schema.processes import wait_until_gone
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

ATTACH = """
import json, sys
import det_native as det
for number in sys.argv[1:]:
    experiment = det.attach(int(number)).wait(timeout=100)
    rows = [row["batch"] for row in experiment.trials[0].metrics("training")]
    print(json.dumps({"state": experiment.state, "rows": rows, "history": experiment.history}))
"""


def _kill_master(cluster: Cluster) -> None:
    master = cluster.master
    os.kill(master.pid, signal.SIGKILL)
    assert wait_until_gone(master.pid, master.start, PATIENCE)


@pytest.mark.long
def test_training_goes_on_without_a_master(kernel: Kernel, torch_end: Any, cluster: Cluster, gate: Gate) -> None:
    short = kernel.submit_with(TORCH_CREATE, stops="5", port=gate.port)
    first = gate.next()
    long = kernel.submit_with(TORCH_CREATE, stops="4 8 12", port=gate.port)
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
    cluster.start()
    assert cluster.master.pid != master.pid
    assert cluster.master.url == master.url
    assert ended(cluster.attach(short), ExperimentState.COMPLETED).restarts == 0

    assert "1 running trial goes on." in cluster.det("down")
    second.go()
    third = gate.next()
    assert third.pid == second.pid
    assert "The master runs at" in cluster.det("up")
    third.go()
    assert ended(cluster.attach(long), ExperimentState.COMPLETED).restarts == 0
    for number in (short, long):
        assert_complete_rows(cluster.attach(number), BATCHES)
        assert cluster.attach(number).checkpoints[-1].batch == BATCHES
    assert "Error" not in kernel.finish(waiting).text
    assert kernel.value("experiment.state") == "Completed"
    assert kernel.end_of(long) == torch_end


@pytest.mark.long
def test_two_kernels_at_once_start_one_master_which_outlives_them(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(tmp_path / "cluster")
    monkeypatch.setenv("DET_HOME", str(cluster.home.path))
    kernels: list[Kernel] = []
    try:
        for name in ("one", "two"):
            kernels.append(Kernel(cluster, tmp_path / name))
        cells = (TORCH_SETUP, GATE_CELL, CONFIG, TORCH_TRIAL, f"settings = {{'stops': '7', 'port': {gate.port}}}")
        for source in cells:  # in both at the same time
            for kernel, begun in [(kernel, kernel.begin(source)) for kernel in kernels]:
                kernel.finish(begun)
        begun = [kernel.begin(TORCH_CREATE) for kernel in kernels]
        printed = [kernel.finish(cell).text for kernel, cell in zip(kernels, begun, strict=True)]
        assert sum("Started a master on this machine" in text for text in printed) == 1, printed
        assert cluster.home.log.read_text().count(" answers at ") == 1
        numbers = [kernel.value("experiment.id") for kernel in kernels]
        visitors = [gate.next(), gate.next()]
        for kernel in kernels:
            kernel.kill()
        for visitor in visitors:
            visitor.go()
        assert sorted(numbers) == [1, 2]
        for line in cluster.script(ATTACH, *map(str, numbers)).splitlines()[-2:]:
            seen = json.loads(line)
            assert seen["state"] == "Completed"
            assert seen["rows"] == list(range(1, BATCHES + 1))
            assert {name: len(values) for name, values in seen["history"].items()} == {"loss": 3, "val_loss": 3}
    finally:
        for kernel in kernels:
            kernel.close()
        cluster.take_down()


@pytest.mark.long
def test_a_master_that_comes_back_elsewhere_gets_the_reports_and_waiting_goes_on(
    kernel: Kernel, cluster: Cluster, gate: Gate
) -> None:
    number = kernel.submit_with(TORCH_CREATE, stops="4 8", port=gate.port)
    visitor = gate.next()
    waiting = kernel.begin("experiment.wait()")
    kernel.shows(waiting, "running")
    before = cluster.master
    _kill_master(cluster)
    cluster.home.socket.unlink()
    cluster.home.socket.mkdir()  # where it was, none can listen
    try:
        cluster.start()
        assert cluster.master.url != before.url
        visitor.go()
        visitor = gate.next()
        checkpoint_at(cluster.attach(number), 6)  # of a worker that lives, and stands at the gate
        visitor.go()
        assert ended(cluster.attach(number), ExperimentState.COMPLETED).restarts == 0
        assert_complete_rows(cluster.attach(number), BATCHES)
        assert "Error" not in kernel.finish(waiting).text
        assert kernel.value("experiment.state") == "Completed"
    finally:
        cluster.home.socket.rmdir()
