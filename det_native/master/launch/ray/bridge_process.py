"""The bridge as a process of the master: its pipes, which never block, and its end."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from pydantic import ValidationError

from det_native.errors import MasterError
from det_native.master.launch.ray.messages import EVENT, Command, Event

_MODULE = "det_native.master.launch.ray.bridge"
_PIECE = 1 << 18


class BridgeProcess:
    """A process that ends when its standard input does, hence with this one."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.stdin, self.stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self.stdin, False)
        os.set_blocking(self.stdout, False)
        self._outgoing = bytearray()
        self._incoming = bytearray()
        self._open = True
        self._heard_at = time.monotonic()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def sending(self) -> bool:
        """Whether it has not taken all that was sent."""
        return self._open and bool(self._outgoing)

    @property
    def silent(self) -> float:
        """For how many seconds it has said nothing, as of the last :meth:`receive`."""
        return time.monotonic() - self._heard_at

    def send(self, command: Command) -> None:
        """Have it do something soon."""
        self._outgoing += command.model_dump_json().encode() + b"\n"
        self.pump()

    def pump(self) -> None:
        """Send what it takes now."""
        while self.sending:
            try:
                written = os.write(self.stdin, self._outgoing[:_PIECE])
            except BlockingIOError:
                return
            except BrokenPipeError:  # `receive` says that it is gone
                self._outgoing.clear()
                return
            del self._outgoing[:written]

    def receive(self) -> list[Event]:
        """Return what it has said.

        Raises
        ------
        EOFError
            If it is gone and has nothing more to say.
        MasterError
            If it says what makes no sense.
        """
        ended = False
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.stdout, _PIECE):
                self._incoming += data
                self._heard_at = time.monotonic()
            ended = True
        lines = self._incoming.split(b"\n")
        self._incoming = lines.pop()
        if ended and not lines:
            raise EOFError
        try:
            return [EVENT.validate_json(bytes(line)) for line in lines]
        except ValidationError as error:
            raise MasterError(f"the bridge to Ray says what is not understood: {error}") from error

    def finish(self, deadline: float) -> None:
        """Take what it says until it ends, at most until then by the monotonic clock."""
        while (pause := deadline - time.monotonic()) > 0:
            self.pump()
            with selectors.DefaultSelector() as selector:
                selector.register(self.stdout, selectors.EVENT_READ)
                if self.sending:
                    selector.register(self.stdin, selectors.EVENT_WRITE)
                selector.select(pause)
            try:
                self.receive()
            except (EOFError, MasterError):
                return

    def end(self, seconds: float = 0.0) -> int:
        """Close its input, give it some seconds to end, kill it if need be; return its exit code."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._open = False
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        self._process.stdout.close()
        return code
