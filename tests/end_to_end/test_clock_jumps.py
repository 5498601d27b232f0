"""The machine's clock is set forth and back while a cluster works: nothing waits for it, ends by it, or is lost."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import Cluster, Gate, Kernel, assert_complete_rows, ended, events_until, running_kernel
from programs import BATCHES, TORCH_CELLS, TORCH_CREATE

from det_native.schema.states import ExperimentState

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("cc") is None,
        reason="Linux and a C compiler give processes a clock that can be set",
    ),
]

DAY = 86_400
SHIM = Path(__file__).with_name("shifted_clock.c")
PRINTED_TIME = "import time; print(time.time())"
# Tells the hour in its log before the first batch.
DATED = """
class Dated(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        print("clock", time.time())
        return super().train_batch(batch, epoch_idx, batch_idx)
"""
CREATE = TORCH_CREATE.replace("Digits", "Dated")


class ClockCluster(Cluster):
    """A cluster, all of whose processes have a clock that the test sets."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._shim, self._shift = folder / "shifted_clock.so", folder / "shift"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self._shim, SHIM, "-ldl"], check=True)
        self._shift.write_bytes(bytes(8))

    @property
    def environment(self) -> dict[str, str]:
        """Variables of all that belongs to this cluster."""
        return super().environment | {"LD_PRELOAD": str(self._shim), "TEST_CLOCK_SHIFT": str(self._shift)}

    def set_clock(self, seconds: int) -> None:
        """Set the clock so many seconds forth or back of the right time."""
        with self._shift.open("r+b") as file:
            file.write(seconds.to_bytes(8, "little", signed=True))


@pytest.fixture
def clock_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClockCluster]:
    cluster = ClockCluster(tmp_path)
    monkeypatch.setenv("DET_HOME", str(cluster.home.path))
    try:
        cluster.start("torch")
        yield cluster
    finally:
        cluster.take_down()


@pytest.fixture
def clock_kernel(clock_cluster: ClockCluster) -> Iterator[Kernel]:
    with running_kernel(clock_cluster, "notebook", *TORCH_CELLS, DATED) as kernel:
        yield kernel


def test_a_training_does_not_notice(clock_kernel: Kernel, clock_cluster: ClockCluster, gate: Gate) -> None:
    undisturbed = clock_cluster.attach(clock_kernel.submit_with(CREATE))
    ended(undisturbed, ExperimentState.COMPLETED)

    experiment = clock_cluster.attach(clock_kernel.submit_with(CREATE, stops="4 8 12", port=gate.port))
    visitor = gate.next()
    clock_cluster.set_clock(2 * DAY)
    assert abs(float(clock_cluster.command("-c", PRINTED_TIME)) - time.time() - 2 * DAY) < 600
    visitor.go()
    visitor = gate.next()  # at batch 8
    clock_cluster.set_clock(-3 * DAY)
    visitor.die(signal.SIGKILL)
    visitor = gate.next()  # its second attempt
    told = clock_cluster.det("experiment", "list")
    assert str(experiment.id) in told
    experiment.pause()
    clock_cluster.set_clock(DAY)
    visitor.go()
    events_until(experiment, lambda event: event.type == "trial" and event.data["state"] == "QUEUED")
    experiment.resume()
    visitor = gate.next()
    clock_cluster.set_clock(-DAY)
    visitor.go()
    gate.next().go()
    trial = ended(experiment, ExperimentState.COMPLETED)
    assert trial.restarts == 1
    assert_complete_rows(experiment, BATCHES)
    assert clock_kernel.end_of(experiment.id) == clock_kernel.end_of(undisturbed.id)
    seen = [float(line.text.split()[1]) - time.time() for line in experiment.logs() if line.text.startswith("clock")]
    assert max(seen) > DAY, "the workers have had the clock that was set"
    assert min(seen) < -DAY / 2
    assert "reported nothing" not in str(experiment.logs())
