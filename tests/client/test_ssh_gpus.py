"""``det remote`` and what a machine has else: GPUs and builds that see them, no internet, Slurm; a real sshd."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from ssh_machine import SshMachine, running_machine
from tiny_wheels import make_wheel

from det_native.client.remote.gpu_builds import choose
from det_native.client.remote.requirements import pinned
from det_native.client.remote.setting_up import Plan, plan
from det_native.client.remote.ssh import Done, Line
from det_native.client.remote.target import parse_target
from det_native.errors import ArgumentError

pytestmark = [pytest.mark.slow, pytest.mark.long]

PATIENCE = 280.0
HERE = ".".join(map(str, sys.version_info[:2]))
NVIDIA_SMI = """#!/bin/sh
case "$1" in
    -L) echo "GPU 0: Fake H100 (UUID: GPU-fake)" ;;
    --query*) echo "Fake H100, 80000 MiB, 60000 MiB" ;;
    *) echo "| NVIDIA-SMI 550.54    Driver Version: 550.54    CUDA Version: 12.4     |" ;;
esac
"""
# The index of PyTorch's builds, as it is read there.
CURL = """#!/bin/sh
for url; do :; done
[ "$url" = https://download.pytorch.org/whl/torch/ ] || exit 22
for tag in cpu cu118 cu121 cu124 cu126; do
    echo "<a href=\\"/whl/$tag/torch-9.1.0%2B$tag-cp311-cp311-linux_x86_64.whl#sha256=0\\">torch-9.1.0+$tag</a>"
done
echo '<a href="/whl/cu123/torch-9.1.1%2Bcu123-cp311-cp311-linux_x86_64.whl">'
"""


@pytest.fixture(scope="module")
def shared_machine() -> Iterator[SshMachine]:
    """A machine that the tests share."""
    with running_machine() as machine:
        yield machine


@pytest.fixture
def machine(shared_machine: SshMachine, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshMachine]:
    """The machine as this test reaches it."""
    with shared_machine.as_seen_here(monkeypatch) as seen:
        yield seen


def programs(machine: SshMachine, **texts: str) -> str:
    """Make programs there; returns a PATH with them in front."""
    folder = machine.folder / "-".join(["bin", *texts])
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("_", "-")).write_text(text)
        (folder / name.replace("_", "-")).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def det(*arguments: str, answer: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(
        [sys.executable, "-m", "det_native.client.command", *arguments],
        input=answer,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def steps(printed: str) -> list[str]:
    """Return the steps that were shown."""
    return [line.split(". ", 1)[1] for line in printed.splitlines() if line.startswith("  ")]


class TestCheck:
    def test_each_framework_says_what_it_sees(self, machine: SshMachine) -> None:
        done = det("remote", "check", machine.address)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"ok  torch       {torch.__version__} sees no GPU, and there is none" in done.stdout
        assert "ok  tensorflow  " in done.stdout

    @pytest.mark.skipif(torch.version.cuda is not None, reason="PyTorch here is built for GPUs")
    def test_a_framework_that_does_not_see_the_gpus_is_wrong(self, machine: SshMachine) -> None:
        with machine.configured(PATH=programs(machine, nvidia_smi=NVIDIA_SMI)):
            done = det("remote", "check", machine.address)
        assert done.returncode == 1
        assert "60000 MiB" in done.stdout
        [wrong] = [line for line in done.stdout.splitlines() if line.startswith("NO  torch")]
        assert "sees no GPU: it is built for the processors only. Run there: `" in wrong
        assert f"{machine.python} -m uv pip install" in wrong
        assert "NO  tensorflow" in done.stdout

    def test_a_login_node_of_slurm_is_said(self, machine: SshMachine) -> None:
        slurm = {"sinfo": "#!/bin/sh\necho up\n", "scontrol": "#!/bin/sh\nexit 1\n"}
        path = programs(machine, **slurm)
        with machine.configured(PATH=path):
            login = det("remote", "check", machine.address)
            planned = det("remote", "setup", machine.address, "--dry-run")
        with machine.configured(PATH=path, SLURM_JOB_ID="7"):
            job = det("remote", "check", machine.address)
        (machine.folder / "-".join(["bin", *slurm]) / "scontrol").write_text("#!/bin/sh\necho NodeName=n1\n")
        with machine.configured(PATH=path):
            node = det("remote", "check", machine.address)
        assert "Slurm       This is a login node of Slurm" in login.stdout
        assert "This is a login node of Slurm" in planned.stdout
        assert "Slurm" not in job.stdout + node.stdout


class TestBuilds:
    def test_setup_takes_the_builds_that_fit_the_driver(self, machine: SshMachine) -> None:
        setup = "remote", "setup", machine.address, "--dry-run", "-p", "torch==9.1.0", "-p", "tensorflow==9.0"
        with machine.configured(PATH=programs(machine, nvidia_smi=NVIDIA_SMI, curl=CURL)):
            there = det(*setup)
        without = det(*setup)
        assert there.returncode == 0, there.stderr
        [install] = [step for step in steps(there.stdout) if "torch==" in step]
        assert " --extra-index-url https://download.pytorch.org/whl/cu124 " in install
        assert " torch==9.1.0+cu124" in install
        assert " 'tensorflow[and-cuda]==9.0'" in install
        assert "The driver there takes CUDA up to 12.4: torch comes in its build cu124." in there.stdout
        [install] = [step for step in steps(without.stdout) if "torch==" in step]
        assert "--extra-index-url" not in install
        assert " torch==9.1.0" in install
        assert " tensorflow==9.0" in install

    def test_setup_takes_no_cuda_where_no_gpu_is(self, machine: SshMachine) -> None:
        with machine.configured(PATH=programs(machine, curl=CURL)):
            there = det("remote", "setup", machine.address, "--dry-run", "-p", "torch==9.1.0")
        [install] = [step for step in steps(there.stdout) if "torch==" in step]
        assert " --extra-index-url https://download.pytorch.org/whl/cpu " in install
        assert " torch==9.1.0+cpu" in install
        assert "No GPU is seen there" in there.stdout

    @pytest.mark.parametrize(
        ("driver", "chosen"),
        [
            ("12.4", (12, 4)),
            ("12.8", (12, 6)),
            ("12.2", (12, 4)),  # of one major version, a driver takes newer ones, too
            ("13.1", (12, 6)),
            ("11.4", None),
            ("12", (12, 4)),
        ],
    )
    def test_the_build_is_the_newest_that_the_driver_takes(self, driver: str, chosen: tuple[int, int] | None) -> None:
        assert choose({(12, 4), (12, 6)}, driver) == chosen

    def test_a_driver_that_is_too_old_is_said(self, tmp_path: Path) -> None:
        found = planned(tmp_path, driver="11.4")
        assert "torch==9.1.0" in found.steps[-2].text
        assert "torch==9.1.0 is built for 12.4: its GPUs will not be seen." in found.notes[-1]

    def test_builds_that_cannot_be_read_are_said(self, tmp_path: Path) -> None:
        found = planned(tmp_path, driver="12.4", builds="")
        assert "torch==9.1.0" in found.steps[-2].text
        assert "cannot be read there (https://download.pytorch.org/whl)" in found.notes[-1]

    def test_a_build_that_was_named_is_kept(self, tmp_path: Path) -> None:
        found = planned(tmp_path, driver="12.4", requirement="torch==9.1.0+cu118")
        assert "torch==9.1.0+cu118" in found.steps[-2].text


class TestOffline:
    def test_a_folder_of_wheels_is_sent_and_nothing_else_is_asked(self, machine: SshMachine, tmp_path: Path) -> None:
        wheels = tmp_path / "wheels"
        notebook = tmp_path / "notebook.ipynb"
        notebook.write_text('{"cells": []}')
        for requirement in pinned(notebook, ()):
            name, _, version = requirement.partition("==")
            make_wheel(wheels, name.replace("-", "_"), version)
        setup = "remote", "setup", machine.address, "-n", str(notebook), "--offline", str(wheels)
        place = machine.folder / "there" / "offline"
        # What det_native needs to start is found there, whatever the wheels of the test have.
        packages = os.pathsep.join(found for found in sys.path if found.endswith("site-packages"))
        with machine.configured(XDG_DATA_HOME=str(place), PYTHONPATH=packages, PIP_INDEX_URL="http://127.0.0.1:9/no"):
            lacking = det(*setup, "--dry-run", "-p", "det_tiny==1.5")
            make_wheel(wheels, "det_tiny", "1.5")
            done = det(*setup, "--yes", "-p", "det_tiny==1.5")
        assert lacking.returncode == 1
        assert f"{wheels} lacks det_tiny==1.5. Where there is internet, run `pip download --dest " in lacking.stderr
        assert f"--python-version {HERE} --platform manylinux_2_" in lacking.stderr
        assert done.returncode == 0, done.stdout + done.stderr
        environment = place / "det_native_environment"
        [installed] = environment.glob("lib/python3*/site-packages/det_tiny.py")
        assert "1.5" in installed.read_text()
        assert list(environment.glob("lib/python3*/site-packages/det_native/__init__.py"))
        assert not (environment / "det_native_wheels").exists()

    def test_what_is_missing_is_asked_for_the_python_there(self, tmp_path: Path) -> None:
        with pytest.raises(ArgumentError, match=r"--python-version 3\.99 --platform manylinux_2_18_aarch64"):
            planned(tmp_path, python="3.99", offline=tmp_path)


def planned(
    folder: Path,
    *,
    driver: str = "",
    builds: str = "torch-9.1.0%2Bcu124-cp311.whl",
    requirement: str = "torch==9.1.0",
    python: str = HERE,
    offline: Path | None = None,
) -> Plan:
    """Return what is planned for a machine that tells this of itself, and of an index."""
    told = f"environment=/data/e\nhome=/home/u\nhas={python}\npip=yes\npython={python} /usr/bin/python3\n"
    told += "machine=aarch64\nlibc=glibc 2.18\n" + (f"gpu=yes\ncuda={driver}\n" if driver else "")

    def run(script: str, *, seconds: float) -> Done:
        return Done(0, builds if "url=" in script.splitlines()[1] else told, "")

    line = cast(Line, SimpleNamespace(target=parse_target("ssh://box"), run=run))
    return plan(line, [requirement], folder, offline)
