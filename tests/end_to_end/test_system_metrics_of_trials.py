"""What trials use of their machine: on a cluster, over killed workers and masters, on several slots."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import psutil
import pytest
from faults import PATIENCE, Cluster, Gate, Kernel, ended

from det_native.client.handles import Experiment
from det_native.schema.processes import wait_until_gone
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

CREATE = """
experiment = det.experimental.create(
    {name}, configuration(hyperparameters=settings, profiling={{"period": 0.1}}, resources={resources})
)
"""
TWO = {"slots_per_trial": 2}
Rows = list[dict[str, Any]]


def rows_when(experiment: Experiment, holds: Callable[[Rows], bool]) -> Rows:
    end = time.monotonic() + PATIENCE
    while not holds(rows := experiment.trials[0].metrics("system")):
        assert time.monotonic() < end, rows
        time.sleep(0.05)
    return rows


def times(rows: Rows, rank: int = 0) -> list[float]:
    return [row["time"] for row in rows if row["rank"] == rank]


@pytest.mark.long
def test_neither_a_killed_worker_nor_a_killed_master_leaves_a_gap_or_a_repeat(
    kernel: Kernel, cluster: Cluster, gate: Gate
) -> None:
    begun = time.time()
    experiment = cluster.attach(
        kernel.submit_with(CREATE.format(name="Digits", resources={}), stops="4 8", port=gate.port)
    )
    visitor = gate.next()
    memory = psutil.Process(visitor.pid).memory_info().rss
    first = rows_when(experiment, lambda rows: len(rows) > 5)
    visitor.die(signal.SIGKILL)
    gate.next().go()
    visitor = gate.next()
    assert visitor.text == "8"
    of_both = rows_when(experiment, lambda rows: rows[-1]["time"] > first[-1]["time"] + 1)
    assert of_both[: len(first)] == first

    master = cluster.master
    os.kill(master.pid, signal.SIGKILL)
    assert wait_until_gone(master.pid, master.start, PATIENCE)
    away = time.time()
    while time.time() < away + 1.0:  # what is measured meanwhile waits on the worker's disk
        psutil.Process(visitor.pid).status()
    cluster.start()
    back = time.time()
    visitor.go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1

    rows = experiment.trials[0].metrics("system")
    measured = times(rows)
    assert rows[: len(of_both)] == of_both
    assert measured == sorted(set(measured))
    assert begun < measured[0]
    assert len([one for one in measured if away < one < back]) > 3, "measured while there was no master"
    assert all(0.5 * memory < row["memory_bytes"] < 5 * memory for row in rows)
    assert any(row["cpu_percent"] > 0 for row in rows if "cpu_percent" in row)
    shown = json.loads(cluster.shown("trial", "metrics", str(experiment.trials[0].id), "--kind", "system", "--json"))
    assert shown == rows
    table = cluster.shown("trial", "metrics", str(experiment.trials[0].id), "--kind", "system").splitlines()
    assert table[0].split()[:3] == ["time", "rank", "memory_bytes"]
    assert " MB" in table[-1]
    assert not any("memory_bytes" in row for row in experiment.trials[0].metrics("training"))


@pytest.mark.long
def test_each_process_of_a_trial_tells_what_it_uses(kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    experiment = cluster.attach(
        kernel.submit_with(CREATE.format(name="Ranked", resources=TWO), stops="4", port=gate.port)
    )
    both = [gate.next(), gate.next()]
    rows_when(experiment, lambda rows: min(len(times(rows, rank)) for rank in (0, 1)) > 3)
    for visitor in both:
        visitor.go()
    ended(experiment, ExperimentState.COMPLETED)
    rows = rows_when(experiment, lambda rows: True)
    for rank in (0, 1):
        measured = times(rows, rank)
        assert measured == sorted(set(measured))
        assert all(row["memory_bytes"] > 10_000_000 for row in rows if row["rank"] == rank)
    assert not any("network_sent_bytes_per_second" in row for row in rows if row["rank"] == 1)
