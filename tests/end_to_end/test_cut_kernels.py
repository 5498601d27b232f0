"""A notebook's cell is interrupted, and its kernel killed, in the middle of an upload, at moments that are drawn.

``DET_CUTS_SEED`` repeats a run. Without a kernel, and more often: ``tests/master/test_cut_uploads.py``.
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from faults import PATIENCE, Cluster, Kernel, assert_complete_rows, ended, running_kernel
from programs import BATCHES, TORCH_CELLS, TORCH_CREATE

from det_native.client.connect import connect
from det_native.schema import routes
from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.soak]

# A module of the kernel's folder, which no program needs: sends a signal at a call of a function in an upload; the file
# ``cut`` says at which, and which signal.
CUTTING = """
import itertools, os, pathlib, sys
from det_native.experimental import cluster

upload = cluster.upload_bundle

def cut(session, bundle):
    step, number = map(int, pathlib.Path("cut").read_text().split())
    counted = itertools.count(1)
    sys.setprofile(lambda *_: os.kill(os.getpid(), number) if next(counted) == step else None)
    try:
        return upload(session, bundle)
    finally:
        sys.setprofile(None)
        pathlib.Path("calls").write_text(str(next(counted) - 1))

cluster.upload_bundle = cut
"""
NOISY = """
noise = open("noise.bin", "rb").read()

class Noisy(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        assert len(noise) == 2_000_000
        return super().train_batch(batch, epoch_idx, batch_idx)
"""
CREATE = TORCH_CREATE.replace("Digits", "Noisy")


def _experiments() -> set[int]:
    return {experiment.id for experiment in connect(start=False).call(routes.LIST_EXPERIMENTS, limit=1000)}


def _cut(kernel: Kernel, step: int, number: int) -> None:
    (kernel.folder / "cut").write_text(f"{step} {int(number)}")


def _write_noise(kernel: Kernel, draw: random.Random) -> None:
    (kernel.folder / "noise.bin").write_bytes(draw.randbytes(2_000_000))
    kernel.run(NOISY)


def test_no_experiment_is_there_and_the_cell_run_again_submits_it(
    cluster: Cluster, torch_end: Any, tmp_path: Path
) -> None:
    seed = int(os.environ.get("DET_CUTS_SEED") or random.SystemRandom().randrange(10**6))
    print(f"DET_CUTS_SEED={seed}")  # shown where the test fails
    draw = random.Random(seed)
    name = f"cut-{tmp_path.name}"
    with running_kernel(cluster, name, *TORCH_CELLS) as kernel:
        (kernel.folder / "cutting.py").write_text(CUTTING)
        kernel.run("import cutting")
        kernel.run("settings = {}")
        for _ in range(2):  # the first one has more to do
            _write_noise(kernel, draw)
            _cut(kernel, 0, 0)
            ended(cluster.attach(kernel.submit(CREATE)), ExperimentState.COMPLETED)
        calls = int((kernel.folder / "calls").read_text())
        assert calls > 200
        for _ in range(2):
            _write_noise(kernel, draw)
            before = _experiments()
            _cut(kernel, draw.randrange(1, calls * 3 // 4), signal.SIGINT)
            assert kernel.run(CREATE, fails=True).error.startswith("KeyboardInterrupt")
            assert _experiments() == before
            _cut(kernel, 0, 0)
            experiment = cluster.attach(kernel.submit(CREATE))
            assert _experiments() == before | {experiment.id}
            ended(experiment, ExperimentState.COMPLETED)
        _write_noise(kernel, draw)
        before = _experiments()
        process = psutil.Process(int(kernel.value("os.getpid()")))
        _cut(kernel, draw.randrange(1, calls * 3 // 4), signal.SIGKILL)
        kernel.begin(CREATE)
        process.wait(PATIENCE)
        assert _experiments() == before
    with running_kernel(cluster, name, *TORCH_CELLS, "settings = {}", NOISY) as kernel:
        experiment = cluster.attach(kernel.submit(CREATE))
        assert _experiments() == before | {experiment.id}
        assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
        assert_complete_rows(experiment, BATCHES)
        assert kernel.end_of(experiment.id) == torch_end
