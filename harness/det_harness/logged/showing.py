"""What a notebook would show, on a worker: kept as a picture or a table of the trial, or printed."""

from __future__ import annotations

import os
import sys
import uuid
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
    finder = _Finder()
    loaded = [module for name in (_DEFINED_IN, _IMPORTED_FROM) if (module := _loaded(name))]
    before = [(module, {ours.__name__: vars(module).get(ours.__name__) for ours in _OURS}) for module in loaded]
    for module in loaded:
        _replace(module)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for module, functions in before:
            vars(module).update(functions)


def _replace(module: ModuleType) -> None:
    vars(module).update({ours.__name__: ours for ours in _OURS})


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
        """Run the module, and replace its functions."""
        self._loader.exec_module(module)
        _replace(module)
