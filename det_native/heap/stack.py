"""Room on the stack for structures of any depth, which pickle and unpickle by recursion."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_DEPTH = 200_000
_STACK = 512 << 20


def run_with_deep_stack(job: Callable[[], T]) -> T:
    """Run a job with room for structures of any depth; return what it returns."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _DEPTH))
        try:
            results.append(job())
        except BaseException as error:  # noqa: BLE001 (raised again below)
            errors.append(error)
        finally:
            sys.setrecursionlimit(limit)

    before = threading.stack_size(_STACK)
    try:
        thread = threading.Thread(target=run, name="det-native-heap")
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
