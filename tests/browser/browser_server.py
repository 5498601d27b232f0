"""One Chromium for all tests of a process; a test has a context of its own in it, as if it were another browser.

It is no child of the tests, which would otherwise have left behind whatever process Chromium starts during one of them;
it ends when they close their end of its standard input, or have ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright._impl._driver import compute_driver_executable


class BrowserServer:
    """A Chromium that any number of playwrights connect to, one after the other.

    Parameters
    ----------
    executable : str
    arguments : list of str
        Of the executable.
    folder : Path
        For its files.

    Attributes
    ----------
    address : str
        For ``chromium.connect()``.
    """

    def __init__(self, executable: str, arguments: list[str], folder: Path) -> None:
        program = [sys.executable, __file__, executable, *arguments]
        environment = {**os.environ, "TMPDIR": str(folder)}
        self._process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment
        )
        assert self._process.wait(60) == 0
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        assert self.address.startswith("ws://"), self.address

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        assert self._process.stdout.read() == ""  # its end is that of the process that had it
        self._process.stdout.close()


def serve(executable: str, arguments: list[str]) -> None:
    """Run the browser in the background until the standard input ends."""
    if os.fork():
        os._exit(0)
    os.setsid()
    options = {"executablePath": executable, "headless": True, "args": arguments, "host": "127.0.0.1"}
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config.json")
        config.write_text(json.dumps(options))
        # What `playwright launch-server` runs: that would not hand on the signal below.
        command = [*compute_driver_executable(), "launch-server", "--browser=chromium", f"--config={config}"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            print(server.stdout.readline().strip(), flush=True)
            sys.stdin.read()
            server.terminate()


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])
