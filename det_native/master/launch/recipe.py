"""How the processes of workers are started: their program, its arguments and its environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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

    @property
    def home(self) -> Path:
        """The master's home, which holds the folder of the standbys."""
        return self.directory.parent

    @property
    def environments(self) -> Path:
        """Where environments with further packages are made."""
        return self.home / "environments"

    def worker_environment(self) -> dict[str, str]:
        """Return the environment of a worker: the base without our secrets and the kernel's own settings.

        ``DET_HOME`` is the master's home, so that what trials share (cached datasets) lies there, too.
        """
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
        return {**defaults, "TF_NUM_INTRAOP_THREADS": str(self.threads), **kept, "DET_HOME": str(self.home)}

    def spawn(
        self,
        kind: WorkerKind,
        arguments: Sequence[str],
        *,
        output: IO[bytes],
        stdin: int,
        keep: Sequence[int],
        run_folder: Path | None = None,
    ) -> WorkerProcess:
        """Start a process of this kind.

        Parameters
        ----------
        kind : WorkerKind
            With its interpreter filled in.
        arguments : sequence of str
            Of ``det_harness.worker.standby``, besides those that every process of the kind has.
        output, stdin, keep
            See ``WorkerProcess.spawn``.
        run_folder : Path, optional
            Of the run that it is for, where it makes an environment first.

        Raises
        ------
        SpawnError
            If the interpreter cannot be executed.
        """
        module = ["-m", "det_harness.worker.standby", "--framework", kind.framework]
        if kind.packages:  # first an environment is made that has them, and the process goes on in there
            own_folders = ["--environments", str(self.environments), "--run", str(run_folder)]
            module[1:2] = ["det_harness.worker.prepared", *own_folders, *kind.packages, "--"]
        own = ("--device", self.device, "--entry", self.entry)
        try:
            return WorkerProcess.spawn(
                # -P: the folder it waits in is no place to import from.
                [kind.executable, "-P", *module, *own, *arguments],
                environment=self.worker_environment(),
                directory=self.directory,
                output=output,
                stdin=stdin,
                keep=keep,
                umask=self.umask,
            )
        except OSError as error:
            raise SpawnError(f"cannot run the interpreter {kind.executable}: {error.strerror}") from error


def import_arguments(names: Sequence[str]) -> list[str]:
    """Return the arguments with which a process imports these modules beforehand."""
    return [word for name in names for word in ("--import", name)]


def resolved(kind: WorkerKind) -> WorkerKind:
    """Fill in the interpreter, in one form of the several names that it has in its environment.

    ``python`` and ``python3.11`` of one virtual environment are the same; what they link to is not, since the folder of
    the link is what makes the environment.
    """
    path = os.path.abspath(kind.executable or sys.executable)
    target = os.path.realpath(path)
    sibling = os.path.join(os.path.dirname(path), os.path.basename(target))
    same = os.path.realpath(sibling) == target and os.path.exists(sibling)
    return replace(kind, executable=sibling if same else path)
