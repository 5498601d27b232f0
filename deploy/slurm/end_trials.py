"""Has the trials of this job of Slurm on this node write a checkpoint and end: ``end_trials.py SECONDS``.

A worker of det_native takes SIGTERM so, and its trial is queued again, without a restart being counted.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

_MODULE = b"det_harness.worker."
#: A worker computes in the folder of its run; what only waits for a trial is in another one.
_RUNS = "runs"


def workers(job: str) -> list[int]:
    """Return the processes that train for this job of Slurm here."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and _trains(process, f"SLURM_JOB_ID={job}".encode()):
            found.append(int(process.name))
    return found


def _trains(process: Path, mark: bytes) -> bool:
    try:
        # Processes that it has started itself are in its session, and end with it.
        return (
            os.getsid(int(process.name)) == int(process.name)
            and _MODULE in (process / "cmdline").read_bytes()
            and mark in (process / "environ").read_bytes().split(b"\0")
            and _RUNS in Path(os.readlink(process / "cwd")).parts
        )
    except OSError:  # it is another user's, or has just ended
        return False


def main(seconds: float, job: str) -> int:
    """Ask them to end and wait; return how many are still there."""
    end = time.monotonic() + seconds
    asked = workers(job)
    for pid in asked:
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            continue
    print(f"{len(asked)} processes of trials were asked to write a checkpoint", flush=True)
    while (left := set(asked) & set(workers(job))) and time.monotonic() < end:
        time.sleep(0.5)
    if left:
        print(f"{len(left)} of them did not end in {seconds:.0f} s: they go on from earlier checkpoints", flush=True)
    return len(left)


if __name__ == "__main__":
    main(float(sys.argv[1]), os.environ["SLURM_JOB_ID"])
