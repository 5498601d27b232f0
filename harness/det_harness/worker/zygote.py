"""A zygote: a process that has imported a framework and computed nothing, and is forked for each standby.

A fork takes over the one thread that calls it, and all locks as they are. So a zygote must have no other thread; one
that has says so, and is not used. Each fork is a child of the launcher, not of the zygote, whose end it outlives.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from det_harness.worker.process import leave_unused
from det_native.schema.processes import MARKER_VARIABLE

# Libraries that would start a thread when they load, and what keeps them from it.
_WITHOUT_THREADS = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
_MAXIMUM_ORDER = 1 << 16
_DESCRIPTORS = 3


@contextmanager
def without_threads() -> Iterator[None]:
    """Have libraries that are imported in the block start no threads, where they can be told so."""
    added = [name for name in _WITHOUT_THREADS if name not in os.environ]
    os.environ.update({name: _WITHOUT_THREADS[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


class Zygote:
    """Serves the launcher's orders, one datagram each, on a socket.

    An order with ``marker`` and ``temporary`` wants a fork, and brings its standard input, its output and its status
    pipe. One with ``imports`` wants modules imported. Every answer is an object: ``threads`` besides the first when it
    is ready for orders, ``pid`` of a fork, or ``error``.
    """

    def __init__(self, descriptor: int) -> None:
        self._connection = socket.socket(fileno=descriptor)
        self._connection.set_inheritable(False)

    def serve(self, load: Callable[[Sequence[str]], object]) -> int:
        """Fork as ordered, until the launcher is gone; return, in each fork only, its status pipe.

        Parameters
        ----------
        load : callable
            Imports the modules of an order.
        """
        self._answer(threads=other_threads())
        while True:
            message, descriptors = self._order()
            if not message:
                leave_unused()
            order = json.loads(message)
            if "imports" in order:
                load(order["imports"])
                self._answer(threads=other_threads())
                continue
            try:
                pid = self._fork(order["marker"])
            except (OSError, ValueError) as error:  # no memory or no number for another process
                self._answer(error=str(error))
                pid = -1
            if pid == 0:
                self._connection.close()
                return become(order["temporary"], *descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            if pid > 0:
                self._answer(pid=pid)

    def _order(self) -> tuple[bytes, list[int]]:
        """Return the next order and what comes with it; no bytes once the launcher is gone."""
        try:
            message, descriptors, _, _ = socket.recv_fds(self._connection, _MAXIMUM_ORDER, _DESCRIPTORS)
        except ConnectionResetError:  # it was killed before it had read the last answer
            return b"", []
        return message, descriptors

    def _answer(self, **facts: object) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # the launcher is gone, which the next order tells
            self._connection.send(json.dumps(facts).encode())

    def _fork(self, marker: str) -> int:
        """Fork a process whose parent ends at once, so that the launcher inherits it; return its number, 0 in itself.

        Raises
        ------
        OSError, ValueError
            If the system gives no more processes, or the new one could not be marked.
        """
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        told, tell = os.pipe()
        between = os.fork()
        if between == 0:
            try:
                if os.fork():
                    os._exit(0)
                os.close(told)
                os.setsid()
                set_marker(marker)
                os.write(tell, str(os.getpid()).encode())
            except BaseException as error:  # noqa: BLE001 - told to the zygote, which goes on without this process
                with suppress(OSError):
                    os.write(tell, f"{type(error).__name__}: {error}".encode())
                os._exit(1)
            os.close(tell)
            return 0
        os.close(tell)
        with open(told, "rb") as pipe:
            text = pipe.read().decode()
        os.waitpid(between, 0)
        if not text.isdigit():
            raise ValueError(text or "the new process ended at once")
        return int(text)


def other_threads() -> int:
    """Return how many threads beside the calling one would be lost in a fork.

    Some libraries (OpenBLAS, for one) end theirs before a fork and start them again when they compute.
    """
    probe = os.fork()
    if probe == 0:
        os._exit(0)
    os.waitpid(probe, 0)
    return len(os.listdir("/proc/self/task")) - 1


def set_marker(marker: str) -> None:
    """Have this process and those it forks marked for whoever looks them up in ``/proc``.

    What is seen there is the environment that the interpreter was started with: the text is replaced where it stands.

    Raises
    ------
    ValueError
        If that cannot be done.
    """
    before = os.environ.get(MARKER_VARIABLE, "")
    entry = f"{MARKER_VARIABLE}={before}\0".encode()
    wanted = f"{MARKER_VARIABLE}={marker}\0".encode()
    with open("/proc/self/environ", "rb") as file:
        place = file.read().find(entry)
    if place < 0 or len(wanted) != len(entry):
        raise ValueError(f"the variable {MARKER_VARIABLE} is not where it was at the start")
    with open("/proc/self/stat", "rb") as file:
        start = int(file.read().rpartition(b")")[2].split()[47])
    ctypes.memmove(start + place, wanted, len(wanted))
    os.environ[MARKER_VARIABLE] = marker
    with open("/proc/self/environ", "rb") as file:
        if wanted not in file.read():
            raise ValueError(f"the variable {MARKER_VARIABLE} cannot be changed in place")


def become(temporary: str, stdin: int, output: int, status: int) -> int:
    """Take the standard streams and the temporary folder of a standby; return its status pipe."""
    for descriptor, place in ((stdin, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, place)
    os.close(stdin)
    os.close(output)
    before = os.environ.get("TMPDIR", temporary)
    for name, value in os.environ.items():  # libraries have noted folders in there too
        if value.startswith(before):
            os.environ[name] = temporary + value.removeprefix(before)
    os.environ["TMPDIR"] = temporary
    tempfile.tempdir = None  # it may remember the folder of the zygote
    return status
