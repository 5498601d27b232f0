"""``tools/horovod.sh``: what it says where it cannot build, and that a wheel is built once only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "tools" / "horovod.sh"
USED = ("dirname", "head", "ls", "mktemp", "rm", "sh", "tail")


def run(tmp_path: Path, *arguments: str, path: str = "", venv: str = sys.prefix) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "VENV": venv, "PATH": path or os.environ["PATH"]}
    command = ["/bin/sh", str(SCRIPT), *arguments]
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in USED:
        (tools / name).symlink_to(shutil.which(name) or name)
    done = run(tmp_path, path=str(tools))
    assert done.returncode == 1
    assert done.stderr == "Building Horovod needs: g++ make (apt-get install g++ make).\n"
    assert done.stdout == ""


def test_a_wheel_for_the_same_versions_is_not_built_again(tmp_path: Path) -> None:
    versions = [f"cp{sys.version_info[0]}{sys.version_info[1]}", f"tensorflow{metadata.version('tensorflow-cpu')}"]
    kept = tmp_path / "det_native" / "wheels" / "-".join([*versions, f"torch{metadata.version('torch')}"])
    kept.mkdir(parents=True)
    wheel = kept / "horovod-0.28.1-cp311-cp311-linux_x86_64.whl"
    wheel.touch()
    done = run(tmp_path, "build")
    assert (done.returncode, done.stdout) == (0, f"{wheel}\n")


def test_an_environment_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, venv="none")
    assert done.returncode == 1
    assert "There is no Python environment in none: name one, VENV=/path/to/environment sh " in done.stderr
