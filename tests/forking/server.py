"""The process that kernels of the tests are forked from: it has imported what notebooks import.

Run by `kernel.py` when the first kernel of a pytest process is wanted; it ends with that process. A fork behaves as a
fresh kernel does: no library is in ``sys.modules`` before a cell imports it, though the import itself is done.

A client connects, and sends a line of JSON with ``arguments``, ``environment`` and ``folder``, and its three standard
descriptors. It reads the process number of the kernel, later its wait status. A client that hangs up ends its kernel.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import random
import select
import signal
import socket
import sys
import tempfile
import types
from collections.abc import Sequence
from pathlib import Path

#: In this order. The last of PyTorch's is what its first optimizer imports.
LIBRARIES = (
    "numpy",
    "pandas",
    "pydantic",
    "requests",
    "cloudpickle",
    "yaml",
    "fsspec",
    "anywidget",
    "torch",
    "torch.utils.data",
    "torch._dynamo",
    "tensorflow",
)
_MAXIMUM_REQUEST = 1 << 20
_ENVIRONMENT_ROOM = "DET_TEST_ENVIRONMENT_ROOM"


class HiddenLibraries(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Libraries that are imported, and out of sight until somebody imports them again.

    What an import of a library brought into ``sys.modules`` comes back with it, and no more. The standard library
    stays in sight.
    """

    def __init__(self) -> None:
        self._modules: dict[str, types.ModuleType] = {}
        self._brought: dict[str, set[str]] = {}

    def load(self, libraries: Sequence[str]) -> None:
        """Import libraries, those that are installed, and hide them."""
        visible = set(sys.modules)
        sys.meta_path.insert(0, self)
        for library in libraries:
            try:
                importlib.import_module(library)
            except ImportError:
                continue
            self._brought[library] = {name for name in set(sys.modules) - visible if not _is_standard(name)}
            for name in self._brought[library]:
                self._modules[name] = sys.modules.pop(name)

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Describe a hidden module; only its import brings it back."""
        if fullname not in self._modules:
            return None
        described = self._modules[fullname].__spec__
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=described and described.origin)
        spec.submodule_search_locations = described and described.submodule_search_locations
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Return the module as it is; its own description is put back by `exec_module`."""
        module = self._modules[spec.name]
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Bring back what else the import of the library brought; nothing runs."""
        assert module.__spec__ is not None
        name = module.__spec__.name
        module.__spec__ = module.__spec__.loader_state
        package = name.partition(".")[0]
        for other in self._brought.get(name) or [other for other in self._modules if other.startswith(f"{package}.")]:
            if other == "numpy.random" and other not in sys.modules:
                self._modules[other].seed()  # as its import would, by what the system draws now
            sys.modules.setdefault(other, self._modules[other])


def _is_standard(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names


class Server:
    """Forks kernels for clients until the owner ends.

    Parameters
    ----------
    address : str
        Path of the socket to listen on.
    owner : int
        The process that this one ends with.
    """

    def __init__(self, address: str, owner: int) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._owner = os.pidfd_open(owner)
        self._clients: dict[int, tuple[socket.socket, int]] = {}
        partial = f"{address}.{os.getpid()}"
        self._listener.bind(partial)
        self._listener.listen(16)
        os.rename(partial, address)  # a client that sees it can connect

    def serve(self) -> None:
        """Answer clients."""
        wakened, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            connections = {connection: pid for pid, (connection, _) in self._clients.items()}
            ready = select.select([self._listener, self._owner, wakened, *connections], [], [])[0]
            if self._owner in ready:
                self._end()
            for connection in ready:
                if isinstance(connection, socket.socket) and connection in connections:
                    self._hung_up(connections[connection])
            if wakened in ready:
                os.read(wakened, 4096)
            self._reap()
            if self._listener in ready:
                self._fork(self._listener.accept()[0])

    def _fork(self, connection: socket.socket) -> None:
        text, descriptors, _, _ = socket.recv_fds(connection, _MAXIMUM_REQUEST, 3)
        while text and not text.endswith(b"\n"):
            text += connection.recv(_MAXIMUM_REQUEST)
        if not text:
            connection.close()
            return
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other, _ in self._clients.values():
                other.close()
            self._listener.close()
            os.close(self._owner)
            connection.close()
            become_kernel(**json.loads(text), descriptors=descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self._clients[pid] = (connection, 0)
        connection.sendall(f"{pid}\n".encode())

    def _hung_up(self, pid: int) -> None:
        connection, _ = self._clients[pid]
        if not connection.recv(1):
            os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        while self._clients:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            connection, _ = self._clients.pop(pid)
            with contextlib.suppress(OSError):  # it was killed
                connection.sendall(f"{status}\n".encode())
            connection.close()

    def _end(self) -> None:
        for pid in self._clients:
            os.kill(pid, signal.SIGKILL)
        os._exit(0)


def become_kernel(arguments: list[str], environment: dict[str, str], folder: str, descriptors: list[int]) -> None:
    """Run a kernel in this process, which has just been forked; never return."""
    status = 1
    try:
        os.setsid()
        for place, descriptor in enumerate(descriptors):
            os.dup2(descriptor, place)
            os.close(descriptor)
        take_environment(environment)
        tempfile.tempdir = None  # it may remember the server's
        random.seed()
        os.chdir(folder)
        sys.path[0] = ""
        sys.argv = ["ipykernel_launcher", *arguments]
        sys.modules["__main__"] = types.ModuleType("__main__")
        from ipykernel.kernelapp import launch_new_instance

        try:
            launch_new_instance()
            status = 0
        except SystemExit as leave:
            status = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does with it
        sys.excepthook(*sys.exc_info())
    finally:
        _finish(status)


def _finish(status: int) -> None:
    """End as an interpreter does: other threads first, then what was registered for the end."""
    import atexit
    import threading

    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(status)


def take_environment(environment: dict[str, str]) -> None:
    """Set all variables, in ``/proc/self/environ`` too, where processes of a home are looked for."""
    os.environ.clear()
    start, end = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[47:49])
    block = b"".join(f"{name}={value}\0".encode() for name, value in environment.items())
    if len(block) < end - start:
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, block, len(block))
    os.environ.update(environment)


def main(address: str, owner: str) -> None:
    """Import all, then serve."""
    os.environ.pop(_ENVIRONMENT_ROOM, None)
    import ipykernel.ipkernel
    import ipykernel.kernelapp
    import ipykernel.zmqshell  # noqa: F401

    HiddenLibraries().load(LIBRARIES)
    # All of it is old from now on, so that no kernel looks through it soon. Frozen it would be counted by each import.
    gc.freeze()
    gc.unfreeze()
    Server(address, int(owner)).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
