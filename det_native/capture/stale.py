"""Files that are not what they were when the notebook took them in: the worker has them as they are now."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from det_native.capture.log import ExecutionLog, LoggedExecution
from det_native.capture.model import SourceFile
from det_native.capture.modules import module_file

#: Seconds: a disk has another clock than the process.
CLOCK = 0.05
_AUTORELOAD = re.compile(r"^\s*%autoreload\s+(\w+)", re.M)


def stale_modules(names: Sequence[str], log: ExecutionLog) -> Iterator[str]:
    """Warn of each module that travels whose file is newer than its import; autoreload imports it anew."""
    for name in () if _autoreload_is_on(log) else names:
        file = module_file(name)
        since = _imported_at(name, log)
        if file is not None and since is not None and file.stat().st_mtime > since:
            yield (
                f"{file.name} was edited after the notebook imported it: the worker runs the file as it is now, this "
                f"kernel still the earlier one. Restart the kernel, or use importlib.reload({name}) or %autoreload 2."
            )


def changed_files(files: Sequence[SourceFile], ran: Mapping[str, LoggedExecution]) -> Iterator[str]:
    """Warn of data that changed since a cell began to use them, by its own hand or later: they begin as they are now.

    Parameters
    ----------
    ran : mapping of str to LoggedExecution
        The executions that the call needs, by how files name them.
    """
    for file in files:
        reader = ran.get(file.cell)
        if reader is None or reader.time.started is None or reader.seen.paths is None:
            continue
        path = os.path.abspath(file.path)
        before = reader.seen.paths.log.get(("file", path)) or reader.seen.paths.log.get(("write", path))
        written = file.path.stat()
        is_later = reader.time.duration is not None and written.st_mtime > _ended(reader) + CLOCK
        if is_later or (before is not None and before != written.st_mtime_ns):
            yield (
                f"{file.target} was changed after cell {file.cell} had begun to use it: the worker begins with the "
                "file as it is now. Write what changes to a file of another name, or run that cell again."
            )


def _ended(execution: LoggedExecution) -> float:
    return (execution.time.started or 0.0) + (execution.time.duration or 0.0)


def _done(execution: LoggedExecution) -> str:
    """Return the lines of a cell that have run to their end."""
    if execution.ending.succeeded is not False:
        return execution.source
    before = (execution.ending.error_line or 1) - 1 + execution.ending.error_in_body
    return "\n".join(execution.source.splitlines()[:before]) if execution.ending.error_line is not None else ""


def _autoreload_is_on(log: ExecutionLog) -> bool:
    mode = "0"
    for execution in log.executions:
        for match in _AUTORELOAD.finditer(_done(execution)):
            mode = match[1]
    return mode not in {"0", "off"}


def _imported_at(name: str, log: ExecutionLog) -> float | None:
    """When the module was imported, or last reloaded, as far as the log tells (seconds since the epoch)."""
    imports = re.compile(rf"\b(import|from)\s+.*\b{re.escape(name)}\b")
    reloads = re.compile(rf"\breload\(\s*{re.escape(name)}\b")
    first: float | None = None
    reloaded: float | None = None
    for execution in log.executions:
        source = _done(execution)
        ended = (execution.time.started or log.attached) + (execution.time.duration or 0.0)
        if reloads.search(source):
            reloaded = ended
        elif first is None and imports.search(source):
            first = ended
    return reloaded or first
