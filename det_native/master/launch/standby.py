"""A standby: a process that has imported a framework and waits for one job on its standard input."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from det_native.master.launch.base import WorkerKind
from det_native.master.launch.recipe import Recipe, SpawnError, import_arguments
from det_native.master.launch.zygote import Zygote, ZygoteError


class Standby:
    """A standby, and later the worker it became.

    Attributes
    ----------
    kind : WorkerKind
        With its interpreter filled in.
    ready : bool
        Whether its imports are done.
    picked_up : bool
        Whether it has taken its job.
    zygote : Zygote or None
        What it was forked from, if it was.
    outdated : bool
        Whether packages were installed since its imports: it has started over, and so will all that are as old.
    """

    def __init__(
        self,
        kind: WorkerKind,
        recipe: Recipe,
        imports: Sequence[str] = (),
        zygote: Zygote | None = None,
        run_folder: Path | None = None,
    ) -> None:
        self.kind = kind
        self.ready = False
        self.picked_up = False
        self.zygote = zygote
        self.outdated = False
        self._status_text = b""
        self._unsent = b""
        # Read only if the process fails to start; it has no name, so nothing is left behind.
        self._startup: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        job_read, self.job_pipe = os.pipe()
        self.status_pipe, status_write = os.pipe()
        try:
            if zygote is not None:
                self.process = zygote.fork((job_read, self._startup.fileno(), status_write))
            else:
                arguments = ["--status-fd", str(status_write), *import_arguments(imports)]
                self.process = recipe.spawn(
                    kind,
                    arguments,
                    output=self._startup,
                    stdin=job_read,
                    keep=(status_write,),
                    run_folder=run_folder,
                )
        except (SpawnError, ZygoteError):
            self._close_pipes()
            self._startup.close()
            raise
        finally:
            os.close(job_read)
            os.close(status_write)
        os.set_blocking(self.job_pipe, False)
        os.set_blocking(self.status_pipe, False)

    @property
    def sending(self) -> bool:
        """Whether a part of the job is still to be written."""
        return bool(self._unsent)

    def give(self, job: bytes) -> None:
        """Hand over the job, one line; what the pipe does not take at once goes with later calls of `pump`."""
        self._unsent = job + b"\n"
        self.pump()

    def pump(self) -> None:
        """Move on, without waiting, what travels on the pipes."""
        self._write()
        self._read()

    def startup_output(self) -> str:
        """Return what it wrote before it took a job."""
        self._startup.seek(0)
        return self._startup.read().decode("utf-8", errors="replace")

    def close(self) -> None:
        """Let go of the pipes: a standby without a job ends itself, a worker goes on."""
        self._close_pipes()
        self._startup.close()

    def _write(self) -> None:
        while self._unsent:
            try:
                written = os.write(self.job_pipe, self._unsent)
            except BlockingIOError:
                return
            except BrokenPipeError:  # it is gone, which its end will tell
                self._unsent = b""
                return
            self._unsent = self._unsent[written:]

    def _read(self) -> None:
        while self.status_pipe >= 0:
            try:
                data = os.read(self.status_pipe, 4096)
            except BlockingIOError:
                break
            if not data:
                os.close(self.status_pipe)
                self.status_pipe = -1
            self._status_text += data
        words = self._status_text.split(b"\n")[:-1]
        self.ready = self.ready or b"ready" in words
        self.picked_up = self.picked_up or b"started" in words
        self.outdated = self.outdated or b"outdated" in words

    def _close_pipes(self) -> None:
        for name in ("job_pipe", "status_pipe"):
            descriptor = getattr(self, name)
            if descriptor >= 0:
                os.close(descriptor)
                setattr(self, name, -1)


def job_line(job_json: str) -> bytes:
    """Return a job as the one line that the pipe carries."""
    return json.dumps(json.loads(job_json), separators=(",", ":")).encode()
