"""Tells when a cell asks the operating system for random bytes: what is made of them is made by nobody again.

All that Python draws without a seed comes through one function, of which there are two names: the generators of
``random.SystemRandom``, ``secrets`` and ``uuid``, and the seeds of numpy's own.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any

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
