"""Modules of context directories, imported here by name (``"model_def:MyTrial"``).

Each directory of Determined has a ``model_def``. What an earlier call has imported is imported anew for another
directory, and after an edit; what the user has imported is left alone.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

from det_native.experimental.directory import WorkingDirectory
from det_native.imports import load

_State = tuple[int, int]
#: What calls have imported: the file of each module, and how it was then.
_imported: dict[str, tuple[Path, _State | None]] = {}


def import_from(folder: Path | None, name: str) -> ModuleType:
    """Import a module with a context directory as working directory; code that imports `determined` gets det_native.

    Parameters
    ----------
    folder : Path or None
    name : str
    """
    load("det_native.compat")
    if folder is None:
        return importlib.import_module(name)
    if any(folder not in file.parents or _state(file) != state for file, state in _imported.values()):
        for known, (file, _) in _imported.items():
            if _file(sys.modules.get(known)) == file:
                del sys.modules[known]
        _imported.clear()
    importlib.invalidate_caches()  # the module may be a moment old
    before = set(sys.modules)
    try:
        with WorkingDirectory().inside(folder):
            return importlib.import_module(name)
    finally:
        for new in set(sys.modules) - before:
            made = _file(sys.modules.get(new))
            if made is not None and folder in made.parents:
                _imported[new] = (made, _state(made))


def _file(module: ModuleType | None) -> Path | None:
    name = getattr(module, "__file__", None)
    return Path(name) if name else None


def _state(file: Path) -> _State | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
