"""A worker process: imports a framework, or is forked from a process that has; waits for one job on standard input,
runs it.

It must be able to become any worker of its kind, so until the job is known nothing touches a GPU, reads the user's
files or draws a random number that a trial could notice.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module

from pydantic import TypeAdapter

from det_harness.frameworks.base import harness_of
from det_harness.worker.process import (
    NO_FRAMEWORK,
    Job,
    installation_stamp,
    leave,
    leave_unused,
    needs_fresh_process,
    start_over,
    take_place,
)
from det_harness.worker.zygote import Zygote, without_threads
from det_native._version import PROTOCOL, __version__
from det_native.errors import ProtocolMismatchError
from det_native.frameworks import get_framework
from det_native.imports import collector_waits, freeze

# What a program's training call imports, what checks it, and what measures its process.
_OF_PROGRAMS = ("det_harness.program.check", "det_native.experimental.creation", "det_native.display", "psutil")


def main() -> None:
    """Run as ``python -m det_harness.worker.standby``."""
    options = _options()
    faulthandler.enable()
    stamp = installation_stamp()
    if options.fork_fd is None:
        entry = _load(options)
        status = Status(options.status_fd)
    else:
        with without_threads():
            entry = _load(options)
            options.status_fd = Zygote(options.fork_fd).serve(partial(warm_up, NO_FRAMEWORK, options.device))
        status = Status(options.status_fd)
        sys.argv = [sys.argv[0], *_arguments(options)]
    status.say("ready")
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        leave_unused()
    job = read_job(line)
    outdated = installation_stamp() != stamp
    if outdated:
        status.say("outdated")
    if outdated or needs_fresh_process(job.variables):
        start_over(line, job.variables, options.status_fd)
    take_place(job, options.framework)
    status.say("started")
    status.close()
    leave(_outcome(entry, job))


def _load(options: argparse.Namespace) -> Callable[[Job], int]:
    warm_up(options.framework, options.device, options.imports)
    module, _, name = options.entry.partition(":")
    entry: Callable[[Job], int] = getattr(import_module(module), name)
    return entry


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
    freeze()  # what was imported stays: no collection during a training has to search it


def _warm_framework(framework: str, device: str) -> None:
    if framework != NO_FRAMEWORK:
        harness_of(framework).warm_up(device)
        for name in (*_OF_PROGRAMS, get_framework(framework).init):
            if name:
                import_module(name)


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


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="det_harness.worker.standby", description=__doc__)
    parser.add_argument("--framework", required=True, metavar="NAME")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--entry", default="det_harness.worker.job:run_job", metavar="MODULE:FUNCTION")
    parser.add_argument("--import", action="append", default=[], dest="imports", metavar="MODULE")
    parser.add_argument("--status-fd", type=int)
    parser.add_argument("--fork-fd", type=int, help="be forked for each standby, as ordered on this socket")
    return parser.parse_args()


def _arguments(options: argparse.Namespace) -> list[str]:
    """Return the arguments with which a process of its own is what a fork of this one is."""
    imports = [word for name in options.imports for word in ("--import", name)]
    kind = ["--framework", options.framework, "--device", options.device, "--entry", options.entry]
    return [*kind, "--status-fd", str(options.status_fd), *imports]


if __name__ == "__main__":
    main()
