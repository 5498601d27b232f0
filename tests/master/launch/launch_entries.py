"""What the workers of these tests run: a small real program that does as its job's hyperparameters say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from det_native.schema.job import CheckJob, TrialJob

try:
    from upgraded_package import VERSION
except ImportError:
    VERSION = "none"

SLEEPER = "import signal; signal.pause()"


def run(job: TrialJob | CheckJob) -> int:
    """Do what the job says; return the exit code."""
    directory = Path(job.directory)
    if isinstance(job, CheckJob):
        (directory / "result.json").write_text("{}")
        return 0
    action = job.hparams["action"]
    if action == "facts":
        facts = {
            "pid": os.getpid(),
            "session": os.getsid(0),
            "cwd": os.getcwd(),
            "environment": dict(os.environ),
            "modules": sorted(name for name in sys.modules if name in ("torch", "tensorflow")),
            "descriptors": len(os.listdir("/proc/self/fd")),
            "stdin": sys.stdin.read(),
        }
        (directory / "facts.json").write_text(json.dumps(facts))
    elif action == "version":
        print(VERSION)
    elif action == "print":
        print(job.hparams["text"])
    elif action == "exit":
        return int(job.hparams["code"])
    elif action == "die":
        os.kill(os.getpid(), signal.Signals[job.hparams["signal"]])
    elif action == "wait":
        _family(job.hparams)
        print("waiting", flush=True)
        signal.pause()
    elif action == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("waiting", flush=True)
        while True:
            signal.pause()
    elif action == "graceful":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        print("waiting", flush=True)
        signal.pause()
    elif action == "orphan":
        _family(job.hparams)
        print("leaving", flush=True)
    return 0


def _family(hparams: dict[str, object]) -> None:
    """Start a child, and a child that leaves the session; print their numbers."""
    if hparams.get("family"):
        for new_session in (False, True):
            child = subprocess.Popen([sys.executable, "-c", SLEEPER], start_new_session=new_session)
            print(f"child {child.pid}", flush=True)
