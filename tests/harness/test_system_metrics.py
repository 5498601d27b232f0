"""What a process tree uses: read from real processes, and from a library that stands in for NVIDIA's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from det_harness.system import sampler
from det_harness.system.gang import measured
from det_harness.system.meter import Meter
from det_harness.system.sampler import sampled
from det_harness.system.usage import Reading, metrics_between

from det_native.schema.environment import Ranks
from det_native.schema.job import TrialJob
from det_native.schema.rest import SystemSample
from det_native.schema.system_samples import left_samples

PROFILING = {"profiling": {"enabled": True, "period": 0.1}}
PATIENCE = 30.0


class Taken:
    """Keeps samples and tells when there are some."""

    def __init__(self) -> None:
        self.samples: list[SystemSample] = []
        self._changed = threading.Condition()

    def __call__(self, samples: list[SystemSample]) -> None:
        with self._changed:
            self.samples += samples
            self._changed.notify_all()

    def wait(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.samples) >= count, PATIENCE)


def test_what_grew_is_told_per_second_and_amounts_as_they_are() -> None:
    before = Reading(10.0, {"memory_bytes": 5.0}, {"cpu_seconds": 1.0, "disk_read_bytes": 100.0})
    now = Reading(12.0, {"memory_bytes": 7.0}, {"cpu_seconds": 4.0, "disk_read_bytes": 300.0})
    assert metrics_between(before, now) == {
        "memory_bytes": 7.0,
        "cpu_percent": 150.0,
        "disk_read_bytes_per_second": 100.0,
    }


def test_what_cannot_be_told_is_left_out_and_is_no_zero() -> None:
    before = Reading(10.0, {}, {"cpu_seconds": 5.0})
    now = Reading(11.0, {}, {"cpu_seconds": 4.0, "disk_read_bytes": 300.0})  # a process has left; the other is new
    assert metrics_between(before, now) == {}
    assert metrics_between(before, Reading(10.01, {"memory_bytes": 1.0}, {"cpu_seconds": 9.0})) == {"memory_bytes": 1.0}


BUSY = """
import sys, time
held = bytearray(60_000_000)
with open(sys.argv[1], "wb") as file:
    file.write(held)
    file.flush()
    import os; os.fsync(file.fileno())
print("ready", flush=True)
until = time.monotonic() + 60
while time.monotonic() < until:
    pass
"""


@pytest.fixture
def busy_child(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen([sys.executable, "-c", BUSY, tmp_path / "file"], stdout=subprocess.PIPE, text=True)
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def test_what_a_process_has_started_counts_as_its_own(busy_child: subprocess.Popen[str]) -> None:
    meter = Meter([])
    alone = psutil.Process().memory_info().rss
    before = meter.read()
    assert busy_child.stdout is not None
    assert busy_child.stdout.readline() == "ready\n"
    used = psutil.Process(busy_child.pid).cpu_times().user
    while psutil.Process(busy_child.pid).cpu_times().user < used + 0.3:
        busy_child.poll()
    metrics = metrics_between(before, meter.read())
    assert metrics["memory_bytes"] > alone + 40_000_000
    assert metrics["cpu_percent"] > 1
    assert metrics["network_received_bytes_per_second"] >= 0
    if "disk_write_bytes_per_second" in metrics:
        assert metrics["disk_write_bytes_per_second"] > 0
    assert not any(name.startswith("gpu") for name in metrics)


def test_what_the_system_does_not_tell_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(process: psutil.Process) -> None:
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "io_counters", refuse)
    found = Meter([], network=False).read()
    assert set(found.totals) == {"cpu_seconds"}
    assert set(found.amounts) == {"memory_bytes"}


def test_a_short_block_has_a_sample_and_a_longer_one_several() -> None:
    taken = Taken()
    with sampled(PROFILING, list, taken):
        pass
    (only,) = taken.samples
    assert only.metrics["memory_bytes"] > 1_000_000
    assert abs(only.time - time.time()) < PATIENCE
    with sampled(PROFILING, list, taken, rank=3):
        taken.wait(3)
    assert taken.samples[-1].rank == 3
    times = [sample.time for sample in taken.samples]
    assert times == sorted(set(times))


@pytest.mark.parametrize("config", [{}, {"profiling": {"enabled": False}}])
def test_it_can_be_switched_off(config: dict[str, object]) -> None:
    threads = threading.active_count()
    taken = Taken()
    with sampled(config, list, taken):
        assert threading.active_count() == threads
    assert taken.samples == []


def test_an_error_ends_the_measuring_and_not_the_training(caplog: pytest.LogCaptureFixture) -> None:
    def fail(samples: list[SystemSample]) -> None:
        raise OSError("no room")

    with sampled(PROFILING, list, fail):
        pass
    assert "no longer measured: OSError: no room" in caplog.text


def test_a_driver_that_hangs_keeps_no_training_from_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sampler, "_CLOSE_SECONDS", 0.05)
    hangs, taken = threading.Event(), Taken()

    def devices() -> list[str]:
        hangs.wait(PATIENCE)
        return []

    with sampled(PROFILING, devices, taken):
        (thread,) = (one for one in threading.enumerate() if one.name == "det-system")
    assert "is left out" in caplog.text
    hangs.set()
    thread.join(PATIENCE)
    assert taken.samples == []


def test_the_first_process_reports_for_all(tmp_path: Path) -> None:
    jobs = [
        TrialJob.model_construct(config=PROFILING, devices=[], directory=str(folder))
        for folder in (tmp_path, tmp_path / "rank-1")
    ]
    (tmp_path / "rank-1").mkdir()
    taken = Taken()
    with measured(jobs[0], Ranks(0, 2, 0, 2), taken):
        with measured(jobs[1], Ranks(1, 2, 1, 2), taken):
            taken.wait(2)
        taken.wait(len(taken.samples) + 1)
    by_rank = {rank: [one for one in taken.samples if one.rank == rank] for rank in (0, 1)}
    left = left_samples(tmp_path, 2)
    assert by_rank[1] == left[: len(by_rank[1])]
    assert len({one.time for one in by_rank[1]}) == len(by_rank[1]) > 0
    # The network is the machine's: one process tells of it.
    assert "network_sent_bytes_per_second" in by_rank[0][-1].metrics
    assert not any("network" in name for one in by_rank[1] for name in one.metrics)


ASKING = """
import json
from det_harness.system.meter import Meter
from det_native.schema.nvml import begun_once, own_gpus
with begun_once():
    print(json.dumps([own_gpus(), dict(Meter({devices}).read().amounts)]))
"""


@pytest.mark.slow
def test_gpus_are_told_as_the_process_numbers_them(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    source = Path(__file__).parents[1] / "master/launch/fake_nvml.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", tmp_path / "libnvidia-ml.so.1", source], check=True)
    variables = {
        **os.environ,
        "LD_LIBRARY_PATH": str(tmp_path),
        "FAKE_NVML_USED": "7000000000",
        "FAKE_NVML_BUSY": "87",
    }
    variables.pop("CUDA_VISIBLE_DEVICES", None)

    def ask(devices: list[str], **more: str) -> tuple[list[str], dict[str, float]]:
        code = ASKING.replace("{devices}", repr(devices))
        run = subprocess.run(
            [sys.executable, "-c", code], env=variables | more, check=True, capture_output=True, text=True
        )
        own, amounts = json.loads(run.stdout)
        return own, {name: value for name, value in amounts.items() if name.startswith("gpu")}

    assert ask(["0"]) == (["0"], {"gpu0_memory_bytes": 7e9, "gpu0_percent": 87.0})
    # The second of its GPUs is known, by its name; the first one, a part of a GPU, say, is not.
    variables["CUDA_VISIBLE_DEVICES"] = "MIG-1,GPU-fake,-1,0"
    assert ask(["MIG-1", "GPU-fake"]) == (
        ["MIG-1", "GPU-fake"],
        {"gpu1_memory_bytes": 7e9, "gpu1_percent": 87.0},
    )
    del variables["FAKE_NVML_BUSY"]
    assert ask(["0"])[1] == {"gpu0_memory_bytes": 7e9}
