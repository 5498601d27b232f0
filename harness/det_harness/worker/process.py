"""The process of a worker: what it becomes for its job, when it has to start over, and how it ends."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import io
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from det_harness.frameworks.base import harness_of
from det_harness.worker.forgiving import forgiving
from det_native.frameworks import find_framework, read_frameworks
from det_native.schema.job import STACKS_SIGNAL, CheckJob, TrialJob
from det_native.schema.processes import MARKER_VARIABLE

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


def take_place(job: Job, framework: str) -> None:
    """Become the worker of this job: environment, devices, threads, directory, output."""
    directory = Path(job.directory)
    _redirect_output(directory / "output.log")
    faulthandler.register(STACKS_SIGNAL, file=2, all_threads=True)
    if isinstance(job, TrialJob) and "OMP_NUM_THREADS" not in job.variables:
        _use_threads(job.threads, framework)
    os.environ.update(job.variables)
    if isinstance(job, TrialJob):
        _tell_of_threads(job)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(job.devices) if isinstance(job, TrialJob) else ""
    work = directory / "work"
    work.mkdir(parents=True, exist_ok=True)
    os.chdir(work)


def _tell_of_threads(job: TrialJob) -> None:
    """Say where a variable has a slot compute with other threads than its share of the machine has."""
    asked = job.variables.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if job.threads and asked.isdecimal() and int(asked) != job.threads:
        advice = (
            "More threads than processors slow down all that runs there: set a smaller number, or use fewer slots."
            if int(asked) > job.threads
            else "Without the variable it uses all of them."
        )
        print(
            f"OMP_NUM_THREADS={asked}: this process computes with {asked} thread(s), and its share of the machine is "
            f"{job.threads} processor(s). {advice}",
            file=sys.stderr,
        )


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
    sys.stdout, sys.stderr = forgiving(1), forgiving(2)
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


def remove_temporary_folder() -> None:
    """Remove the folder that the launcher made for this process and would have removed itself."""
    folder = Path(os.environ.get("TMPDIR", ""))
    if MARKER_VARIABLE in os.environ and folder.name.startswith("det-"):
        shutil.rmtree(folder, ignore_errors=True)


def leave_unused() -> NoReturn:
    """End this process, whose launcher is gone: nothing was begun, so nothing has to be wound up."""
    remove_temporary_folder()
    os._exit(0)


def leave(code: int) -> NoReturn:
    """End this process as the interpreter does, but for taking the frameworks apart: that takes them up to seconds."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for the user's threads; no public name
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the disk is full, or the user closed it
            stream.flush()
    remove_temporary_folder()
    os._exit(code)
