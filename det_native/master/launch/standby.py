"""A standby: a fresh process that imports a framework and waits for one job on its standard input."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from det_native.master.launch.base import WorkerKind
from det_native.master.launch.process import WorkerProcess

# What a kernel or an earlier master set for itself, and would mislead a worker.
_DROPPED_PREFIXES = ("DET_", "JPY_", "JUPYTER", "IPY", "KERNEL_", "PYDEVD_")
_DROPPED = {"MPLBACKEND", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "VIRTUAL_ENV"}


class SpawnError(Exception):
    """A worker's program cannot be executed; the message says why."""


@dataclass(frozen=True)
class Recipe:
    """How standbys are started.

    Attributes
    ----------
    directory : Path
        The empty folder they wait in.
    device : str
        ``"cpu"`` hides all GPUs; ``"cuda"`` keeps the warm-up from touching them.
    threads : int
        Threads a worker computes with.
    entry : str
        ``"module:function"`` that runs the job.
    environment : mapping
        Base of their environment, cleaned before use.
    umask : int
        Of the workers: whom the files of the user's code are open to. That of this process if -1.
    """

    directory: Path
    device: str
    threads: int
    entry: str
    environment: Mapping[str, str]
    umask: int = -1

    def worker_environment(self) -> dict[str, str]:
        """Return the environment of a worker: the base without our secrets and the kernel's own settings."""
        kept = {
            name: value
            for name, value in self.environment.items()
            if not name.startswith(_DROPPED_PREFIXES) and name not in _DROPPED
        }
        defaults = {"OMP_NUM_THREADS": str(self.threads), "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONHASHSEED": "0"}
        if self.device == "cpu":
            kept["CUDA_VISIBLE_DEVICES"] = ""
        else:
            # Each worker sees its own slot only, and the slots are named as the driver numbers them.
            kept.pop("CUDA_VISIBLE_DEVICES", None)
            defaults["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        return {**defaults, "TF_NUM_INTRAOP_THREADS": str(self.threads), **kept}


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
    """

    def __init__(self, kind: WorkerKind, recipe: Recipe, imports: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.ready = False
        self.picked_up = False
        self._status_text = b""
        self._unsent = b""
        # Read only if the process fails to start; it has no name, so nothing is left behind.
        self._startup: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        job_read, self.job_pipe = os.pipe()
        self.status_pipe, status_write = os.pipe()
        try:
            self.process = WorkerProcess.spawn(
                _command(kind, recipe, status_write, imports),
                environment=recipe.worker_environment(),
                directory=recipe.directory,
                output=self._startup,
                stdin=job_read,
                keep=(status_write,),
                umask=recipe.umask,
            )
        except OSError as error:
            self._close_pipes()
            self._startup.close()
            raise SpawnError(f"cannot run the interpreter {kind.executable}: {error.strerror}") from error
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

    def _close_pipes(self) -> None:
        for name in ("job_pipe", "status_pipe"):
            descriptor = getattr(self, name)
            if descriptor >= 0:
                os.close(descriptor)
                setattr(self, name, -1)


def resolved(kind: WorkerKind) -> WorkerKind:
    """Fill in the interpreter, in one form of the several names that it has in its environment.

    ``python`` and ``python3.11`` of one virtual environment are the same; what they link to is not, since the folder of
    the link is what makes the environment.
    """
    path = os.path.abspath(kind.executable or sys.executable)
    target = os.path.realpath(path)
    sibling = os.path.join(os.path.dirname(path), os.path.basename(target))
    same = os.path.realpath(sibling) == target and os.path.exists(sibling)
    return WorkerKind(kind.framework, sibling if same else path, kind.fingerprint)


def job_line(job_json: str) -> bytes:
    """Return a job as the one line that the pipe carries."""
    return json.dumps(json.loads(job_json), separators=(",", ":")).encode()


def _command(kind: WorkerKind, recipe: Recipe, status: int, imports: tuple[str, ...]) -> list[str]:
    return [
        kind.executable,
        "-P",  # the folder it waits in is no place to import from
        "-m",
        "det_harness.worker.standby",
        "--framework",
        kind.framework,
        "--device",
        recipe.device,
        "--entry",
        recipe.entry,
        "--status-fd",
        str(status),
        *(text for name in imports for text in ("--import", name)),
    ]
