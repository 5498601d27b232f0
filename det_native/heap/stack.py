"""Room on the stack for structures of any depth, which pickle and unpickle by recursion."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

#: Bytes of the stack, and the depth that fits into it; the second where memory for the first is refused.
_SIZES = ((512 << 20, 200_000), (64 << 20, 25_000))


def run_with_deep_stack(job: Callable[[], T]) -> T:
    """Run a job with room for structures of any depth; return what it returns."""
    result: Future[T] = Future()

    def run(depth: int) -> None:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, depth))
        try:
            result.set_result(job())
        except BaseException as error:  # noqa: BLE001 (raised again by result())
            result.set_exception(error)
        finally:
            sys.setrecursionlimit(limit)

    for size, depth in _SIZES:
        before = threading.stack_size(size)
        try:
            threading.Thread(target=run, args=(depth,), name="det-native-heap").start()
            break
        except RuntimeError:
            if size == _SIZES[-1][0]:
                raise
        finally:
            threading.stack_size(before)
    return result.result()
