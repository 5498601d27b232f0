"""Trials on two slots, as two real processes: they share the data, live and die together, and go on as one does."""

from __future__ import annotations

import os
import signal

import psutil
import pytest
from faults import (
    PATIENCE,
    Cluster,
    Gate,
    Kernel,
    Visitor,
    assert_complete_rows,
    checkpoint_at,
    ended,
    line_of,
)
from programs import BATCHES

from det_native.client.handles import Experiment
from det_native.schema.processes import wait_until_gone
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

BROKEN = """
class Broken(Ranked):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx + 1 == 7 and self.rank == 1:
            raise ValueError("no seventh batch")
        return super().train_batch(batch, epoch_idx, batch_idx)
"""

CREATE = """
experiment = det.experimental.create(
    {name}, configuration(hyperparameters=settings, resources={{"slots_per_trial": 2}})
)
"""


@pytest.fixture(scope="module")
def undisturbed(torch_kernel: Kernel) -> int:
    """An experiment that nobody disturbs."""
    number = _submit(torch_kernel)
    torch_kernel.run("experiment.wait()")
    return number


def _submit(kernel: Kernel, name: str = "Ranked", **settings: object) -> int:
    return kernel.submit_with(CREATE.format(name=name), **settings)


def _both(gate: Gate) -> list[Visitor]:
    """Wait until both ranks stand at the gate; return them by rank."""
    found = {visitor.text.split()[1]: visitor for visitor in (gate.next(), gate.next())}
    return [found["0"], found["1"]]


def _records(experiment: Experiment, epoch: int) -> list[list[int]]:
    """Return the records that each rank has had in an epoch."""
    found: list[list[int]] = [[], []]
    for line in experiment.trials[0].logs():
        words = line.text.split()
        if words[:2] == ["records", str(epoch)]:
            assert line.rank is not None
            found[line.rank] += map(int, words[2:])
    return found


def _assert_same_end(kernel: Kernel, experiment: Experiment, undisturbed: int) -> None:
    assert_complete_rows(experiment, BATCHES)
    assert kernel.end_of(experiment.id) == kernel.end_of(undisturbed)


def test_two_processes_share_the_data_and_report_once(undisturbed: int, cluster: Cluster) -> None:
    experiment = cluster.attach(undisturbed)
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    assert_complete_rows(experiment, BATCHES)
    for epoch in range(3):
        shares = _records(experiment, epoch)
        assert [len(share) for share in shares] == [20, 20]
        assert sorted(shares[0] + shares[1]) == list(range(40))
    assert _records(experiment, 0) != _records(experiment, 1)
    printed = cluster.shown("logs", str(undisturbed)).splitlines()
    assert {line.split(" records")[0] for line in printed if "records" in line} == {"[rank 0]", "[rank 1]"}


@pytest.mark.long
def test_a_killed_rank_takes_the_other_with_it_and_the_trial_goes_on(
    kernel: Kernel, undisturbed: int, cluster: Cluster, gate: Gate
) -> None:
    experiment = cluster.attach(_submit(kernel, stops="8", port=gate.port))
    chief, helper = _both(gate)
    checkpoint_at(experiment, 6)
    assert experiment.trials[0].slots == ["cpu:0", "cpu:1"]
    assert "cpu:0, cpu:1" in cluster.det("status")
    left = psutil.Process(chief.pid)
    helper.die(signal.SIGKILL)
    left.wait(timeout=PATIENCE)  # though it stands at the gate
    for visitor in _both(gate):
        visitor.go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    _assert_same_end(kernel, experiment, undisturbed)
    assert "rank 1 of 2: killed by signal 9" in str(experiment.logs())
    assert "at batch 6." in str(experiment.logs())


@pytest.mark.long
def test_an_exception_on_one_rank_is_the_experiments_error(kernel: Kernel, cluster: Cluster) -> None:
    cell = kernel.run(BROKEN).number
    number = _submit(kernel, "Broken")
    waited = kernel.run("experiment.wait()", fails=True)
    place = f"in cell [{cell}], line {line_of(BROKEN, 'raise')}, on rank 1"
    assert f"at batch 7, {place}:" in waited.text
    assert "failed again" in waited.text
    assert waited.error.startswith(f"UserCodeError: Experiment {number} failed {place}: ValueError: no seventh batch")
    trial = ended(cluster.attach(number), ExperimentState.ERROR)
    assert trial.error is not None
    assert (trial.restarts, trial.error.cell, trial.error.batch, trial.error.rank) == (1, cell, 7, 1)
    assert "Connection closed" not in waited.text


@pytest.mark.long
def test_pause_ends_both_and_they_go_on(kernel: Kernel, undisturbed: int, cluster: Cluster, gate: Gate) -> None:
    experiment = cluster.attach(_submit(kernel, stops="8", holds="8", port=gate.port))
    ranks = _both(gate)
    processes = [psutil.Process(visitor.pid) for visitor in ranks]
    experiment.pause()
    for visitor in ranks:
        visitor.go()
    for process in processes:
        process.wait(timeout=PATIENCE)
    experiment.activate()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    assert str(experiment.logs()).count("Paused after batch") == 1
    _assert_same_end(kernel, experiment, undisturbed)


@pytest.mark.long
def test_a_master_that_comes_back_finds_both(kernel: Kernel, undisturbed: int, cluster: Cluster, gate: Gate) -> None:
    experiment = cluster.attach(_submit(kernel, stops="5 8", port=gate.port))
    before = _both(gate)
    master = cluster.master
    os.kill(master.pid, signal.SIGKILL)
    assert wait_until_gone(master.pid, master.start, PATIENCE)
    for visitor in before:
        visitor.go()
    after = _both(gate)
    assert [visitor.pid for visitor in after] == [visitor.pid for visitor in before]
    cluster.start()
    assert "cpu:0, cpu:1" in cluster.det("status")
    for visitor in after:
        visitor.go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    _assert_same_end(kernel, experiment, undisturbed)
