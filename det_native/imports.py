"""Imports of much at once: Python's garbage collector waits meanwhile, which takes up to a quarter of their time.

What a module defines stays. The collector does not know that, and searches all of it again and again while it grows.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

_frozen = False


@contextmanager
def collector_waits() -> Iterator[None]:
    """Collect no garbage in the block; whoever has turned the collector off finds it so after the block."""
    if not gc.isenabled():
        yield
        return
    gc.collect(1)  # what is garbage already does not wait
    gc.disable()
    try:
        yield
    finally:
        _grow_old()
        gc.enable()


def freeze() -> None:
    """Have what there is now stay, as long as this process lives: no collection searches it."""
    global _frozen
    gc.freeze()
    _frozen = True


def _grow_old() -> None:
    """Count all objects as old without searching them, which is left to the next full collection."""
    # The user's own frozen objects stay so, and ours; to count ours would take as long as an import.
    if not _frozen and not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


def load(module: str) -> ModuleType:
    """Return a module, imported while the garbage collector waits if it is not there yet.

    Parameters
    ----------
    module : str
        Its full name.
    """
    if module in sys.modules:
        return import_module(module)
    with collector_waits():
        return import_module(module)


class Later:
    """A module that is imported when something of it is asked for.

    Parameters
    ----------
    module : str
        Its full name.
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)


def load_optimizers() -> None:
    """Import what PyTorch's first optimizer imports, the larger half of a cold start, while the collector waits."""
    load("torch._dynamo")
