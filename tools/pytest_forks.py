"""Run pytest again and again in forks of a process that has imported the libraries; ``tools/mutants.py`` starts it.

A line of standard input is a run as JSON: ``arguments`` of pytest, ``output``, a file for what it prints, and
``limit_s``, seconds of processor time, or null. The answer is its exit code and the seconds that it took. Nothing of
the working folder is imported here, so each fork sees its files as they are.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
from pathlib import Path

# Their threads do not survive a fork.
NOT_FORKED = ("tensorflow", "keras", "torch", "jax", "ray", "grpc")


def libraries(folder: Path) -> list[str]:
    """Return the modules that are imported here and do not lie in a folder, in the order of their imports."""
    names = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        inside = file is not None and Path(file).is_relative_to(folder)
        if not inside and name != "__main__" and name.partition(".")[0] not in NOT_FORKED:
            names.append(name)
    return names


def run(arguments: list[str], output: Path, limit_s: int | None, names: Path) -> tuple[int, float]:
    """Run pytest in a fork; return its exit code and the seconds of processor time that it took.

    It leaves the names of the libraries that it has imported. What goes on for ever is ended by the limit of processor
    time, which a busy machine does not use up; what waits for ever by pytest's own timeout.
    """
    child = os.fork()
    if child == 0:
        os.setsid()
        if limit_s is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
        with output.open("wb") as file:
            for descriptor in (1, 2):
                os.dup2(file.fileno(), descriptor)
        import pytest

        code = int(pytest.main(arguments))
        sys.stdout.flush()
        names.write_text("\n".join(libraries(Path.cwd())))
        os._exit(code)
    _, status, usage = os.wait4(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what the tests have started, where they were ended
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


def main() -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        job = json.loads(line)
        names = Path(job["output"]).with_suffix(".modules")
        code, seconds = run(job["arguments"], Path(job["output"]), job["limit_s"], names)
        if names.exists():
            for name in names.read_text().split("\n"):
                with contextlib.suppress(Exception):  # some import only what another one has prepared
                    importlib.import_module(name)
            names.unlink()
        print(code, seconds, file=answers, flush=True)


if __name__ == "__main__":
    main()
