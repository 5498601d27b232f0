"""Runs a command whose lines of output begin with its rank: ``[rank=1] ...``.

``python3 -m det_native.launch.wrap_rank RANK -- COMMAND...``; RANK is a number, or names of environment variables,
divided by commas, of which the first that is set has it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from types import FrameType
from typing import IO

_PIECE = 1 << 13
_END = re.compile(rb"[\r\n]")
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def main() -> int:
    """Run the command; return its exit code."""
    named, *command = sys.argv[1:] or [""]
    command = command[1:] if command[:1] == ["--"] else command
    rank = named if named.isdecimal() else next((os.environ[n] for n in named.split(",") if n in os.environ), "")
    if not rank or not command:
        sys.exit("usage: python3 -m det_native.launch.wrap_rank RANK [--] COMMAND...; RANK is a number or a variable.")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:

        def pass_on(number: int, frame: FrameType | None) -> None:
            process.send_signal(number)

        for number in _PASSED_ON:
            signal.signal(number, pass_on)
        pairs = [(process.stdout, 1), (process.stderr, 2)]
        threads = [threading.Thread(target=_copy, args=(stream, target, rank)) for stream, target in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        code = process.wait()
    return code if code >= 0 else 128 - code


def _copy(source: IO[bytes], target: int, rank: str) -> None:
    """Write each line with the rank before it, at once; a progress bar's lines end with a carriage return."""
    before = f"[rank={rank}] ".encode()
    rest = b""
    while piece := source.read(_PIECE):
        *lines, rest = _END.split(rest + piece)
        os.write(target, b"".join(before + line + b"\n" for line in lines))
    if rest:
        os.write(target, before + rest + b"\n")


if __name__ == "__main__":
    sys.exit(main())
