"""The GPUs of this machine, told without importing a framework."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping

_QUERY_SECONDS = 20.0
_GPU_LINE = re.compile(r"GPU (\d+): ")
_MIG_LINE = re.compile(r"\s+MIG .*\(UUID: (MIG-[^)]+)\)")


def visible_gpus(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` would name them."""
    restricted = environment.get("CUDA_VISIBLE_DEVICES")
    if restricted is not None:
        named = [item.strip() for item in restricted.split(",")]
        # CUDA itself stops at the first entry that names no device.
        cut = next((index for index, item in enumerate(named) if item in ("", "-1")), len(named))
        if cut == 0:
            return []
        return named[:cut] if _all_gpus(environment) else []
    return _all_gpus(environment)


def _all_gpus(environment: Mapping[str, str]) -> list[str]:
    program = shutil.which("nvidia-smi", path=environment.get("PATH"))
    if program is None:
        return []
    try:
        answer = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=_QUERY_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return parse_gpus(answer.stdout) if answer.returncode == 0 else []


def parse_gpus(listing: str) -> list[str]:
    """Read the output of ``nvidia-smi -L``; a GPU that is divided counts as its parts."""
    found: list[str] = []
    whole: str | None = None
    for line in listing.splitlines():
        if gpu := _GPU_LINE.match(line):
            if whole is not None:
                found.append(whole)
            whole = gpu[1]
        elif part := _MIG_LINE.match(line):
            whole = None
            found.append(part[1])
    return found if whole is None else [*found, whole]
