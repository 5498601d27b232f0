"""What a notebook would show, on a worker: kept as a picture or a table of the trial, or printed."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any

from det_native.capture.first_imports import first_imports
from det_native.logged.place import taker_or_none

_VARIABLE = "MPLBACKEND"
_BACKEND = "module://det_harness.logged.backend"
# Where IPython has its function, and from where it is imported.
_DEFINED_IN, _IMPORTED_FROM = "IPython.core.display_functions", "IPython.display"


def figures_kept() -> None:
    """Have matplotlib keep the figures that ``plt.show()`` shows, unless the user has chosen how they are shown."""
    if os.environ.get(_VARIABLE):
        return
    os.environ[_VARIABLE] = _BACKEND  # of what the training starts, too
    matplotlib = sys.modules.get("matplotlib")
    if matplotlib is None:
        return
    chosen = dict.__getitem__(matplotlib.rcParams, "backend")  # its own way chooses one
    if not isinstance(chosen, str):
        matplotlib.use(_BACKEND)


class Handle:
    """What ``display(..., display_id=...)`` gives: what it shows later is kept as well."""

    def __init__(self, display_id: Any) -> None:
        self.display_id = display_id

    def display(self, shown: Any, **options: Any) -> None:
        """Show an object."""
        display(shown, display_id=self.display_id)

    def update(self, shown: Any, **options: Any) -> None:
        """Show another object in its place."""
        update_display(shown, display_id=self.display_id)


def display(*objects: Any, display_id: Any = None, update: bool = False, **options: Any) -> Handle | None:
    """Keep what can be shown as a picture or a table; print the rest, as IPython does where nothing shows."""
    taker = taker_or_none()
    name = "" if display_id is None else uuid.uuid4().hex if display_id is True else str(display_id)
    for shown in objects:
        if taker is None or not taker.show(shown, name, update=update):
            print(repr(shown))
    return Handle(name) if name else None


def update_display(shown: Any, *, display_id: Any, **options: Any) -> None:
    """Show an object in the place of another."""
    display(shown, display_id=display_id, update=True)


def clear_output(wait: bool = False) -> None:
    """Clear the output of the cell that waits, once there is more to show."""
    if (taker := taker_or_none()) is not None:
        taker.clear_output()


_OURS = (display, update_display, clear_output)


@contextmanager
def ipythons_display() -> Iterator[None]:
    """Have ``IPython.display.display`` and its like be ours in the block, also where they are imported in it."""
    before: list[tuple[ModuleType, dict[str, Any]]] = []
    is_over = False

    def replace(name: str) -> None:
        module = sys.modules.get(name)
        if module is not None and "display" in vars(module) and not is_over:
            before.append((module, {ours.__name__: vars(module).get(ours.__name__) for ours in _OURS}))
            vars(module).update({ours.__name__: ours for ours in _OURS})

    first_imports.call_after(_DEFINED_IN, partial(replace, _DEFINED_IN))
    replace(_DEFINED_IN)
    replace(_IMPORTED_FROM)
    try:
        yield
    finally:
        is_over = True
        for module, functions in before:
            vars(module).update(functions)
