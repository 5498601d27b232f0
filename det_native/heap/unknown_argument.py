"""What to do about an argument that a function of a library does not take: it may have been removed, or be new."""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
import re
import sys
from types import FrameType, TracebackType
from typing import Any

from det_native.heap.ownership import is_users, is_users_module

_UNKNOWN = re.compile(r"got an unexpected keyword argument '(\w+)'")

_SHOWN = 15


def argument_advice(error: BaseException | None) -> str | None:
    """Return which arguments a function takes that the user's code has given another one; None for other errors."""
    found = _UNKNOWN.search(str(error)) if type(error) is TypeError else None
    trace = None if error is None else error.__traceback__
    if found is None or trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    function = _called(trace) if is_users_module(str(trace.tb_frame.f_globals.get("__name__"))) else None
    if function is None or is_users(function):
        return None
    try:
        takes = [name for name in inspect.signature(function).parameters if name != "self"]
    except (TypeError, ValueError):
        return None
    package = str(function.__module__).partition(".")[0]
    version = getattr(sys.modules.get(package), "__version__", "")
    return (
        f"{function.__qualname__}() of {f'{package} {version}'.strip()} does not take {found[1]}, which other versions "
        f"may: leave it out, or use what it takes ({', '.join([*takes[:_SHOWN], *['...'][: len(takes) - _SHOWN]])})."
    )


def _called(trace: TracebackType) -> Any:
    """Return the function or class that the running call of a frame names; no code of the user's runs for it."""
    frame = trace.tb_frame
    positions = next(itertools.islice(frame.f_code.co_positions(), trace.tb_lasti // 2, None))
    first, last, begin, end = positions
    if first is None or last is None or begin is None or end is None:
        return None
    lines = [linecache.getline(frame.f_code.co_filename, line).encode() for line in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    try:
        call = ast.parse(b"".join(lines), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return _value(call.func, frame) if isinstance(call, ast.Call) else None


def _value(expression: ast.expr, frame: FrameType) -> Any:
    if isinstance(expression, ast.Name):
        return frame.f_locals.get(expression.id, frame.f_globals.get(expression.id))
    if isinstance(expression, ast.Attribute):
        owner = _value(expression.value, frame)
        # Modules of libraries may make what they name when it is asked for.
        is_of_library = inspect.ismodule(owner) and not is_users_module(owner.__name__)
        return (getattr if is_of_library else inspect.getattr_static)(owner, expression.attr, None)
    return None
