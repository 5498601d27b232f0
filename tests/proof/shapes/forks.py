"""Work in a process of its own, forked from one that has a framework imported and has computed nothing with it."""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from det_harness.frameworks.base import harness_of

_SECONDS = 60


def warm_up(framework: str, modules: Iterable[str]) -> None:
    """Import what the forks need, as a process does that a worker is forked from."""
    harness_of(framework).warm_up("cpu")
    for name in modules:
        importlib.import_module(name)
    gc.freeze()  # the collector of garbage would copy the memory of all that into each fork


def forked(work: Callable[[], dict[str, Any]], folder: Path) -> dict[str, Any]:
    """Do work in a fork, in an empty folder and with a folder for temporary files; return what it returns.

    What it prints is written to ``printed.txt`` beside the folder. An exception gives ``{"failed": its text}``.
    """
    for place in (folder, folder.with_name("temporary")):
        place.mkdir(parents=True)
    answer = folder.with_name("answer.json")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    child = os.fork()
    if not child:
        _work(work, folder, answer)
    _, status = os.waitpid(child, 0)
    if not answer.exists():
        return {"failed": f"the process has died with status {status}"}
    told: dict[str, Any] = json.loads(answer.read_text())
    return told


def _work(work: Callable[[], dict[str, Any]], folder: Path, answer: Path) -> None:
    try:
        signal.alarm(_SECONDS)
        output = os.open(folder.with_name("printed.txt"), os.O_CREAT | os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(output, stream)
        tempfile.tempdir = os.environ["TMPDIR"] = str(folder.with_name("temporary"))
        os.chdir(folder)
        try:
            told = work()
        except BaseException:  # noqa: BLE001 (told)
            told = {"failed": traceback.format_exc()}
        answer.write_text(json.dumps(told))
        for text in (sys.stdout, sys.stderr):
            text.flush()
    finally:
        os._exit(0)
