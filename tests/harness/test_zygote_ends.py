"""A zygote whose launcher is killed, at whatever moment: it ends too, and leaves nothing behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from det_native.schema.processes import MARKER_VARIABLE

SERVE = """
import os, sys
from pathlib import Path
from det_harness.worker.zygote import Zygote
zygote = Zygote(int(sys.argv[1]))
Path(os.environ["TMPDIR"], "a_cache").mkdir()
zygote.serve(lambda names: None)
"""


@pytest.mark.parametrize("listens", [True, False])
def test_it_clears_away_its_folder_whether_or_not_its_last_word_was_heard(tmp_path: Path, listens: bool) -> None:
    folder = tmp_path / "det-zygote"
    folder.mkdir()
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {**os.environ, "TMPDIR": str(folder), MARKER_VARIABLE: "test"}
    command = [sys.executable, "-c", SERVE, str(its.fileno())]
    with subprocess.Popen(command, env=environment, pass_fds=[its.fileno()], stderr=subprocess.PIPE) as zygote:
        its.close()
        if listens:
            assert b"threads" in ours.recv(1000)
        else:
            ours.recv(1000, socket.MSG_PEEK)  # it is there, and stays unread: closed so, the line is reset
        ours.close()
        _, said = zygote.communicate(timeout=60)
    assert (zygote.returncode, said) == (0, b"")
    assert not folder.exists()
