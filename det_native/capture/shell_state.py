"""What IPython's shell and its front end know of the cells that ran before anybody looked, and of the one that runs.

Only the standard library is imported here, and IPython not before it runs.
"""

from __future__ import annotations

import ast
import linecache
import sys
import time
from collections.abc import Collection
from datetime import datetime
from types import FrameType
from typing import Any

_SHELL_MODULE = "IPython.core.interactiveshell"
_IMPORTS = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def compiled_files() -> dict[str, list[str]]:
    """Return the file names of the cells that IPython has compiled, by their text.

    A name is made from the text of a cell, and the history keeps that text without the newlines at its end.
    """
    found: dict[str, list[str]] = {}
    for file, entry in list(linecache.cache.items()):
        if len(entry) == 4 and entry[1] is None:  # a time: it is of a file on the disk
            found.setdefault(without_last_newlines("".join(entry[2])), []).append(file)
    return found


def without_last_newlines(source: str) -> str:
    """Return a text as IPython's history keeps it."""
    return "\n".join(source.splitlines()).rstrip("\n")


def cell_that_runs() -> dict[str, Any] | None:
    """Return the local names of IPython's method that runs a cell at this moment, None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "run_cell_async" and frame.f_globals.get("__name__") == _SHELL_MODULE:
            return dict(frame.f_locals)
        frame = frame.f_back
    return None


def has_only_imported(files: Collection[str]) -> bool:
    """Whether the cell that runs has done nothing until now but import and define.

    Parameters
    ----------
    files : collection of str
        File names of its code.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not (frame.f_code.co_name == "<module>" and frame.f_code.co_filename in files):
        frame = frame.f_back
    if frame is None:
        return False
    body = ast.parse("".join(linecache.getlines(frame.f_code.co_filename))).body
    return all(isinstance(one, _IMPORTS) or _is_line_of_ipython(one) for one in body if one.lineno < frame.f_lineno)


def _is_line_of_ipython(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and ast.unparse(statement).startswith("get_ipython().")


def _parent(shell: Any) -> dict[str, Any]:
    """Return the front end's message that had the running cell executed; empty where there is no front end."""
    get_parent = getattr(shell, "get_parent", None)
    if get_parent is None:
        return {}
    try:
        parent = get_parent()
    except LookupError:
        return {}
    return parent if isinstance(parent, dict) else {}


def parent_metadata(shell: Any) -> dict[str, Any]:
    """Return what a front end sent with the running cell: its identity and tags."""
    metadata = _parent(shell).get("metadata") or {}
    return metadata if isinstance(metadata, dict) else {}


def seconds_since_request(shell: Any) -> float | None:
    """Return how long ago the running cell was asked for, None if nobody says.

    For the first cell of a kernel that is when it began, but for what was left of the kernel's start: others may have
    waited for cells before them. The front end may have another clock.
    """
    asked = (_parent(shell).get("header") or {}).get("date")
    psutil = sys.modules.get("psutil")  # ipykernel's
    if not isinstance(asked, datetime) or psutil is None:
        return None
    alive = time.time() - float(psutil.Process().create_time())
    return min(max(time.time() - asked.timestamp(), 0.0), alive)
