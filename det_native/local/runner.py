"""Which process runs a local experiment, kept beside it: so that others can tell whether it lives, and interrupt it."""

from __future__ import annotations

import os
import re
import sys
import threading
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from det_native.schema.processes import is_alive, start_mark

_CONNECTION_FILE = re.compile(r"kernel-(?P<id>[0-9A-Za-z_-]+)\.json")


class Runner(BaseModel):
    """The process of a run.

    Attributes
    ----------
    pid : int
    start : str
        What tells it from a later one of the same number.
    namespace : str
        Where its number counts: another container has numbers of its own.
    in_kernel : bool
        Whether it is a kernel of Jupyter.
    kernel_id : str or None
        Its id on the Jupyter server that started it.
    interruptible : bool
        Whether an interrupt reaches the training, which ends then with a checkpoint.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    pid: int
    start: str
    namespace: str = ""
    in_kernel: bool = False
    kernel_id: str | None = None
    interruptible: bool = True

    @property
    def is_near(self) -> bool:
        """Whether its number means the same process here."""
        return self.namespace == _namespace()

    @property
    def gone(self) -> bool:
        """Whether it has ended; False where that cannot be told from here."""
        return self.is_near and not is_alive(self.pid, self.start)


def this_process() -> Runner:
    """Return the process that asks."""
    pid = os.getpid()
    connection_file = _connection_file()
    found = _CONNECTION_FILE.fullmatch(Path(connection_file).name)
    return Runner(
        pid=pid,
        start=start_mark(pid) or "",
        namespace=_namespace(),
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


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
