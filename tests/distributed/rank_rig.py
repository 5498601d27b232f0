"""Starts the processes of a trial on several slots, for real, and reads what they wrote."""

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from det_native.frameworks import has_horovod

PROGRAM = Path(__file__).with_name("rank_program.py")
# Less than a test has, so that what the processes have said so far is shown.
SECONDS = 240.0
_SERVER = Path(__file__).with_name("rank_server.py")
NEEDS_HOROVOD = pytest.mark.skipif(
    not has_horovod(), reason="Horovod is not installed here: sh tools/horovod.sh builds it."
)
# What gradients travel by, for the tests that have to hold over both.
BACKENDS = ["torch", pytest.param("horovod", marks=NEEDS_HOROVOD)]


@dataclass
class Ended:
    """How the processes ended.

    Attributes
    ----------
    folder : Path
        Where their results are.
    codes : list of int
        Exit codes by rank.
    outputs : list of str
    """

    folder: Path
    codes: list[int]
    outputs: list[str]

    def results(self, case: str) -> list[dict[str, Any]]:
        """Return what every rank wrote about a case."""
        paths = [self.folder / f"{case}.{rank}.pt" for rank in range(len(self.codes))]
        assert all(path.exists() for path in paths), "\n".join(self.outputs)
        return [torch.load(path, weights_only=False) for path in paths]

    def error(self, rank: int) -> tuple[str, str]:
        """Return type and text of the error that a rank ended with."""
        kind, text = json.loads((self.folder / f"error.{rank}.json").read_text())
        return kind, text


class RankServer:
    """Starts programs in processes that need not import torch: all are forked from one that has."""

    current: RankServer | None = None

    def __init__(self) -> None:
        beside = [str(PROGRAM.parents[1] / "pytorch"), str(PROGRAM.parents[1])]
        self._process = subprocess.Popen(
            [sys.executable, str(_SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "PYTHONFAULTHANDLER": "1",
                "PYTHONPATH": os.pathsep.join([*beside, os.environ.get("PYTHONPATH", "")]),
            },
        )

    @classmethod
    @contextmanager
    def there(cls) -> Iterator[RankServer]:
        """Give the server that is there already; else one for the block."""
        if cls.current is not None:
            yield cls.current
            return
        server = cls()
        try:
            yield server
        finally:
            server.close()

    def close(self) -> None:
        """End the server, and what it has started."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, folder: Path, commands: list[list[str]], variables: dict[str, str]) -> tuple[list[int], list[str]]:
        """Run programs at the same time, to their ends; return their exit codes and outputs.

        Parameters
        ----------
        folder : Path
            For their outputs.
        commands : list of list of str
            Each a file of Python and its arguments.
        variables : dict of str to str
            What they have in their environment besides that of this process.
        """
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
        outputs = [_Output(folder / f"output.{number}") for number in range(len(commands))]
        for arguments, output in zip(commands, outputs, strict=True):
            self._ask({"arguments": arguments, "environment": environment, "output": str(output.path)})
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
        return self.text()


def run_ranks(
    folder: Path,
    cases: dict[str, dict[str, Any]],
    *,
    size: int = 2,
    deadline: float = 120.0,
    long_seconds: float = 60.0,
    ranks: list[int] | None = None,
    backend: str = "torch",
) -> Ended:
    """Run cases in `size` processes (or only in those of `ranks`) that share a process group; wait for their ends."""
    specification = folder / "specification.json"
    waits = {"deadline": deadline, "long_seconds": long_seconds}
    specification.write_text(json.dumps({"size": size, "cases": cases, "backend": backend, **waits}))
    commands = [[str(PROGRAM), str(specification), str(rank)] for rank in (ranks if ranks is not None else range(size))]
    # The compiler's folder would be made in the temporary folder otherwise, by any optimizer.
    variables = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
    with RankServer.there() as server:
        return Ended(folder, *server.run(folder, commands, variables))


def largest_difference(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> float:
    """Return the largest difference between the tensors of two lists of models' states."""
    assert [one.keys() for one in first] == [one.keys() for one in second]
    return max(
        float((mine[name].double() - theirs[name].double()).abs().max())
        for mine, theirs in zip(first, second, strict=True)
        for name in mine
    )


def equal_on_both(pair: Ended, name: str) -> dict[str, Any]:
    """Return what the first slot has, once it is known that the second has the same weights."""
    first, second = pair.results(name)
    assert largest_difference(first["models"], second["models"]) == 0
    assert first["batches"] == second["batches"]
    return first
