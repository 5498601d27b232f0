"""Zygotes: processes that have imported a framework, and from which standbys are forked in milliseconds."""

from __future__ import annotations

import json
import logging
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

from det_native.master.launch.base import WorkerKind
from det_native.master.launch.process import WorkerProcess, make_place
from det_native.master.launch.recipe import Recipe, SpawnError, import_arguments

logger = logging.getLogger(__name__)

# A fork takes some 30 ms. A zygote that does not answer holds up all decisions of the master.
ANSWER_SECONDS = 3.0
_END_SECONDS = 5.0
_MAXIMUM_ANSWER = 1 << 16


class ZygoteError(Exception):
    """A zygote does not do what it is there for; the message says why."""


class Zygote:
    """A zygote of one kind.

    Attributes
    ----------
    imports : frozenset of str
        Modules besides the framework's that it has imported, or is importing.
    ready : bool
        Whether it waits for orders. `unfit` says why none are to be given, and is empty otherwise.
    process : WorkerProcess
        Its own.
    connection : socket
        Readable when it has become ready.
    """

    def __init__(self, kind: WorkerKind, recipe: Recipe, imports: Sequence[str]) -> None:
        self.kind = kind
        self.imports = frozenset(imports)
        self.ready = False
        self.unfit = ""
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        self.connection, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.connection.setblocking(False)
        try:
            with its_end:
                self.process = recipe.spawn(
                    kind,
                    ["--fork-fd", str(its_end.fileno()), *import_arguments(imports)],
                    output=self._output,
                    stdin=subprocess.DEVNULL,
                    keep=(its_end.fileno(),),
                )
        except SpawnError:
            self.connection.close()
            self._output.close()
            raise

    def __str__(self) -> str:
        return f"the zygote for {self.kind.framework}, process {self.process.pid},"

    def pump(self) -> None:
        """Note, without waiting, what it says."""
        if not self.ready and not self.unfit:
            with suppress(ZygoteError):  # its end is seen elsewhere
                answer = self._answer()
                if answer is not None:
                    self._note(answer)

    def bring(self, names: Sequence[str]) -> None:
        """Have it import modules; it is not ready meanwhile.

        Raises
        ------
        ZygoteError
        """
        self._order({"imports": list(names)})
        self.imports |= frozenset(names)
        self.ready = False

    def fork(self, descriptors: Sequence[int]) -> WorkerProcess:
        """Return a process forked from it.

        Parameters
        ----------
        descriptors : sequence of int
            The new process's standard input, its output, and its status pipe.

        Raises
        ------
        ZygoteError
            If it gives none, or does not answer.
        """
        marker, temporary = make_place()
        try:
            self._order({"marker": marker, "temporary": str(temporary)}, descriptors)
            if not select.select([self.connection], [], [], ANSWER_SECONDS)[0]:
                raise ZygoteError(f"it has not answered for {ANSWER_SECONDS:.0f} s")
            answer = self._answer() or {}
            if "pid" not in answer:
                raise ZygoteError(str(answer.get("error") or "it gave no process"))
            process = WorkerProcess.inherited(answer["pid"], marker, temporary)
            if process is None:
                raise ZygoteError("its fork is not a child of this process")
        except ZygoteError:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        return process

    def said(self) -> str:
        """Return what it has written."""
        self._output.seek(0)
        return self._output.read().decode("utf-8", errors="replace").strip()

    def end(self) -> None:
        """End it; what was forked from it goes on."""
        self.process.signal(signal.SIGKILL)
        self.process.wait(_END_SECONDS)
        self.connection.close()
        self._output.close()

    def _note(self, answer: dict[str, Any]) -> None:
        threads = answer.get("threads")
        if threads == 0:
            self.ready = True
        elif threads is not None:
            self.unfit = f"{threads} threads beside its own run after its imports, which a fork would lose"
        else:
            self.unfit = str(answer.get("error"))

    def _order(self, order: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        try:
            if descriptors:
                socket.send_fds(self.connection, [json.dumps(order).encode()], descriptors)
            else:
                self.connection.send(json.dumps(order).encode())
        except OSError as error:  # it is gone, or does not take its orders
            raise ZygoteError(f"it takes no order: {error.strerror}") from error

    def _answer(self) -> dict[str, Any] | None:
        """Return its next answer; None if there is none, or will be none."""
        try:
            text = self.connection.recv(_MAXIMUM_ANSWER)
        except BlockingIOError:
            return None
        except OSError as error:
            raise ZygoteError(f"it gives no answer: {error.strerror}") from error
        answer: dict[str, Any] | None = json.loads(text) if text else None
        return answer
