"""Has documents inspected and submitted as the server extension has it done, without an import of PyTorch for each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MODULE = "det_native.experimental.document"

#: Has imported what a document needs; forks for each request a process that becomes `python -P -m MODULE`.
_WARM = """
import json, os, runpy, sys, tempfile, traceback
import IPython.core.interactiveshell, torch
import det_native.experimental.cluster, det_native.experimental.document_answers
import det_native.experimental.document_run, det_native.experimental.pytorch, det_native.pytorch

print("ready", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if not child:
        code = 1
        try:
            for number, name in enumerate(("stdin", "stdout", "stderr")):
                flags = os.O_RDONLY if number == 0 else os.O_WRONLY
                os.dup2(os.open(os.path.join(request["streams"], name), flags), number)
            os.environ.clear()
            os.environ.update(request["environment"])
            os.chdir(request["folder"])
            tempfile.tempdir = None
            sys.stdin = open(0, closefd=False)
            sys.argv = [request["module"], request["what"]]
            sys.modules.pop(request["module"], None)  # it runs as the main module only, as it does with -m
            runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@dataclass(frozen=True)
class Answered:
    """How a process has ended, and what it wrote."""

    code: int
    stdout: str
    stderr: str


def run_command(what: str, body: str, folder: Path, environment: Mapping[str, str]) -> Answered:
    """Run the command as the server extension does."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", MODULE, what],
        input=body,
        cwd=folder,
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return Answered(done.returncode, done.stdout, done.stderr)


class WarmProcess:
    """Does what :func:`run_command` does, in forks of a process that has imported the modules once.

    Parameters
    ----------
    folder : Path
        Is for the standard streams of the forks.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _WARM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self._line() == "ready"

    def run(self, what: str, body: str, folder: Path, environment: Mapping[str, str]) -> Answered:
        """Run the command in a fork."""
        self._count += 1
        streams = self._folder / str(self._count)
        streams.mkdir()
        (streams / "stdin").write_text(body)
        for name in ("stdout", "stderr"):
            (streams / name).touch()
        request = {
            "module": MODULE,
            "what": what,
            "folder": str(folder),
            "environment": dict(environment),
            "streams": str(streams),
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        code = int(self._line())
        return Answered(code, (streams / "stdout").read_text(), (streams / "stderr").read_text())

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "the warm process has ended"
        return line
