"""What the driver's library tells of GPUs: a real shared library stands in for it, in real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_gpus import make_driver

from det_native.schema.nvml import read_gpus

USED = 60_000_000_000


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library, and of an ``nvidia-smi`` that lists its GPU."""
    return make_driver(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def environment(library: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Where it is found, with a home of its own; its master is ended."""
    variables = {
        **os.environ,
        "LD_LIBRARY_PATH": str(library),
        "PATH": f"{library}:{os.environ['PATH']}",
        "DET_HOME": str(tmp_path / "home"),
        "FAKE_NVML_USED": str(USED),
        "FAKE_NVML_PID": str(os.getpid()),
    }
    variables.pop("CUDA_VISIBLE_DEVICES", None)
    yield variables
    det(variables, "down", "--kill")


def det(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "det_native.client.command", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


def test_without_the_library_nothing_is_known() -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is one here")
    assert read_gpus(["0"]) == {}


@pytest.mark.slow
def test_slots_have_names_and_a_gpu_that_others_fill_is_said(environment: dict[str, str]) -> None:
    det(environment, "up")
    assert "0 of 1 busy (1 Fake H100 (80.0 GB))" in det(environment, "status")
    assert "Fake H100 (80.0 GB)" in det(environment, "slot", "list")
    asking = (
        "from det_native.client.connect import connect;"
        "print(*connect(start=False).post('/environment', {'modules': []})['notices'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", asking], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert f"other processes ({os.getpid()} " in done.stdout
    assert "use 60.0 of 80.0 GB: a trial there may find no memory" in done.stdout


@pytest.mark.slow
def test_a_gpu_by_its_uuid_and_one_that_is_not_there(environment: dict[str, str]) -> None:
    code = "from det_native.schema.nvml import read_gpus; print(sorted(read_gpus(['GPU-fake', 'GPU-other', '0', '7'])))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['0', 'GPU-fake']"
