"""Tells when a cell asks the operating system for random bytes: what is made of them is made by nobody again.

All that Python draws without a seed comes through one function, of which there are two names: the generators of
``random.SystemRandom``, ``secrets`` and ``uuid``, and the seeds of numpy's own.
"""

from __future__ import annotations

import ast
import linecache
import os
import random
import sys
import threading
from collections import ChainMap
from collections.abc import Callable
from functools import wraps
from itertools import islice
from types import FrameType
from typing import Any

from det_native.heap.edges import full_name

#: What makes a generator of random bytes first, and then, where it is given a seed, another state from that.
_SEEDED_LATER = frozenset({"numpy.random.mtrand.RandomState"})
_STANDARD = os.path.dirname(os.__file__) + os.sep


def listen(tell: Callable[[FrameType | None], object]) -> None:
    """Have each request of the main thread told, with the frame that is not Python's own; cannot be taken back."""
    real = os.urandom

    @wraps(real)
    def urandom(*given: Any, **named: Any) -> bytes:
        if threading.current_thread() is threading.main_thread():
            tell(_asking(sys._getframe(1)))
        return real(*given, **named)

    os.urandom = random._urandom = urandom  # type: ignore[attr-defined]


def _asking(frame: FrameType | None) -> FrameType | None:
    while frame is not None and frame.f_code.co_filename.startswith((_STANDARD, "<frozen")):
        if "site-packages" in frame.f_code.co_filename:
            return frame
        frame = frame.f_back
    return frame


def throws_it_away(frame: FrameType) -> bool:
    """Whether the call that a frame is making is given a seed, so that it does without the bytes that it asks for."""
    call = _call_of(frame)
    try:
        kind = _value_of(call.func, frame) if call is not None else None
        if call is None or not isinstance(kind, type) or full_name(kind) not in _SEEDED_LATER:
            return False
        seeds = [*call.args, *(named.value for named in call.keywords)]
        return bool(seeds) and (isinstance(seeds[0], ast.BinOp) or _value_of(seeds[0], frame) is not None)
    except (LookupError, AttributeError):
        return False


def _call_of(frame: FrameType) -> ast.Call | None:
    """Return the call that a frame is making, from its text; None where that is not known."""
    first, last, begin, end = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    if first is None or last is None or begin is None or end is None:
        return None
    lines = [line.encode() for line in linecache.getlines(frame.f_code.co_filename)[first - 1 : last]]
    if len(lines) != last - first + 1:
        return None
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    try:
        call = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return call if isinstance(call, ast.Call) else None


def _value_of(node: ast.expr, frame: FrameType) -> Any:
    """Return what an expression has that only looks things up; LookupError of any other."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Attribute):
        return getattr(_value_of(node.value, frame), node.attr)
    if isinstance(node, ast.Name):
        return ChainMap(frame.f_locals, frame.f_globals)[node.id]
    raise LookupError
