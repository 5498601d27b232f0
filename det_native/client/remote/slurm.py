"""Recognises a login node of Slurm: a machine for looking after jobs, on which nobody is to train."""

from __future__ import annotations

import shutil
import subprocess

#: For a script that looks at a machine: the controller answers, no job of this user is around, and no job can be here.
LOOK = """
if sinfo -h >/dev/null 2>&1 </dev/null && [ -z "$SLURM_JOB_ID" ] &&
    ! scontrol show node "$(hostname -s 2>/dev/null || uname -n)" >/dev/null 2>&1 </dev/null; then
    echo "slurm=login"
fi
"""
NOTE = (
    "This is a login node of Slurm: trials would run here, beside the work of others, and not on the nodes of the "
    "cluster. det_native submits no jobs to Slurm: get a node (`salloc --gres=gpu:1`), and name that in its place, "
    "ssh://NODE with `ProxyJump` of this machine in your ~/.ssh/config."
)
_SECONDS = 20.0


def on_login_node() -> bool:
    """Return whether this machine is one; where Slurm does not answer, it is none."""
    if shutil.which("sinfo") is None:
        return False
    try:
        done = subprocess.run(
            ["sh", "-c", LOOK], stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"slurm=login" in done.stdout
