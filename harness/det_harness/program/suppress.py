"""Keeps back what code prints and shows while it is replayed in the user's own process."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any


@contextmanager
def suppressed_output() -> Iterator[None]:
    """Hold what is printed, displayed and drawn inside the block; let it out if the block fails.

    Figures that the block leaves open are closed, so that the notebook does not show them at the end of the cell.
    """
    figures = _open_figures()
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    with ExitStack() as stack:
        held: Any = _hold_displays(stack) if shell is not None else _hold_streams(stack)
        try:
            yield
        except Exception:
            stack.close()
            held.show()
            raise
        finally:
            _close_figures(figures)


class _Streams:
    """What went to standard output and standard error."""

    def __init__(self) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()

    def show(self) -> None:
        """Print it where it was meant to go."""
        sys.stdout.write(self.out.getvalue())
        sys.stderr.write(self.err.getvalue())


def _hold_streams(stack: ExitStack) -> _Streams:
    held = _Streams()
    stack.enter_context(redirect_stdout(held.out))
    stack.enter_context(redirect_stderr(held.err))
    return held


def _hold_displays(stack: ExitStack) -> Any:
    """Hold what IPython displays, too."""
    from IPython.utils.capture import capture_output

    return stack.enter_context(capture_output())


def _open_figures() -> frozenset[int]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    return frozenset(pyplot.get_fignums()) if pyplot is not None else frozenset()


def _close_figures(before: frozenset[int]) -> None:
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        for number in set(pyplot.get_fignums()) - before:
            pyplot.close(number)
