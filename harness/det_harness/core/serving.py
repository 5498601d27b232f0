"""The worker's side of a command: the processes of the command report to it by a socket.

A process says the name of a method of ``services.Reporter`` with its arguments, and gets what that returns, or what it
raises. The socket lies in a folder that only this user reads, and who connects has to know a key.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

from det_harness.trial.services import Reporter, Services
from det_native.errors import DetError

logger = logging.getLogger("det_harness")

#: What processes may ask of the worker's reporter.
REPORTS = {name for name in vars(Reporter) if not name.startswith("_")} | {"started", "logged", "media"}


class ReporterServer:
    """Answers the processes of one command.

    Attributes
    ----------
    used : bool
        Whether a process has said that the training begins.
    stopped : bool
        Whether one has ended early, as it was asked to.
    failure : BaseException or None
        What ends the trial, if the command fails.
    """

    def __init__(self, services: Services) -> None:
        self.key = secrets.token_bytes(32)
        self.used = self.stopped = False
        self.failure: BaseException | None = None
        self._refused: DetError | None = None
        self._services = services
        self._lock = threading.Lock()

    @contextmanager
    def listening(self, path: Path) -> Iterator[None]:
        """Listen at a path in the block."""
        with in_folder(path) as address, Listener(address, "AF_UNIX", authkey=self.key) as listener:
            threading.Thread(target=self._accept, args=(listener,), name="det-command", daemon=True).start()
            yield

    def _accept(self, listener: Listener) -> None:
        while True:
            try:
                line = listener.accept()
            except (AuthenticationError, EOFError, ConnectionError):
                continue  # somebody who does not know the key, or has gone
            except OSError:
                return  # the block has ended
            threading.Thread(target=self._serve, args=(line,), name="det-command-line", daemon=True).start()

    def _serve(self, line: Connection[Any, Any]) -> None:
        with line, suppress(EOFError, OSError):
            while True:
                name, arguments, named = line.recv()
                try:
                    answer = (True, self._answer(name, arguments, named))
                except Exception as error:  # noqa: BLE001 (raised again in the process that asked)
                    answer = (False, (type(error), str(error)))
                line.send(answer)

    def _answer(self, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self.used = self.used or name == "started"
        if name == "stop_requested":
            return self._services.stop_requested()
        if name == "stopped":
            self.stopped = True
            return None
        if name == "failed":
            self._note_failure(arguments[0])
            return None
        if name not in REPORTS:
            raise ValueError(f"{name} is not a report.")
        try:
            return getattr(self._services.reporter, name)(*arguments, **named)
        except DetError as error:
            self._refused = error
            raise
        finally:
            self._count(name, arguments)

    def _note_failure(self, failure: BaseException) -> None:
        """Note the first; of what was raised here, that itself."""
        own = self._refused
        is_own = own is not None and getattr(failure, "kind", "") == type(own).__name__
        self.failure = self.failure or (own if is_own else failure)

    def _count(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Note how many batches are done by a report."""
        done = 0
        match name, arguments:
            case "training", ([*_, last], _):
                done = int(last)
            case (("started" | "validation" | "logged"), (batch, *_)):
                done = int(batch)
            case "checkpoint", (_, manifest):
                done = manifest.batch
        with self._lock:
            schedule = self._services.schedule
            schedule.trained(max(done, schedule.progress.batches))


@contextmanager
def in_folder(path: Path) -> Iterator[str]:
    """Give an address of a socket that is short enough, however long the path of its folder is."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
