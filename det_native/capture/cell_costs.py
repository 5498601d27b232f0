"""What a cell costs if it runs again: seconds, bytes in memory, files, and what it did outside of its process."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from det_native.capture.data import collect_data
from det_native.capture.execution import Execution
from det_native.capture.log import ExecutionLog, LoggedExecution
from det_native.capture.never_sent import never_sent
from det_native.capture.path_texts import path_texts
from det_native.capture.program.records import Run, Step
from det_native.capture.secrets import find_secrets
from det_native.capture.seen_files import SeenFiles
from det_native.capture.submitted import has_come_home
from det_native.capture.syntax import tree_of
from det_native.capture.value_formats import size_of
from det_native.schema.sizes import shown_size

#: Bytes in memory that are better not made again unasked.
LARGE = 100_000_000
#: Bytes of files that only a run needs which nothing needs.
MOST_OF_FILES = 1 << 20
#: Why a cell stays behind that has made a training call.
TRAINED = "trained"
_STREAMS = frozenset({"dataset", "loader", "iterator", "generator"})  # to read them moves their place
_LONGEST_PATH = 400
_DONE = {"network": "used the network", "shell": "ran a command", "delete": "deleted", "move": "moved"}


def why_it_stays(execution: Execution, log: ExecutionLog, namespace: Mapping[str, Any], secret: bool) -> str:
    """Return why a cell does not run again unasked; empty if it may.

    Parameters
    ----------
    namespace : mapping of str
        The live values.
    secret : bool
        It holds what looks like a secret.
    """
    calls = [call for call in log.calls if call.running == execution.index and call.kind != "init"]
    if not all(map(has_come_home, calls)):
        return TRAINED
    if log.executions[execution.index].seen.trained:
        return "trained while TensorFlow had no seed"
    bound = execution.effects.bound if execution.effects is not None else frozenset()
    size = sum(size_of(namespace[name]) or 0 for name in bound & namespace.keys())
    if size > LARGE:
        return f"left {shown_size(size)} in memory"
    if secret:
        return "holds what looks like a secret"
    if execution.logged.seen.outside:
        kind, _, what = execution.logged.seen.outside[0].partition(": ")
        return f"{_DONE[kind]} ({what})"
    return ""


def leaves_something(execution: Execution, run: Run, namespace: Mapping[str, Any]) -> bool:
    """Return whether a cell may have left what no name shows: it runs again where no name of it is needed, too."""
    seen = execution.logged.seen.paths
    if execution.effects is None or seen is None:
        return True
    # What Python compiles it compiles again where it is needed.
    if any("__pycache__" not in path and not os.path.isdir(path) for path in seen.writes()):
        return True
    return any(never_sent(namespace.get(name)) in _STREAMS for name in run.reads)


def seconds_of(logged: LoggedExecution) -> float:
    """Return how long a cell took, without imports, and without sending trainings and waiting for them."""
    return max(0.0, (logged.time.duration or 0.0) - logged.time.importing - logged.time.elsewhere)


def secret_lines(source: str, consent: Collection[str]) -> frozenset[int]:
    """Return the lines of a cell with what looks like a secret that the user has not named in ``values=``."""
    if '"' not in source and "'" not in source:  # to look for one takes a while
        return frozenset()
    return frozenset(one.line for one in find_secrets(source) if one.name not in consent)


def needs_large_files(step: Step, log: ExecutionLog, root: Path, context: Path | None) -> str:
    """Return that what runs again of a cell needs large files, if it does."""
    paths = log.executions[step.run].seen.paths if step.kind != "settings" else None
    may_read = paths is not None and any(True for _ in paths.reads())
    if not (may_read or _may_need_files(step.source)):
        return ""
    seen = SeenFiles(log, [step.run] if may_read else [])
    data = collect_data([(step.source, "")], root, Path.cwd(), context, seen=seen)
    size = sum(file.path.stat().st_size for file in data.files)
    return f"needs files of {shown_size(size)}" if size > MOST_OF_FILES else ""


def _may_need_files(source: str) -> bool:
    """Whether a cell names something that exists, or whose name it puts together."""
    texts = path_texts(tree_of(source))
    return any(one.patterns or any(map(_exists, one.literals)) for one in texts)


def _exists(text: str) -> bool:
    return 0 < len(text) < _LONGEST_PATH and "\n" not in text and "\0" not in text and os.path.exists(text)
