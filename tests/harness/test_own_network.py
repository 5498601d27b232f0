"""A network of a trial's own: nobody outside reaches what listens there, and a thread from before is still outside."""

from __future__ import annotations

import subprocess
import sys

import pytest

from det_native.schema.namespaces import why_no_network

LISTENS = """
import socket, sys, threading
from det_native.schema.namespaces import begin_network, begin_user

begin_user()
go, outside = threading.Event(), []
def connect(port):
    go.wait()
    with socket.create_connection(("127.0.0.1", port)) as line:
        outside.append(line.recv(7))
thread = threading.Thread(target=connect, args=(int(sys.argv[1]),))
thread.start()
begin_network()
server = socket.create_server(("0.0.0.0", 2222))
with socket.create_connection(("127.0.0.1", 2222)):
    print("listens", flush=True)
sys.stdin.readline()
go.set()
thread.join()
print(outside)
"""


@pytest.mark.slow
def test_nobody_reaches_it_and_earlier_threads_stay_outside() -> None:
    import socket

    if why_no_network():
        pytest.skip(why_no_network())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with subprocess.Popen(
            [sys.executable, "-c", LISTENS, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as inside:
            assert inside.stdout is not None
            assert inside.stdin is not None
            assert inside.stdout.readline() == "listens\n"
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", 2222), timeout=5)
            inside.stdin.write("go\n")
            inside.stdin.flush()
            line, _ = listening.accept()
            with line:
                line.sendall(b"outside")
            assert inside.stdout.readline() == "[b'outside']\n"
