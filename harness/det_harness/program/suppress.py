"""Keeps back what code prints and shows while it is replayed in the user's own process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def suppressed_output() -> Iterator[None]:
    """Hold what is printed, displayed and drawn inside the block; let it out if the block fails.

    Figures that the block leaves open are closed, so that the notebook does not show them at the end of the cell.
    """
    from IPython.utils.capture import capture_output

    figures = _open_figures()
    with ExitStack() as stack:
        held = stack.enter_context(capture_output())
        try:
            yield
        except Exception:
            stack.close()
            held.show()
            raise
        finally:
            _close_figures(figures)


def _open_figures() -> frozenset[int]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    return frozenset(pyplot.get_fignums()) if pyplot is not None else frozenset()


def _close_figures(before: frozenset[int]) -> None:
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        for number in set(pyplot.get_fignums()) - before:
            pyplot.close(number)
