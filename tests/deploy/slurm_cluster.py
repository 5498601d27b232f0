"""A stand-in for Slurm: `srun` starts a command once for each node of a job, all of them on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

SCRIPTS = Path(__file__).resolve().parents[2] / "deploy" / "slurm"
PATIENCE = 240.0

#: Signals go on to what it has started, as Slurm's does.
_SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
pids=()
for ((node = 0; node < SLURM_JOB_NUM_NODES; node++)); do
    SLURM_NODEID=$node SLURMD_NODENAME=$SLURM_JOB_NAME-$node "$@" &
    pids+=($!)
done
trap 'kill -TERM "${pids[@]}" 2>/dev/null' TERM
trap 'kill -USR1 "${pids[@]}" 2>/dev/null' USR1
for pid in "${pids[@]}"; do
    while kill -0 "$pid" 2>/dev/null; do wait "$pid"; done
done
"""
_SCONTROL = """#!/bin/bash
echo "$@" >> "$HOME/scontrol.txt"
"""
# Ray imports jsonschema, and that this package where it is installed (JupyterLab brings it): 3 s of processor time in
# each of Ray's processes, to check addresses in a format that nobody here uses. jsonschema does without it.
_NOT_IMPORTED = "raise ImportError"
# A part of the cluster that says which nodes it sees, once there are as many as it is asked for.
_WATCH = """
import json, sys, time
import ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
for line in sys.stdin:
    end = time.monotonic() + float(sys.argv[2])
    while True:
        nodes = [node for node in ray.nodes() if node["Alive"]]
        if len(nodes) == int(line) or time.monotonic() > end:
            break
        time.sleep(0.2)
    print(json.dumps(sorted(node["NodeName"] for node in nodes)), flush=True)
"""


class SlurmCluster:
    """Runs batch scripts as Slurm does: with variables of a job, on as many nodes as it has.

    Attributes
    ----------
    folder : Path
        Home of the user, with the output of the jobs.
    temporary : Path
        Where Ray's temporary folders are; its path is short.
    """

    def __init__(self, folder: Path, temporary: Path) -> None:
        self.folder = folder
        self.temporary = temporary
        self._jobs: list[subprocess.Popen[bytes]] = []
        quick = folder / "quick"
        quick.mkdir()
        (quick / "rfc3987_syntax.py").write_text(_NOT_IMPORTED)
        programs = folder / "bin"
        programs.mkdir()
        for name, text in (("srun", _SRUN), ("scontrol", _SCONTROL)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "SLURM_"))},
            "HOME": str(folder),
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(quick), os.environ.get("PYTHONPATH")])),
            "SLURM_SUBMIT_DIR": str(SCRIPTS),
            "SLURM_CPUS_PER_TASK": "1",
            "DET_SLURM_MASTER": "none",
            "DET_RAY_IP": "127.0.0.1",
            "DET_RAY_TEMP": str(temporary),
            "DET_RAY_OBJECT_STORE": "80000000",
            "DET_RAY_GRACE": "5",
        }

    def submit(
        self, script: str, *arguments: str, job: int, nodes: int = 1, **variables: str
    ) -> subprocess.Popen[bytes]:
        """Start the batch script of a job."""
        own = {"SLURM_JOB_ID": str(job), "SLURM_JOB_NUM_NODES": str(nodes), "SLURM_JOB_NAME": f"job{job}"}
        with (self.folder / f"{job}.log").open("ab") as output:
            started = subprocess.Popen(
                ["bash", str(SCRIPTS / script), *arguments],
                env=self.environment | own | variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._jobs.append(started)
        return started

    def job_folder(self, job: int) -> Path:
        """Return where a job keeps its token and its address."""
        return self.folder / ".det_native" / "slurm" / str(job)

    def output(self, job: int) -> str:
        """Return what a job has written."""
        return (self.folder / f"{job}.log").read_text()

    def watch(self, job: int) -> subprocess.Popen[str]:
        """Start a program that is a part of the Ray cluster of a job; write it a number, and read the nodes."""
        folder = self.job_folder(job)
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(folder / "token")}
        address = (folder / "address").read_text().strip()
        return subprocess.Popen(
            [sys.executable, "-c", _WATCH, address, str(PATIENCE)],
            env=self.environment | token,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def processes(self) -> list[str]:
        """Return the processes of Ray that any job has left, by their command lines."""
        lines = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
        return [line for line in lines if str(self.temporary) in line]

    def close(self) -> None:
        """End all jobs."""
        for job in self._jobs:
            if job.poll() is None:
                job.send_signal(signal.SIGTERM)
        for job in self._jobs:
            job.wait(60)
