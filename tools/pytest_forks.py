"""Run pytest again and again in forks of a process that has imported the libraries; ``tools/mutants.py`` starts it.

A line of standard input is a run as JSON: ``arguments`` of pytest, ``output``, a file for what it prints, and
``timeout``. The answer is a line with its exit code, or with -1 if it took too long. Nothing of the working folder is
imported here, so each fork sees its files as they are.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path

# Their threads do not survive a fork.
NOT_FORKED = ("tensorflow", "keras", "torch", "jax", "ray", "grpc")
TOO_LONG = -1
_POLL_S = 0.02


def libraries(folder: Path) -> list[str]:
    """Return the modules that are imported here and do not lie in a folder, in the order of their imports."""
    names = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        inside = file is not None and Path(file).is_relative_to(folder)
        if not inside and name != "__main__" and name.partition(".")[0] not in NOT_FORKED:
            names.append(name)
    return names


def run(arguments: list[str], output: Path, timeout: float | None, names: Path) -> int:
    """Run pytest in a fork; return its exit code. It leaves the names of the libraries that it has imported."""
    child = os.fork()
    if child == 0:
        os.setsid()
        with output.open("wb") as file:
            for descriptor in (1, 2):
                os.dup2(file.fileno(), descriptor)
        import pytest

        code = int(pytest.main(arguments))
        sys.stdout.flush()
        names.write_text("\n".join(libraries(Path.cwd())))
        os._exit(code)
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if end is not None and time.monotonic() > end:
            # With what the tests have started.
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return TOO_LONG
        time.sleep(_POLL_S)


def main() -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        job = json.loads(line)
        names = Path(job["output"]).with_suffix(".modules")
        code = run(job["arguments"], Path(job["output"]), job["timeout"], names)
        if names.exists():
            for name in names.read_text().split("\n"):
                with contextlib.suppress(Exception):  # some import only what another one has prepared
                    importlib.import_module(name)
            names.unlink()
        print(code, file=answers, flush=True)


if __name__ == "__main__":
    main()
