"""Files that are not what they were when the notebook took them in: the worker has them as they are now."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from det_native.capture.log import ExecutionLog, LoggedExecution
from det_native.capture.model import SourceFile
from det_native.capture.modules import module_file
from det_native.capture.reads import reads_of
from det_native.capture.reads_record import Import
from det_native.capture.transform import transform

_LONGEST = 40
#: Seconds: a disk has another clock than the process.
CLOCK = 0.05
_AUTORELOAD = re.compile(r"^\s*%autoreload\s+(\w+)", re.M)


def stale_modules(
    names: Sequence[str], log: ExecutionLog, namespace: Mapping[str, Any], imported: Mapping[str, Import]
) -> list[str]:
    """Return a warning for each module whose file is newer than its import.

    Where autoreload is on, modules are as their files are, but plain values imported from one keep what they were.

    Parameters
    ----------
    names : sequence of str
        Modules that travel.
    log : ExecutionLog
    namespace : mapping of name
        The live values.
    imported : mapping of name to Import
        Names that are what they were imported as.
    """
    if _autoreload_is_on(log):
        return [warning for name in names for warning in _stale_values(name, namespace, imported)]
    warnings = []
    for name in names:
        file = module_file(name)
        since = _imported_at(name, log)
        if file is None or since is None or file.stat().st_mtime <= since:
            continue
        warnings.append(
            f"{file.name} was edited after the notebook imported it: the worker runs the file as it is now, this "
            "kernel still "
            f"the earlier one. Restart the kernel, or use importlib.reload({name}) or %autoreload 2."
        )
    return warnings


def changed_files(files: Sequence[SourceFile], ran: Mapping[str, LoggedExecution]) -> Iterator[str]:
    """Warn of data that changed since a cell began to use them, by its own hand or later: they begin as they are now.

    Parameters
    ----------
    files : sequence of SourceFile
    ran : mapping of str to LoggedExecution
        The executions that are sent, by how files name them.
    """
    for file in files:
        reader = ran.get(file.cell)
        if reader is None or reader.started is None or reader.paths is None:
            continue
        path = os.path.abspath(file.path)
        before = reader.paths.log.get(("file", path)) or reader.paths.log.get(("write", path))
        written = file.path.stat()
        is_later = reader.duration is not None and written.st_mtime > _ended(reader) + CLOCK
        if is_later or (before is not None and before != written.st_mtime_ns):
            yield (
                f"{file.target} was changed after cell {file.cell} had begun to use it: the worker begins with the "
                "file as it is now. Write what changes to a file of another name, or run that cell again."
            )


def remade_values(names: Sequence[str], log: ExecutionLog, ran: Mapping[str, LoggedExecution]) -> Iterator[str]:
    """Warn of cells that used a module before it was edited, and autoreload loaded it anew: they are not run since."""
    if not _autoreload_is_on(log):
        return
    codes = {label: reads_of(_python(one)) for label, one in ran.items()}
    imported = [origin for code in codes.values() for origin in code.imports.items()]
    for name in names:
        file = module_file(name)
        bound = {one for one, origin in imported if origin.module == name or origin.attribute == name}
        if file is None or not bound:
            continue
        edited = file.stat().st_mtime
        before = [
            label
            for label, one in ran.items()
            if one.duration is not None and _ended(one) < edited and not codes[label].loaded.isdisjoint(bound)
        ]
        if before:
            yield (
                f"{file.name} was edited after cells {', '.join(before)} had used it: on the worker they run with the "
                "file as it is now. Run them again."
            )


def _python(execution: LoggedExecution) -> str:
    transformed = transform(execution.source)
    return "" if transformed.error or transformed.language is not None else transformed.source


def _ended(execution: LoggedExecution) -> float:
    return (execution.started or 0.0) + (execution.duration or 0.0)


def _stale_values(name: str, namespace: Mapping[str, Any], imported: Mapping[str, Import]) -> Iterator[str]:
    """Warn of plain data that ``from module import`` gave, and the reloaded module has otherwise."""
    module = sys.modules.get(name)
    for bound, origin in imported.items():
        if origin.module != name or not origin.attribute or not hasattr(module, origin.attribute):
            continue
        kept, present = namespace.get(bound), getattr(module, origin.attribute)
        if _differ(kept, present):
            yield (
                f"`{bound}` was imported from {name}, which was edited since: here it is {_brief(kept)}, on the "
                f"worker {_brief(present)}. Run the cell that imports it again."
            )


def _differ(kept: object, present: object) -> bool:
    """Whether plain data are others; of a library's and the user's objects, and of code, nothing is said."""
    return _is_data(kept) and _is_data(present) and repr(kept) != repr(present)


def _is_data(value: object) -> bool:
    if isinstance(value, dict):
        return type(value) is dict and all(map(_is_data, (*value.keys(), *value.values())))
    if isinstance(value, list | tuple | set | frozenset):
        return len(value) < 1000 and all(map(_is_data, value))
    return value is None or isinstance(value, bool | int | float | complex | str | bytes)


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _done(execution: LoggedExecution) -> str:
    """Return the lines of a cell that have run to their end."""
    if execution.succeeded is not False:
        return execution.source
    before = (execution.error_line or 1) - 1 + execution.error_in_body
    return "\n".join(execution.source.splitlines()[:before]) if execution.error_line is not None else ""


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
        ended = (execution.started or log.attached) + (execution.duration or 0.0)
        if reloads.search(source):
            reloaded = ended
        elif first is None and imports.search(source):
            first = ended
    return reloaded or first
