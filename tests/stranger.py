"""Another user's process that listens where a master was, answers as one would, and keeps all that it is told."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PATIENCE = 120.0
NOBODY = 65534
# Health is answered as a master answers it, an introduction with what looks like one, and anything else with "yes".
_PROGRAM = """
import json, os, socket, sys, threading

place, record, user = sys.argv[1], os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), int(sys.argv[3])
if user:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
if place.isdigit():
    listening = socket.create_server(("127.0.0.1", int(place)))
else:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(place)
    os.chmod(place, 0o666)
    listening.listen()

def serve(line):
    came = b""
    while piece := line.recv(65536):
        os.write(record, piece)
        came += piece
        while b"\\r\\n\\r\\n" in came:
            head, _, came = came.partition(b"\\r\\n\\r\\n")
            lengths = [int(one[15:]) for one in head.lower().split(b"\\r\\n") if one.startswith(b"content-length:")]
            while lengths and len(came) < lengths[0] and (piece := line.recv(65536)):
                os.write(record, piece)
                came += piece
            came = came[lengths[0]:] if lengths else came
            text = head.decode("latin-1")
            answer = {"status": "ok", "version": "0.1.0", "protocol": 1}
            if "/introduction" in text:
                answer = {"nonce": "0" * 64, "address": "127.0.0.1 " + place, "proof": "0" * 64}
            body = json.dumps(answer).encode()
            line.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)

print("listens", flush=True)
while True:
    line, _ = listening.accept()
    threading.Thread(target=serve, args=(line,), daemon=True).start()
"""


@dataclass
class Stranger:
    """What it has heard."""

    record: Path

    @property
    def heard(self) -> str:
        """All that was said to it, by whomever."""
        return self.record.read_text(errors="replace")

    def wait_for(self, text: str, times: int = 1) -> None:
        """Wait until it has heard something so often."""
        deadline = time.monotonic() + PATIENCE
        while self.heard.count(text) < times:
            assert time.monotonic() < deadline, self.heard
            time.sleep(0.05)


@contextmanager
def stranger(place: int | Path, folder: Path, *, other_user: bool = True) -> Iterator[Stranger]:
    """Have one listen at a port or a socket for the block.

    Parameters
    ----------
    place : int or Path
    folder : Path
        Of its record.
    other_user : bool
        Whether it is of another user, where these tests may make it one.

    Raises
    ------
    PermissionError
        If it may not listen there.
    """
    user = NOBODY if other_user and os.getuid() == 0 else 0
    record = folder / "heard"
    command = [sys.executable, "-c", _PROGRAM, str(place), str(record), str(user)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        if process.stdout.readline() != "listens\n":
            error = process.stderr.read()
            raise PermissionError(error) if "PermissionError" in error else AssertionError(error)
        yield Stranger(record)
    finally:
        process.kill()
        process.communicate()
        if isinstance(place, Path):
            with contextlib.suppress(OSError):
                place.unlink()


def needs_another_user() -> None:
    """Skip a test that cannot be another user."""
    if os.getuid() != 0:
        pytest.skip("needs root, to be another user")
