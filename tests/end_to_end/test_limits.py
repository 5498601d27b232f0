"""Trainings that want more than there is: metrics, output, memory. Each ends, or goes on, with one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from faults import PATIENCE, Cluster, Gate, Kernel, ended
from programs import TORCH_CREATE

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

MANY = """
class Many(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        metrics = super().train_batch(batch, epoch_idx, batch_idx)
        return metrics | {f"metric {number}": 0.0 for number in range(1200)}

experiment = det.experimental.create(Many, configuration(hyperparameters=settings))
"""

MANY_VALIDATED = """
class ManyValidated(Digits):
    def evaluate_batch(self, batch):
        return super().evaluate_batch(batch) | {f"metric {number}": 0.0 for number in range(1200)}

experiment = det.experimental.create(ManyValidated, configuration(hyperparameters=settings))
"""

LOUD = """
class Loud(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == 6:
            print("\\n".join(f"{number} {'x' * 200}" for number in range(250_000)))
        print("batch", batch_idx)
        return super().train_batch(batch, epoch_idx, batch_idx)

experiment = det.experimental.create(Loud, configuration(hyperparameters=settings))
"""

HUNGRY = """
class Hungry(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == 4:
            self.eaten = bytearray(400 << 20)
        return super().train_batch(batch, epoch_idx, batch_idx)

experiment = det.experimental.create(Hungry, configuration(hyperparameters=settings, max_restarts=0))
"""

BOMB_PROCESSES = 31
# Each forks two more, four generations long, and is in a session of its own.
BOMB = """
import subprocess

class Bomb(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == 4:
            port = self.context.get_hparam("port")
            line = (
                "import os, socket, sys, time\\n"
                "depth = 0\\n"
                "while depth < 4 and (os.fork() == 0 or os.fork() == 0):\\n"
                "    os.setsid()\\n"
                "    depth += 1\\n"
                f"line = socket.create_connection(('127.0.0.1', {port}))\\n"
                "line.sendall(f'{os.getpid()} bomb\\\\n'.encode())\\n"
                "time.sleep(1000)\\n"
            )
            subprocess.Popen([sys.executable, "-c", line], start_new_session=True)
            gate(port, "bombed")
        return super().train_batch(batch, epoch_idx, batch_idx)

experiment = det.experimental.create(Bomb, configuration(hyperparameters=settings))
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("call", "batch", "says"),
    [
        pytest.param(MANY, 1, r"train_batch\(\) returned 1,201 metrics for batch 1; at most 1,000", id="training"),
        pytest.param(
            MANY_VALIDATED,
            5,
            r"evaluate_batch\(\) returned 1,201 metrics; at most 1,000",
            id="validation",
        ),
    ],
)
def test_too_many_metrics_are_one_error_at_that_batch(
    call: str, batch: int, says: str, kernel: Kernel, cluster: Cluster
) -> None:
    trial = ended(cluster.attach(kernel.submit_with(call)), ExperimentState.ERROR)
    assert trial.error is not None
    assert trial.restarts == 0
    assert trial.error.batch == batch
    assert re.search(says, trial.error.message), trial.error.message
    assert "Leave some out" in trial.error.message


@pytest.mark.long
def test_processes_that_a_trial_has_scattered_end_with_it(kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    experiment = cluster.attach(kernel.submit_with(BOMB, port=gate.port))
    visitors = [gate.next() for _ in range(BOMB_PROCESSES + 1)]
    [worker] = [visitor for visitor in visitors if visitor.text == "bombed"]
    scattered = [psutil.Process(visitor.pid) for visitor in visitors if visitor.text == "bomb"]
    worker.go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    _, alive = psutil.wait_procs(scattered, timeout=PATIENCE)
    for visitor in visitors:
        visitor.line.close()
    assert alive == []
    again = cluster.attach(kernel.submit_with(TORCH_CREATE))  # what it has left takes nothing from others
    assert ended(again, ExperimentState.COMPLETED).restarts == 0


@pytest.mark.long
def test_loud_output_is_cut_in_the_middle(kernel: Kernel, cluster: Cluster) -> None:
    experiment = cluster.attach(kernel.submit_with(LOUD))
    trial = ended(experiment, ExperimentState.COMPLETED)
    lines = str(experiment.logs()).splitlines()
    assert "batch 0" in lines
    assert "batch 14" in lines
    [told] = [line for line in lines if "Output is left out here" in line]
    assert float(told.split("here: ")[1].split()[0]) > 30
    assert trial.run_id is not None
    output = cluster.home.path / "runs" / trial.run_id / "output.log"
    assert output.stat().st_size > 45 << 20
    assert output.stat().st_blocks * 512 < 20 << 20


@contextmanager
def _memory_group(processes: list[psutil.Process]) -> Iterator[Path]:
    """Put processes into a control group of their own for the block; the test is skipped where that is not allowed."""
    own = [line.split(":")[2].strip() for line in Path("/proc/self/cgroup").read_text().splitlines()]
    roots = [Path("/sys/fs/cgroup/memory"), *(Path(f"/sys/fs/cgroup/memory{path}") for path in own)]
    before = next((root for root in reversed(roots) if (root / "cgroup.procs").exists()), roots[0])
    for root in roots:
        group = root / "det-test-memory"
        try:
            group.mkdir()
            (group / "memory.limit_in_bytes").write_text("-1")
            break
        except OSError:
            continue
    else:
        pytest.skip("no control group for memory can be made here")
    try:
        _move(processes, group)
        yield group
    finally:
        _move([psutil.Process(int(pid)) for pid in (group / "cgroup.procs").read_text().split()], before)
        group.rmdir()


def _move(processes: list[psutil.Process], group: Path) -> None:
    for process in processes:
        with suppress(OSError):  # it has ended meanwhile
            (group / "cgroup.procs").write_text(str(process.pid))


def test_a_worker_killed_for_memory_says_so(kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    standbys = [one for one in cluster.processes() if "det_harness.worker.standby" in " ".join(one.cmdline())]
    with _memory_group(standbys) as group:
        experiment = cluster.attach(kernel.submit_with(HUNGRY, stops="4", port=gate.port))
        visitor = gate.next()
        used = int((group / "memory.usage_in_bytes").read_text())
        (group / "memory.limit_in_bytes").write_text(str(used + (128 << 20)))
        visitor.go()
        trial = ended(experiment, ExperimentState.ERROR)
    assert trial.error is not None
    assert trial.error.type == "OutOfMemory"
    assert "The system killed the worker for want of memory: it had" in trial.error.message
    assert "MiB at its peak, with a batch size of 8." in trial.error.message
