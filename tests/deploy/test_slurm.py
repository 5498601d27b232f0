"""The scripts of ``deploy/slurm``: real Ray nodes by a stand-in for Slurm; trials that write checkpoints in time."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

sys.path.append(str(Path(__file__).parents[1] / "master"))

from master_parts import Master, Worker, running_master
from slurm_cluster import PATIENCE, SCRIPTS, SlurmCluster

BASH = sorted([*SCRIPTS.glob("*.sbatch"), *SCRIPTS.glob("*.sh")])
BATCH = sorted(SCRIPTS.glob("*.sbatch"))
CONFIG = {"hyperparameters": {"global_batch_size": 32, "lr": 0.1}}


def script(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(f"slurm_{name}", SCRIPTS / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("path", BASH, ids=lambda path: path.name)
def test_bash_understands_it(path: Path) -> None:
    subprocess.run(["bash", "-n", path], check=True)
    if shutil.which("shellcheck") is not None:
        # Functions that only a trap calls count as unused there.
        subprocess.run(["shellcheck", "--exclude=SC2329,SC2317", path], check=True)


@pytest.mark.parametrize("path", BASH, ids=lambda path: path.name)
def test_it_keeps_to_its_own(path: Path) -> None:
    text = path.read_text()
    assert "umask 077" in text
    # Those would end what other jobs of the user have on the same node.
    assert not re.search(r"ray stop|pkill|killall", text)
    # Tokens are in files: variables of a job and arguments of a process can be seen by others.
    assert not re.search(r"RAY_AUTH_TOKEN=", text)


@pytest.mark.parametrize("path", BATCH, ids=lambda path: path.name)
def test_options_of_the_batch_scripts(path: Path) -> None:
    options = dict(re.findall(r"(?m)^#SBATCH --([\w-]+)(?:=(.+))?$", path.read_text()))
    assert options["signal"] == "B:USR1@120"
    assert "no-kill" in options
    assert options["ntasks-per-node"] == "1"


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[SlurmCluster]:
    temporary = Path(tempfile.mkdtemp(prefix="slurm", dir="/tmp"))  # Ray's sockets want a short path
    cluster = SlurmCluster(tmp_path, temporary)
    yield cluster
    cluster.close()
    shutil.rmtree(temporary)


@pytest.mark.slow
def test_a_cluster_without_a_job_is_said(slurm: SlurmCluster) -> None:
    assert slurm.submit("add_nodes.sbatch", "7", job=8).wait(60) == 1
    assert "no cluster of job 7" in slurm.output(8)
    elsewhere = slurm.submit("det_native.sbatch", job=9, SLURM_SUBMIT_DIR=str(slurm.folder))
    assert elsewhere.wait(60) == 1
    assert f"ray_node.sh is not in {slurm.folder}" in slurm.output(9)


@pytest.mark.long
def test_nodes_start_join_leave_and_end(slurm: SlurmCluster) -> None:
    job = slurm.submit("det_native.sbatch", job=71, nodes=2)
    folder = slurm.job_folder(71)
    _wait_for(folder / "address", job, slurm)
    for name in ("token", "address", "client_address"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    with slurm.watch(71) as watcher:

        def nodes(count: int) -> list[str]:
            assert watcher.stdin is not None
            assert watcher.stdout is not None
            print(count, file=watcher.stdin, flush=True)
            found = json.loads(watcher.stdout.readline())
            assert isinstance(found, list)
            return found

        more = slurm.submit("add_nodes.sbatch", "71", job=72)
        assert nodes(3) == ["job71-0", "job71-1", "job72-0"], slurm.output(71) + slurm.output(72)
        more.send_signal(signal.SIGUSR1)
        assert nodes(2) == ["job71-0", "job71-1"]
        assert more.wait(60) == 0
        assert "leaves the cluster" in slurm.output(72)
        assert watcher.stdin is not None
        watcher.stdin.close()
        watcher.wait(60)
    job.send_signal(signal.SIGTERM)
    assert job.wait(60) == 0
    assert slurm.processes() == []
    assert list(slurm.temporary.iterdir()) == []
    assert not folder.exists()


def _wait_for(path: Path, job: subprocess.Popen[bytes], slurm: SlurmCluster) -> None:
    end = time.monotonic() + PATIENCE
    while not path.exists():
        assert job.poll() is None, slurm.output(71)
        assert time.monotonic() < end, slurm.output(71)
        time.sleep(0.05)


# What a worker is to the script: a session of its own, the module's name, the job's number, the folder of a run.
_TRAINING = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("trains", flush=True)
signal.pause()
"""


@pytest.mark.slow
def test_trials_of_this_job_are_asked_to_end(tmp_path: Path) -> None:
    def start(job: str, work: str) -> subprocess.Popen[str]:
        folder = tmp_path / work
        folder.mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-c", _TRAINING, "det_harness.worker.standby"],
            cwd=folder,
            env=os.environ | {"SLURM_JOB_ID": job},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "trains\n"
        return process

    ours, standby, others = start("5", "runs/1/work"), start("5", "standby"), start("6", "runs/2/work")
    try:
        assert script("end_trials").main(30, "5") == 0
        assert ours.wait(10) == 0
        assert standby.poll() is None
        assert others.poll() is None
    finally:
        for process in (ours, standby, others):
            process.kill()
            process.communicate()


@pytest.fixture
def master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Master]:
    with running_master(tmp_path / "home") as running:
        monkeypatch.setenv("DET_MASTER", str(running.client.base_url).rstrip("/"))
        monkeypatch.setenv("DET_TOKEN", running.token)
        yield running


@pytest.mark.slow
def test_experiments_are_paused_and_go_on_in_the_next_job(master: Master, tmp_path: Path) -> None:
    notes = tmp_path / "paused.json"
    running = master.create(CONFIG)["id"]
    job = master.world.wait_for_jobs(1)[-1]
    worker = Worker(master, job)
    worker.start()
    own = master.create(CONFIG)["id"]
    script("experiments").det.attach(own).pause()

    experiments = script("experiments")
    experiments.pause(notes, 0)
    assert json.loads(notes.read_text()) == [running]
    assert experiments.det.attach(running).state == "Paused"

    experiments.resume(notes)
    assert experiments.det.attach(running).state != "Paused"
    assert experiments.det.attach(own).state == "Paused"
    assert not notes.exists()
