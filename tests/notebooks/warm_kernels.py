"""A process that has imported what notebooks use, and forks a kernel for each: nothing of one is left for the next.

Run by `WarmKernels`. A request is a line of JSON that names the kernel's connection file, its folder, and another to
import from first; the answer is the kernel's process. The next request is read when it has ended.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import write_connection_file


class WarmKernels:
    """Kernels that have their libraries imported, one at a time.

    Parameters
    ----------
    folder : Path
        For what the kernels' connections are described in.
    environment : dict
        Environment variables of all of them.
    before : str
        Code that runs before anything is imported.
    libraries : tuple of str
        Modules.
    """

    def __init__(self, folder: Path, environment: dict[str, str], before: str, libraries: tuple[str, ...]) -> None:
        self._connection = folder / "connection.json"
        arguments = [sys.executable, __file__, before, *libraries]
        self._process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._kernel = 0

    def start(self, folder: Path, first: str = "") -> BlockingKernelClient:
        """Start a kernel in a folder; it imports from the folder `first` before all others."""
        file, _ = write_connection_file(str(self._connection))
        self._ask({"connection": file, "folder": str(folder), "first": first})
        client = BlockingKernelClient(connection_file=file)
        client.load_connection_file()
        client.start_channels(hb=False)  # nothing beats before the kernel is there
        client.wait_for_ready(timeout=240)
        return client

    def end(self, client: BlockingKernelClient) -> None:
        """End the kernel, and see that it has ended."""
        client.shutdown()
        client.stop_channels()
        with contextlib.suppress(psutil.NoSuchProcess):
            kernel = psutil.Process(self._kernel)
            try:
                kernel.wait(timeout=20)
            except psutil.TimeoutExpired:  # a cell runs on, in a test that has failed
                kernel.kill()
        self._connection.unlink()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=60)

    def _ask(self, request: dict[str, str]) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        self._kernel = int(self._process.stdout.readline())


def _serve(before: str, *libraries: str) -> None:
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nowhere, standard)
    exec(before, {})  # noqa: S102 (a line of the tests)
    for name in ("ipykernel.kernelapp", *libraries):
        importlib.import_module(name)
    gc.freeze()
    for line in requests:
        kernel = os.fork()
        if not kernel:
            _become_kernel(**json.loads(line))
        answers.write(f"{kernel}\n")
        answers.flush()
        os.waitpid(kernel, 0)


def _become_kernel(connection: str, folder: str, first: str) -> None:
    from ipykernel.kernelapp import IPKernelApp

    os.chdir(folder)
    sys.path[:1] = [first, ""] if first else [""]
    sys.argv[1:] = ["-f", connection]
    try:
        IPKernelApp.launch_instance()
    finally:
        os._exit(0)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
