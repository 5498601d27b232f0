"""Stands for a kernel that was forked from the server: its standard streams, its signals, its end.

The kernel specification that `kernel_specification` writes runs this file in place of ``ipykernel_launcher``, with an
interpreter that imports next to nothing. Where a library would be imported in another way than in the server, because
of the environment, it becomes an ordinary kernel.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time

#: The folder of the socket, and the process that the server ends with.
FOLDER = "DET_TEST_KERNELS"
OWNER = "DET_TEST_KERNELS_OWNER"
#: What libraries read while they are imported, or the interpreter when it starts.
_READ_AT_IMPORT = (
    *("HOME", "HF_", "KERAS_", "KMP_", "LD_", "MALLOC_", "MKL_", "OMP_", "OPENBLAS_", "PYTHON", "PYTORCH_", "TF_"),
    *("TORCH_", "XLA_"),
)
_WITHOUT_EFFECT = {"TF_CPP_MIN_LOG_LEVEL"}
_ROOM = 1 << 16


def read_at_import() -> dict[str, str]:
    """Return the variables that libraries have read while they were imported."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_READ_AT_IMPORT) and name not in _WITHOUT_EFFECT
    }


def connect(folder: str) -> socket.socket | None:
    """Return a connection to the server, which is started if need be; None if it has another environment."""
    address = os.path.join(folder, "socket")
    noted = os.path.join(folder, "environment.json")
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(noted):
            with open(noted, "w") as file:
                json.dump(read_at_import(), file)
            _start(folder, address)
    with open(noted) as file:
        if json.load(file) != read_at_import():
            return None
    while not os.path.exists(address):
        time.sleep(0.02)
        os.kill(int(os.environ[OWNER]), 0)  # raises once nobody wants a kernel any more
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(address)
    return connection


def _start(folder: str, address: str) -> None:
    server = os.path.join(os.path.dirname(os.path.abspath(__file__)), "server.py")
    with open(os.path.join(folder, "log"), "ab") as log:
        process = subprocess.Popen(
            [sys.executable, server, address, os.environ[OWNER]],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env={
                "DET_TEST_ENVIRONMENT_ROOM": "x" * _ROOM,
                **{name: value for name, value in os.environ.items() if not name.startswith("DET_")},
                "TF_CPP_MIN_LOG_LEVEL": "3",
                "TMPDIR": folder,  # imports leave caches there
                # Arrow would start a thread when it is loaded, which a fork loses.
                "JE_ARROW_MALLOC_CONF": "background_thread:false",
            },
            start_new_session=True,
        )
    with open(os.path.join(folder, "server"), "w") as file:
        file.write(str(process.pid))


def main(arguments: list[str]) -> None:
    """Have a kernel forked, pass on signals, and end as it does."""
    folder = os.environ.get(FOLDER)
    connection = connect(folder) if folder else None
    if connection is None:
        os.execv(sys.executable, [sys.executable, "-m", "ipykernel_launcher", *arguments])
    environment = {name: value for name, value in os.environ.items() if name not in (FOLDER, OWNER)}
    request = {"arguments": arguments, "environment": environment, "folder": os.getcwd()}
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    text = json.dumps(request).encode() + b"\n"
    sent = socket.send_fds(connection, [text], [0, 1, 2])
    connection.sendall(text[sent:])
    answers = connection.makefile("r")
    kernel = int(answers.readline())

    def forward(number: int, _: object) -> None:
        os.kill(kernel, number)

    for number in signals:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    status = int(answers.readline() or signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def kernel_specification(folder: str) -> str:
    """Write the kernel "python3" whose processes are forked; return what ``JUPYTER_PATH`` is to have."""
    place = os.path.join(folder, "jupyter", "kernels", "python3")
    os.makedirs(place, exist_ok=True)
    argv = [sys.executable, "-S", "-E", os.path.abspath(__file__), "-f", "{connection_file}"]
    with open(os.path.join(place, "kernel.json"), "w") as file:
        json.dump({"argv": argv, "display_name": "Python 3 (ipykernel)", "language": "python"}, file)
    return os.path.join(folder, "jupyter")


if __name__ == "__main__":
    main(sys.argv[1:])
