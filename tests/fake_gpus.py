"""A machine with a GPU, as it is seen without one: the driver's library and ``nvidia-smi`` are stood in for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_SOURCE = Path(__file__).parent / "master" / "launch" / "fake_nvml.c"


def make_driver(folder: Path) -> Path:
    """Make a library, and an ``nvidia-smi`` that lists its one GPU, in a folder; returns it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", _SOURCE], check=True)
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: Fake H100 (UUID: GPU-fake)'\n")
    program.chmod(0o755)
    return folder
