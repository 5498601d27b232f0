"""The process of TensorBoard: its own program, with what setuptools no longer brings where it asks for that."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def _iter_entry_points(group: str) -> Iterator[Any]:
    for entry in entry_points(group=group):
        yield _Resolvable(entry)


class _Resolvable:
    """An entry point with the verb that setuptools had for loading it."""

    def __init__(self, entry: EntryPoint) -> None:
        self.name = entry.name
        self.resolve = self.load = entry.load


def supply_pkg_resources() -> None:
    """Supply the module by which TensorBoard looks for plugins, if there is none: setuptools 82 has dropped it."""
    if find_spec("pkg_resources") is None:
        module: Any = ModuleType("pkg_resources")
        module.iter_entry_points = _iter_entry_points
        sys.modules["pkg_resources"] = module


if __name__ == "__main__":
    supply_pkg_resources()
    from tensorboard.main import run_main

    run_main()
