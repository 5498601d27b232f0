"""Which names ``from module import *`` binds: those of the loaded module. Nothing is imported to know it."""

from __future__ import annotations

import importlib
import sys

#: The only one that is imported to know its names.
OURS = "det_native"


def star_names(module: str) -> frozenset[str] | None:
    """Return the names that ``from module import *`` binds; None if the module is not loaded."""
    loaded = importlib.import_module(OURS) if module == OURS else sys.modules.get(module)
    if loaded is None:
        return None
    return frozenset(getattr(loaded, "__all__", (name for name in vars(loaded) if not name.startswith("_"))))
