"""Code that is nested deeper than Python's own tools can read: told by its cell or file, as all that cannot be sent."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from det_native.capture.transform import TOO_DEEP
from det_native.errors import CaptureError, Problem

#: Above the problems of a call that cannot be captured.
HEADLINE = "The call cannot be sent as it stands:"
#: Raised for a file that is not Python; MemoryError where the code is nested deeper than the parser can follow.
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
_REMEDY = "Split the longest expression: each operator of a chain (a + b + c ...) is a level, and 300 levels are read."


@contextmanager
def refusing_deep_code(sources: Callable[[], Iterable[tuple[str, str]]]) -> Iterator[None]:
    """Tell, in place of Python's ``RecursionError``, which piece of source cannot be read.

    Parameters
    ----------
    sources : callable
        Gives the pieces of source that are read, each with what messages call it.

    Raises
    ------
    CaptureError
    """
    try:
        yield
    except RecursionError:
        _, label = max((depth_of(source), label) for source, label in sources())
        raise CaptureError(HEADLINE, [Problem(label, f"{TOO_DEEP}.", _REMEDY)]) from None


def not_python(file: str, error: BaseException) -> Problem:
    """Return what is wrong with a file by an error among ``NOT_PYTHON``."""
    if isinstance(error, RecursionError | MemoryError):
        return Problem(file, f"{TOO_DEEP}.", _REMEDY)
    return Problem(file, f"cannot be read as Python: {error}.", "Fix the file.")


def depth_of(source: str) -> float:
    """Return how deeply a piece of source is nested: infinitely, where the parser gives up; 0 if not valid."""
    try:
        level: list[ast.AST] = [ast.parse(source)]
    except (RecursionError, MemoryError):
        return float("inf")
    except (SyntaxError, ValueError):
        return 0
    depth = 0
    while level := [child for node in level for child in ast.iter_child_nodes(node)]:
        depth += 1
    return depth
