"""Tells when a module has been imported for the first time, how long imports take, and what they draw.

A finder stands first in ``sys.meta_path``. Of a module that nobody waits for, within the import of another one, it
finds nothing, at the cost of one look into a dictionary; of others it returns what the finders after it find, with a
loader that tells.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Protocol

from det_native.process.streams import current_streams


class _TellingLoader(Loader):
    """Does what a loader does, and tells when it has executed its module; that has the loader itself by then."""

    def __init__(
        self, loader: Any, begin: Callable[[], None], tell: Callable[[], None], end: Callable[[], None]
    ) -> None:
        self._loader = loader
        self._begin = begin
        self._tell = tell
        self._end = end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # whoever has asked for a spec may ask for its file, its source and so on

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module that the loader makes; None where it leaves that to the import system."""
        create = getattr(self._loader, "create_module", None)
        made: ModuleType | None = create(spec) if create is not None else None
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Have the loader execute the module, then tell; a module that fails is told of the next time."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._begin()
        try:
            self._loader.exec_module(module)
            self._tell()
        finally:
            self._end()


class FirstImports(MetaPathFinder):
    """Calls what waits for a module, once that has been imported.

    Attributes
    ----------
    seconds : float
        How long the imports of the thread that called :meth:`measure` have taken since.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._thread: int | None = None  # whose imports are measured
        self._outermost = ""  # the module that it imports
        self._began = 0.0
        self._waiting: dict[str, list[Callable[[], None]]] = {}
        self._preparing: dict[str, list[Callable[[], None]]] = {}

    def measure(self) -> None:
        """Measure from now on how long the imports of this thread take."""
        self._thread = threading.get_ident()
        self._stand_first()

    def _stand_first(self) -> None:
        if self not in sys.meta_path:
            # It stays, idle, when all have been imported: the list may be gone through just then.
            sys.meta_path.insert(0, self)

    def call_around(self, module: str, before: Callable[[], None], after: Callable[[], None]) -> None:
        """Call `before` as the first import of a module begins and `after` as it ends; see :meth:`call_after`."""
        if module not in sys.modules:
            self._preparing.setdefault(module, []).append(before)
            self.call_after(module, after)

    def call_after(self, module: str, action: Callable[[], None]) -> None:
        """Call `action` as soon as a module has been imported that is not loaded yet; an error of it is nobody's.

        Parameters
        ----------
        module : str
            Full name; of one that is loaded nothing is told.
        """
        if module in sys.modules:
            return
        self._waiting.setdefault(module, []).append(action)
        self._stand_first()

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec that the finders after this one find, for a module that somebody waits for, or measures."""
        if name not in self._waiting and (self._outermost or threading.get_ident() != self._thread):
            return None
        finders = sys.meta_path[sys.meta_path.index(self) + 1 :] if self in sys.meta_path else []
        for finder in finders:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find is not None else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    steps = (partial(self._begun, name), partial(self._imported, name), partial(self._ended, name))
                    spec.loader = _TellingLoader(spec.loader, *steps)
                return spec
        return None

    def _begun(self, name: str) -> None:
        if not self._outermost and threading.get_ident() == self._thread:
            self._outermost, self._began = name, time.perf_counter()
        for action in self._preparing.get(name, ()):
            with suppress(Exception):
                action()

    def _imported(self, name: str) -> None:
        self._preparing.pop(name, None)
        for action in self._waiting.pop(name, ()):
            with suppress(Exception):  # it would be an error of the user's import
                action()

    def _ended(self, name: str) -> None:
        if name == self._outermost and threading.get_ident() == self._thread:
            self._outermost = ""
            self.seconds += time.perf_counter() - self._began


first_imports = FirstImports()


class _Seen(Protocol):
    streams: dict[str, Any] | None


class ImportDraws:
    """Has the streams of the running cell begin after the import of a framework, where the cell itself has not drawn.

    TensorFlow 2.21 draws from numpy's stream while it is imported.

    Parameters
    ----------
    running : callable
        Gives what was seen of the execution that runs, None if none does.
    """

    def __init__(self, running: Callable[[], _Seen | None]) -> None:
        self._running = running
        self._untouched: set[str] = set()

    def begin(self) -> None:
        """The import begins: note which streams are where the cell found them, or are not there yet."""
        seen = self._running()
        noted = seen.streams if seen is not None else None
        if noted is not None:
            now = current_streams()
            self._untouched = {name for name in ("python", "numpy") if now.get(name) == noted.get(name)}

    def end(self) -> None:
        """The import has ended: what it has drawn is not the cell's."""
        seen = self._running()
        if seen is not None and seen.streams is not None:
            now = current_streams()
            seen.streams |= {name: now[name] for name in self._untouched if name in now}
        self._untouched = set()
