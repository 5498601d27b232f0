"""A process that has imported a framework, and is forked for each program that a test starts.

To import torch or TensorFlow takes seconds, and the tests start dozens of processes. Started as
``python forking_process.py <module> ...``, this reads one line of JSON for each program to start: its arguments, its
environment, its folder, and the pipe for its output. It says so when it is ready, and answers with the
process id, and with the exit code once the process has ended. `forked_programs.ForkedPrograms` is the other side.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import sys
import types
from pathlib import Path
from typing import Any

# They open the driver of a GPU, which no fork of this process could use then.
_ONLY_WITHOUT_GPUS = {"torch._inductor.compile_fx"}
# Of an allocator that pandas brings along, which is made for forks.
_HARMLESS_THREADS = {"jemalloc_bg_thd"}


class _Servant:
    """Answers until its input is closed; what is alive then is killed.

    Parameters
    ----------
    answers : int
        Where to write them.
    """

    def __init__(self, answers: int) -> None:
        self._answers = answers
        self._alive: set[int] = set()

    def serve(self) -> dict[str, Any] | None:
        """Return None at the end of the input; in a process that was forked, what it is to run."""
        ends, end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(end)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        requests = sys.stdin.buffer.raw
        with selectors.DefaultSelector() as selector:
            selector.register(requests, selectors.EVENT_READ)
            selector.register(ends, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fd == ends:
                        os.read(ends, 4096)
                        self._tell_of_ends()
                    elif not (line := requests.readline()):
                        self._kill()
                        return None
                    elif pid := os.fork():
                        self._alive.add(pid)
                        self._say({"started": pid})
                    else:
                        signal.set_wakeup_fd(-1)
                        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                        for inherited in (ends, end, self._answers):
                            os.close(inherited)
                        return json.loads(line)

    def _tell_of_ends(self) -> None:
        for pid in sorted(self._alive):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                self._alive.remove(pid)
                self._say({"ended": pid, "code": os.waitstatus_to_exitcode(status)})

    def _kill(self) -> None:
        for pid in self._alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _say(self, said: dict[str, Any]) -> None:
        os.write(self._answers, json.dumps(said).encode() + b"\n")


def _become(told: dict[str, Any]) -> None:
    """Make of a forked process what ``python <arguments>`` would be."""
    os.environ.clear()
    os.environ.update(told["environment"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.open(told["output"], os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.chdir(told["folder"])
    sys.argv = told["arguments"]
    more = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", *sys.path)]
    sys.path[:1] = [os.path.dirname(os.path.abspath(sys.argv[0])), *more]
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    main.__file__ = os.path.abspath(sys.argv[0])
    exec(compile(Path(main.__file__).read_bytes(), main.__file__, "exec"), main.__dict__)  # noqa: S102 (a program of a test)


def _threads() -> set[str]:
    tasks = Path("/proc/self/task")
    return {(each / "comm").read_text().strip() for each in tasks.iterdir() if each.name != str(os.getpid())}


if __name__ == "__main__":
    answers = os.dup(1)
    os.dup2(2, 1)  # what a module prints is no answer
    for name in sys.argv[1:]:
        if name not in _ONLY_WITHOUT_GPUS or not Path("/dev/nvidiactl").exists():
            importlib.import_module(name)
    # A fork has the locks of the threads that were there, but not the threads.
    assert not _threads() - _HARMLESS_THREADS, _threads()
    gc.collect()
    gc.freeze()  # otherwise each fork goes through all modules' objects once more as it ends, which takes a second
    os.write(answers, b"{}\n")
    asked = _Servant(answers).serve()
    if asked is None:
        os._exit(0)
    _become(asked)
