"""A machine of its own for a program: a network in which nobody else is, and processes that all end with it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

#: Where others would reach the machine, if there were some.
ADDRESS = "10.77.0.9"
_ALONE = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
_NETWORK = f"""
ip link set lo up
ip address add {ADDRESS}/32 dev lo
ip route add default dev lo src {ADDRESS}
"""


def run_alone(
    *command: str, folder: Path, environment: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run a command on a machine of its own, at `ADDRESS` and loopback; skip the test where that is not allowed."""
    for program in ("unshare", "ip"):
        if shutil.which(program) is None:
            pytest.skip(f"There is no program {program}, which makes networks.")
    tried = subprocess.run([*_ALONE, "sh", "-ec", _NETWORK], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"Tests may not make networks here: {tried.stderr.strip()}")
    with (folder / "output").open("w+") as output:  # whoever lives longer than the command has no pipe of ours
        done = subprocess.run(
            [*_ALONE, "sh", "-ec", f'{_NETWORK}"$@"\n', "sh", *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
        output.seek(0)
        return subprocess.CompletedProcess(command, done.returncode, output.read(), "")
