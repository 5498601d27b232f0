"""Room on the stack for structures of any depth, which pickle and unpickle by recursion."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Bytes of the stack, and the depth that fits into it; the second where memory for the first is refused.
_SIZES = ((512 << 20, 200_000), (64 << 20, 25_000))


def run_with_deep_stack(job: Callable[[], T]) -> T:
    """Run a job with room for structures of any depth; return what it returns."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run(depth: int) -> None:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, depth))
        try:
            results.append(job())
        except BaseException as error:  # noqa: BLE001 (raised again below)
            errors.append(error)
        finally:
            sys.setrecursionlimit(limit)

    for size, depth in _SIZES:
        thread = threading.Thread(target=run, args=(depth,), name="det-native-heap")
        before = threading.stack_size(size)
        try:
            thread.start()
        except RuntimeError:
            if size == _SIZES[-1][0]:
                raise
            continue
        finally:
            threading.stack_size(before)
        thread.join()
        break
    if errors:
        raise errors[0]
    return results[0]
