"""Masters of the browser tests: started as from a shell, ended with all that they have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil

from det_native.schema.home import Home, read_runtime


def start_master(home: Home) -> None:
    """Start a master as from a shell."""
    environment = {**os.environ, "DET_HOME": str(home.path), "DET_SLOTS": "cpu:2", "TMPDIR": str(home.path.parent)}
    subprocess.run([sys.executable, "-m", "det_native.client.command", "up"], check=True, env=environment, timeout=60)


def kill_master(home: Home) -> int:
    """End a master without a warning, as a machine that goes down does; return what was its process."""
    runtime = read_runtime(home)
    assert runtime is not None
    os.kill(runtime.pid, signal.SIGKILL)
    return runtime.pid


def stop_master(home: Home) -> None:
    """End a master, if one runs, and all that it has started."""
    runtime = read_runtime(home)
    if runtime is None:
        return
    master = psutil.Process(runtime.pid)
    started = [master, *master.children(recursive=True)]
    environment = {**os.environ, "DET_HOME": str(home.path)}
    subprocess.run([sys.executable, "-m", "det_native.client.command", "down", "--kill"], env=environment, timeout=60)
    _, alive = psutil.wait_procs(started, timeout=60)
    assert not alive, [process.cmdline() for process in alive]
