"""Starts programs in processes that need not import a framework: all are forked from one that has.

A test that wants some has the fixture ``torch_programs`` or ``tensorflow_programs``; the process that is forked from is
there until the tests end.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

# Less than a test has, so that what the processes have said so far is shown.
SECONDS = 240.0
_PROGRAM = Path(__file__).with_name("forking_process.py")
_TESTS = Path(__file__).parent
_MODULES = {
    "torch": (
        "measured_trials",
        "rank_program",
        "sharded_trials",
        "torch.distributed.checkpoint",
        "torch._inductor.compile_fx",
    ),
    "tensorflow": ("tensorflow",),
}
_PATHS = {"torch": [_TESTS / "pytorch", _TESTS / "distributed"], "tensorflow": []}


class ForkedPrograms:
    """Starts programs in forks of a process.

    Parameters
    ----------
    framework : str
        "torch" or "tensorflow": what that process has imported.
    """

    _running: ClassVar[dict[str, ForkedPrograms]] = {}

    def __init__(self, framework: str) -> None:
        beside = [str(path) for path in (*_PATHS[framework], _TESTS)]
        self._process = subprocess.Popen(
            [sys.executable, str(_PROGRAM), *_MODULES[framework]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "PYTHONFAULTHANDLER": "1",
                "TF_CPP_MIN_LOG_LEVEL": "2",
                "PYTHONPATH": os.pathsep.join([*beside, os.environ.get("PYTHONPATH", "")]),
            },
        )
        # What the import leaves in the temporary folder is there before a test is watched.
        ready = self._answer(time.monotonic() + SECONDS, [])
        assert ready == {}, "The process that imports the framework does not get ready."

    @classmethod
    @contextmanager
    def kept(cls, framework: str) -> Iterator[ForkedPrograms]:
        """Have the process there for the block, for all who ask for it meanwhile."""
        with cls.there(framework) as programs:
            cls._running[framework] = programs
            yield programs
            del cls._running[framework]

    @classmethod
    @contextmanager
    def there(cls, framework: str) -> Iterator[ForkedPrograms]:
        """Give the process that is there already; else one for the block."""
        if framework in cls._running:
            yield cls._running[framework]
            return
        programs = cls(framework)
        try:
            yield programs
        finally:
            programs.close()

    def close(self) -> None:
        """End the server, and what it has started."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(
        self, folder: Path, commands: list[list[str]], variables: dict[str, str], *, within: Path | None = None
    ) -> tuple[list[int], list[str]]:
        """Run programs at the same time, to their ends; return their exit codes and outputs.

        Parameters
        ----------
        folder : Path
            For their outputs.
        commands : list of list of str
            Each a file of Python and its arguments.
        variables : dict of str to str
            What they have in their environment besides that of this process.
        within : Path, optional
            Their working directory; that of this process by default.
        """
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
        outputs = [_Output(folder / f"output.{number}") for number in range(len(commands))]
        for arguments, output in zip(commands, outputs, strict=True):
            told = {"arguments": arguments, "environment": environment, "output": str(output.path)}
            self._ask({**told, "folder": str(within or Path.cwd())})
        started: list[int] = []
        codes: dict[int, int] = {}
        end = time.monotonic() + SECONDS
        try:
            while len(codes) < len(commands):
                said = self._answer(end, outputs)
                if said is None:
                    texts = "\n".join(output.text() for output in outputs)
                    pytest.fail(f"The processes have not ended within {SECONDS:g} seconds:\n{texts}")
                if "started" in said:
                    started.append(said["started"])
                else:
                    codes[said["ended"]] = said["code"]
        finally:
            self._kill(started, codes, outputs)
            texts_at_end = [output.close() for output in outputs]
        return [codes[pid] for pid in started], texts_at_end

    def _kill(self, started: list[int], codes: dict[int, int], outputs: list[_Output]) -> None:
        """Kill what has not ended, and hear what the server has yet to say of it."""
        while len(started) < len(outputs):
            if said := self._answer(time.monotonic() + SECONDS, outputs):
                started.append(said["started"])
        for pid in started:
            if pid not in codes:
                os.kill(pid, signal.SIGKILL)  # it is a child of the server that nobody has waited for
        while len(codes) < len(started):
            if said := self._answer(time.monotonic() + SECONDS, outputs):
                codes[said["ended"]] = said["code"]

    def _ask(self, told: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(told).encode() + b"\n")

    def _answer(self, end: float, outputs: list[_Output]) -> dict[str, Any] | None:
        """Return what the server says next, None if it has not by a point in time; outputs are read meanwhile."""
        assert self._process.stdout is not None
        while True:
            reading = [output for output in outputs if output.open]
            ready = select.select([self._process.stdout, *reading], [], [], max(end - time.monotonic(), 0))[0]
            if not ready:
                return None
            for output in reading:
                if output in ready:
                    output.read()
            if self._process.stdout in ready:
                line = self._process.stdout.readline()
                assert line, f"The server of processes has ended with exit code {self._process.wait()}."
                found: dict[str, Any] = json.loads(line)
                return found


class _Output:
    """What a process says, through a pipe with a name: a process that finds the disk full can still speak."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.open = True
        os.mkfifo(path)
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._parts: list[bytes] = []

    def fileno(self) -> int:
        return self._descriptor

    def read(self) -> bool:
        """Read what is there; return whether more may come."""
        part = os.read(self._descriptor, 1 << 16)
        self._parts.append(part)
        self.open = bool(part)
        return self.open

    def text(self) -> str:
        """Return what was read so far."""
        return b"".join(self._parts).decode(errors="replace")

    def close(self) -> str:
        """Return all that was said."""
        with suppress(BlockingIOError):  # held open by a process of the process's
            while self.open and self.read():
                pass
        os.close(self._descriptor)
        self.path.unlink()
        return self.text()


@pytest.fixture(scope="session")
def torch_programs() -> Iterator[ForkedPrograms]:
    """Starts programs whose process has imported torch."""
    with ForkedPrograms.kept("torch") as programs:
        yield programs


@pytest.fixture(scope="session")
def tensorflow_programs() -> Iterator[ForkedPrograms]:
    """Starts programs whose process has imported TensorFlow."""
    with ForkedPrograms.kept("tensorflow") as programs:
        yield programs
