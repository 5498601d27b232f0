"""The process that trains, as its run is recorded with it."""

from __future__ import annotations

import os
import re
import sys
import threading
from pathlib import Path

from det_native.schema.kernel_runs import KernelProcess
from det_native.schema.processes import pid_namespace, start_mark

_CONNECTION_FILE = re.compile(r"kernel-(?P<id>[0-9A-Za-z_-]+)\.json")


def this_process() -> KernelProcess:
    """Return the process that asks."""
    pid = os.getpid()
    connection_file = _connection_file()
    found = _CONNECTION_FILE.fullmatch(Path(connection_file).name)
    return KernelProcess(
        pid=pid,
        start=start_mark(pid) or "",
        namespace=pid_namespace(),
        in_kernel=bool(connection_file),
        kernel_id=found["id"] if found else None,
        interruptible=threading.current_thread() is threading.main_thread(),
    )


def _connection_file() -> str:
    """Return by what a front end reaches this kernel; empty in a process that is none."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    application = getattr(shell, "parent", None) if shell is not None else None
    application = getattr(application, "parent", None)
    return str(getattr(application, "connection_file", "") or "")
