"""The guard of an agent, as the agent sees it: see ``guard.py``."""

from __future__ import annotations

import logging
import secrets
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

logger = logging.getLogger(__name__)

# Not one of DET_...: those are taken out of the environment of workers.
_VARIABLE = "AGENT_OF_DET_NATIVE"
_END_SECONDS = 10.0


class Guard:
    """Keeps a process beside this one that kills the workers once this one is gone, however it ends.

    Attributes
    ----------
    variables : dict of str to str
        What has to be in the environment of every worker.
    """

    def __init__(self) -> None:
        self.variables = {_VARIABLE: secrets.token_hex(16)}
        self._process = self._start()

    def look_after(self) -> None:
        """Start another one if it has ended."""
        if self._process.poll() is not None:
            logger.warning("The guard of the agent has ended (exit code %s); another one starts.", self._process.poll())
            self._close_pipe()
            self._process = self._start()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def close(self) -> None:
        """End it; it kills nothing."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(b"done")
        self._close_pipe()
        self._process.wait(_END_SECONDS)

    def _close_pipe(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def _start(self) -> subprocess.Popen[bytes]:
        [setting] = (f"{name}={value}" for name, value in self.variables.items())
        program = str(Path(__file__).with_name("guard.py"))
        # A session of its own: what ends the agent's group of processes must not end it, too.
        return subprocess.Popen(
            [sys.executable, "-S", "-E", program, setting],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            start_new_session=True,
        )
