"""Modules whose file was edited after it was imported: the worker would run other code than the kernel."""

from __future__ import annotations

import re
from collections.abc import Sequence

from det_native.capture.log import ExecutionLog
from det_native.capture.modules import module_file

_AUTORELOAD = re.compile(r"^\s*%autoreload\s+(\w+)", re.M)


def stale_modules(names: Sequence[str], log: ExecutionLog) -> list[str]:
    """Return a warning for each module whose file is newer than its import, unless autoreload is on."""
    if _autoreload_is_on(log):
        return []
    warnings = []
    for name in names:
        file = module_file(name)
        imported = _imported_at(name, log)
        if file is None or imported is None or file.stat().st_mtime <= imported:
            continue
        warnings.append(
            f"{file.name} was edited after the notebook imported it: the worker runs the file as it is now, this "
            "kernel still "
            f"the earlier one. Restart the kernel, or use importlib.reload({name}) or %autoreload 2."
        )
    return warnings


def _autoreload_is_on(log: ExecutionLog) -> bool:
    mode = "0"
    for execution in log.executions:
        if execution.succeeded is not False:
            for match in _AUTORELOAD.finditer(execution.source):
                mode = match[1]
    return mode not in {"0", "off"}


def _imported_at(name: str, log: ExecutionLog) -> float | None:
    """When the module was imported, or last reloaded, as far as the log tells (seconds since the epoch)."""
    imports = re.compile(rf"\b(import|from)\s+.*\b{re.escape(name)}\b")
    reloads = re.compile(rf"\breload\(\s*{re.escape(name)}\b")
    first: float | None = None
    reloaded: float | None = None
    for execution in log.executions:
        if execution.succeeded is False:
            continue
        ended = (execution.started or log.attached) + (execution.duration or 0.0)
        if reloads.search(execution.source):
            reloaded = ended
        elif first is None and imports.search(execution.source):
            first = ended
    return reloaded or first
