"""One worker process: started or forked for this launcher, or taken up from an earlier master."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from det_native.master.launch import reaper, tree
from det_native.schema.endings import Ended
from det_native.schema.memory_kills import MemoryKills
from det_native.schema.processes import MARKER_VARIABLE, is_alive, start_mark, wait_until_gone

_TEMPORARY_PREFIX = "det-"


class WorkerProcess:
    """A process in a session of its own, with everything it starts.

    Attributes
    ----------
    mark : str
        See ``det_native.schema.processes.start_mark``.
    marker : str
        Random text in its environment, by which its children are found wherever they go.
    temporary : Path
        Its temporary folder, removed with it: what a killed process leaves there, nobody else would clear away. The
        path is short, since sockets are made there.
    descriptor : int or None
        A pidfd: readable once the process has ended. None where the kernel has none.
    """

    def __init__(self, pid: int, mark: str, marker: str, temporary: Path, *, child: bool) -> None:
        self.pid = pid
        self.temporary = temporary
        self.mark = mark
        self.marker = marker
        self._child = child
        self._started: subprocess.Popen[bytes] | None = None
        if child:
            reaper.own(pid)
        self._ended: Ended | None = None
        self._memory_kills = MemoryKills(pid)
        try:
            self.descriptor: int | None = os.pidfd_open(pid)
        except OSError:  # an old kernel, or an adopted process that is gone: `ended` tells which
            self.descriptor = None

    @classmethod
    def spawn(
        cls,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path,
        output: IO[bytes],
        stdin: int,
        keep: Sequence[int],
        umask: int = -1,
    ) -> WorkerProcess:
        """Start a process; `keep` are the descriptors it inherits besides the standard ones, `umask` its own if not -1.

        Raises
        ------
        OSError
            If the program cannot be executed.
        """
        marker, temporary = make_place()
        try:
            child = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=output,
                stderr=output,
                cwd=directory,
                env={**environment, MARKER_VARIABLE: marker, "TMPDIR": str(temporary)},
                pass_fds=tuple(keep),
                start_new_session=True,
                umask=umask,
            )
        except OSError:
            temporary.rmdir()
            raise
        process = cls(child.pid, start_mark(child.pid) or "", marker, temporary, child=True)
        process._started = child
        return process

    @classmethod
    def inherited(cls, pid: int, marker: str, temporary: Path) -> WorkerProcess | None:
        """Take over a process that was forked for this one; None if this one is not its parent."""
        try:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return None
        return cls(pid, start_mark(pid) or "", marker, temporary, child=True)

    @classmethod
    def adopt(cls, handle: Mapping[str, Any]) -> WorkerProcess | None:
        """Take up the process that an earlier launcher gave this handle for, or return None if it is gone."""
        pid, mark, marker = handle["pid"], handle["mark"], handle["marker"]
        process = cls(pid, mark, marker, Path(handle["temporary"]), child=False)
        if start_mark(pid) == mark and tree.environment_marker(pid) == marker:
            return process
        process.ended()
        return None

    @property
    def handle(self) -> dict[str, Any]:
        """JSON-able facts from which `adopt` finds it again."""
        return {"pid": self.pid, "mark": self.mark, "marker": self.marker, "temporary": str(self.temporary)}

    def begins_work(self) -> None:
        """Take note that its job begins now: what the system killed while it waited for one says nothing about it."""
        self._memory_kills = MemoryKills(self.pid)

    def ended(self) -> Ended | None:
        """Return how it ended, or None while it runs. What it left running is killed first."""
        if self._ended is None and self._gone():
            # The number of a child is ours until it is reaped; that of an adopted process may be anybody's by now.
            tree.kill_all(self.pid if self._child else None, self.marker)
            self._ended = self._reap()
            reaper.reap_strays()
            if self.temporary.name.startswith(_TEMPORARY_PREFIX):
                shutil.rmtree(self.temporary, ignore_errors=True)
            self.release()
        return self._ended

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and everything it started."""
        if self._ended is not None:
            return
        root = self.pid if self._child or is_alive(self.pid, self.mark) else None
        if number is signal.SIGKILL:
            tree.kill_all(root, self.marker)
        else:
            tree.send(root, self.marker, number)

    def signal_itself(self, number: int) -> None:
        """Send a signal to it alone."""
        if self._ended is None and is_alive(self.pid, self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self, timeout: float) -> Ended | None:
        """Wait for its end, at most `timeout` seconds; return how it ended, or None if it still runs."""
        if self._ended is None:
            if self.descriptor is not None:
                # Not by its state: the main thread of a killed process is a zombie before its other threads are gone.
                select.select([self.descriptor], [], [], timeout)
            else:
                wait_until_gone(self.pid, self.mark, timeout)
        return self.ended()

    def release(self) -> None:
        """Let go of the process without ending it."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
        if self._started is not None and self._started.returncode is None:
            self._started.returncode = 0  # it outlives us on purpose: Popen has nothing to warn of

    def _gone(self) -> bool:
        if not self._child:
            return start_mark(self.pid) != self.mark
        # Not reaped yet: as long as the zombie stands, its number and its session are not used again.
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _reap(self) -> Ended:
        killed_for_memory = self._memory_kills.any()
        if not self._child:
            return Ended(None, None, killed_for_memory)
        _, status, usage = os.wait4(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        reaper.disown(self.pid)
        if self._started is not None:
            self._started.returncode = code
        return Ended(code, usage.ru_maxrss * 1024, killed_for_memory and code == -signal.SIGKILL)


def make_place() -> tuple[str, Path]:
    """Return a marker for a new process, and an empty temporary folder for it."""
    return secrets.token_hex(16), Path(tempfile.mkdtemp(prefix=_TEMPORARY_PREFIX))
