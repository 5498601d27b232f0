"""What a notebook would show, on a worker: kept as a picture or a table of the trial, or printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

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
        display(shown)

    def update(self, shown: Any, **options: Any) -> None:
        """Show another object in its place."""
        display(shown)


def display(*objects: Any, display_id: Any = None, **options: Any) -> Handle | None:
    """Keep what can be shown as a picture or a table; print the rest, as IPython does where nothing shows."""
    taker = taker_or_none()
    for shown in objects:
        if taker is None or not taker.show(shown):
            print(repr(shown))
    return None if display_id is None else Handle(display_id)


@contextmanager
def ipythons_display() -> Iterator[None]:
    """Have ``IPython.display.display`` be :func:`display` in the block, also where it is imported in it."""
    finder = _Finder()
    before = {name: vars(module)["display"] for name in (_DEFINED_IN, _IMPORTED_FROM) if (module := _loaded(name))}
    for name in before:
        sys.modules[name].display = display  # type: ignore[attr-defined]
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name, function in before.items():
            sys.modules[name].display = function  # type: ignore[attr-defined]


def _loaded(name: str) -> ModuleType | None:
    module = sys.modules.get(name)
    return module if module is not None and "display" in vars(module) else None


class _Finder(MetaPathFinder):
    """Finds one module of IPython where Python finds it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of that module, None for every other name."""
        if fullname != _DEFINED_IN:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """Loads the module, and puts our function into it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Make the module as it is made without us."""
        return self._loader.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, and replace its function."""
        self._loader.exec_module(module)
        module.display = display  # type: ignore[attr-defined]
