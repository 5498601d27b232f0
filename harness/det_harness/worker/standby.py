"""A worker process: imports a framework, waits for one job on standard input, runs it.

It must be able to become any worker of its kind, so until the job is known nothing touches a GPU, reads the user's
files or draws a random number that a trial could notice.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import faulthandler
import gc
import io
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from pydantic import TypeAdapter

from det_harness.frameworks.base import harness_of
from det_native._version import PROTOCOL, __version__
from det_native.errors import ProtocolMismatchError
from det_native.frameworks import find_framework, read_frameworks
from det_native.imports import collector_waits
from det_native.schema.job import CheckJob, TrialJob

Job = CheckJob | TrialJob
Stamp = tuple[tuple[str, int], ...]

# Read by the interpreter or C libraries when they load: too late for a process that has loaded them. Descriptions of
# frameworks name those that a framework reads.
_IMPORT_TIME_PREFIXES = (
    *("PYTHON", "LD_", "MALLOC_", "OMP_", "KMP_", "GOMP_", "MKL_", "OPENBLAS_", "ONEDNN_", "DNNL_"),
    *("CUBLAS_", "CUDNN_", "NVIDIA_"),
)
# For ``--framework``: a process that imports none before it has its job.
NO_FRAMEWORK = "python"


def main() -> None:
    """Run as ``python -m det_harness.worker.standby``."""
    options = _options()
    faulthandler.enable()
    stamp = installation_stamp()
    status = Status(options.status_fd)
    warm_up(options.framework, options.device, options.imports)
    gc.freeze()  # what was imported stays: no collection during a training has to search it
    module, _, name = options.entry.partition(":")
    entry: Callable[[Job], int] = getattr(import_module(module), name)
    status.say("ready")
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        # The master is gone. Nothing was begun, so nothing has to be wound up.
        _remove_temporary_folder()
        os._exit(0)
    job = read_job(line)
    if needs_fresh_process(_variables(job)) or installation_stamp() != stamp:
        start_over(line, _variables(job), options.status_fd)
    take_place(job, options.framework)
    status.say("started")
    status.close()
    leave(_outcome(entry, job))


def _outcome(entry: Callable[[Job], int], job: Job) -> int:
    try:
        return entry(job)
    except SystemExit as error:
        if isinstance(error.code, int | None):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001 - the process ends with it, as the interpreter would have it end
        sys.excepthook(*sys.exc_info())
        return 1


def leave(code: int) -> NoReturn:
    """End this process as the interpreter does, but for taking the frameworks apart: that takes them up to seconds."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for the user's threads; no public name
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the disk is full, or the user closed it
            stream.flush()
    _remove_temporary_folder()
    os._exit(code)


class Status:
    """The pipe on which the launcher is told how far this process is."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        if descriptor is not None:
            os.set_inheritable(descriptor, False)

    def say(self, word: str) -> None:
        """Write one word; a launcher that is gone is no reason to end."""
        if self._descriptor is not None:
            try:
                os.write(self._descriptor, word.encode() + b"\n")
            except BrokenPipeError:
                self.close()

    def close(self) -> None:
        """Say no more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def warm_up(framework: str, device: str, imports: Iterable[str] = ()) -> None:
    """Import what every job of this framework needs.

    What does not load is left for the job to meet: there the error has the user's cell and line.

    Parameters
    ----------
    framework : str
        Its name, or `NO_FRAMEWORK`.
    device : str
        ``"cuda"`` keeps to what touches no GPU.
    imports : iterable of str
        Modules that the last job of this kind imported.
    """
    loads: list[Callable[[], object]] = [partial(_warm_framework, framework, device)]
    loads += [partial(import_module, name) for name in imports]
    with collector_waits():
        for load in loads:
            try:
                load()
            except Exception as error:  # noqa: BLE001 - whatever a broken installation raises; the job meets it again
                print(f"{framework}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)


def _warm_framework(framework: str, device: str) -> None:
    if framework != NO_FRAMEWORK:
        harness_of(framework).warm_up(device)
        import_module("det_harness.program.check")


def read_job(line: bytes) -> Job:
    """Read the job.

    Raises
    ------
    ProtocolMismatchError
        If the master speaks another protocol than the det_native of this interpreter.
    """
    protocol = json.loads(line).get("protocol")
    if protocol != PROTOCOL:
        raise ProtocolMismatchError(
            f"the master speaks protocol {protocol}, det_native {__version__} of {sys.executable} speaks {PROTOCOL}: "
            "install the same version of det-native on both sides, then `det down` and `det up`"
        )
    job: Job = TypeAdapter(Job).validate_json(line)
    return job


def take_place(job: Job, framework: str) -> None:
    """Become the worker of this job: environment, devices, threads, directory, output."""
    directory = Path(job.directory)
    _redirect_output(directory / "output.log")
    variables = _variables(job)
    if isinstance(job, TrialJob) and "OMP_NUM_THREADS" not in variables:
        _use_threads(job.threads, framework)
    os.environ.update(variables)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(job.devices) if isinstance(job, TrialJob) else ""
    work = directory / "work"
    work.mkdir(parents=True, exist_ok=True)
    os.chdir(work)


def _use_threads(threads: int, framework: str) -> None:
    for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
        os.environ[name] = str(threads)
    if framework != NO_FRAMEWORK and find_framework(framework) is not None:
        harness_of(framework).use_threads(threads)


def _redirect_output(path: Path) -> None:
    """Send standard output and error to a file, line by line, and give standard input an end."""
    sys.stdout.flush()
    sys.stderr.flush()
    output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(nothing, 0)
    os.close(output)
    os.close(nothing)
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - lives as long as the process


def installation_stamp(paths: Iterable[str] | None = None) -> Stamp:
    """Return what changes when a package is installed, upgraded or removed in this interpreter.

    Parameters
    ----------
    paths : iterable of str, optional
        Where to look, ``sys.path`` by default; only folders of installed packages count.
    """
    stamp = []
    for path in sys.path if paths is None else paths:
        if Path(path).name in ("site-packages", "dist-packages"):
            try:
                stamp.append((path, os.stat(path).st_mtime_ns))
            except FileNotFoundError:
                continue
    return tuple(stamp)


def needs_fresh_process(variables: dict[str, str]) -> bool:
    """Return whether a job's environment variables come too late for a process that has imported its framework."""
    prefixes = (*_IMPORT_TIME_PREFIXES, *(prefix for one in read_frameworks() for prefix in one.variables))
    return any(name.startswith(prefixes) and os.environ.get(name) != value for name, value in variables.items())


def start_over(line: bytes, variables: dict[str, str], status: int | None) -> None:
    """Become a cold process, which has the job's variables from the start and sees what is installed now."""
    handed = os.memfd_create("job")
    with open(handed, "wb", closefd=False) as file:
        file.write(line)
    os.lseek(handed, 0, os.SEEK_SET)
    os.dup2(handed, 0)
    os.environ.update(variables)
    if status is not None:
        os.set_inheritable(status, True)
    # Handlers of signals do not survive, but ignored ones would; Python ignores SIGPIPE and sets that anew.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, "-P", "-m", "det_harness.worker.standby", *sys.argv[1:]])


def _remove_temporary_folder() -> None:
    """Remove the folder that the launcher made for this process and would have removed itself."""
    folder = Path(os.environ.get("TMPDIR", ""))
    if "DET_WORKER" in os.environ and folder.name.startswith("det-"):
        shutil.rmtree(folder, ignore_errors=True)


def _variables(job: Job) -> dict[str, str]:
    return dict(job.variables) if isinstance(job, TrialJob) else {}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="det_harness.worker.standby", description=__doc__)
    parser.add_argument("--framework", required=True, metavar="NAME")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--entry", default="det_harness.worker.job:run_job", metavar="MODULE:FUNCTION")
    parser.add_argument("--import", action="append", default=[], dest="imports", metavar="MODULE")
    parser.add_argument("--status-fd", type=int)
    return parser.parse_args()


if __name__ == "__main__":
    main()
