"""Whose is it? The one rule by which everything else asks."""

from __future__ import annotations

import functools
import site
import sys
import sysconfig

_LIBRARIES = tuple(
    {*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()} - {sys.prefix, sys.base_prefix}
)
_PARTS = ("/site-packages/", "/dist-packages/")

#: Packages whose objects belong to the process although they are installed from a checkout.
OURS: set[str] = {"det_native", "det_harness"}


@functools.lru_cache(maxsize=None)
def is_users_module(name: str | None) -> bool:
    """Whether a module is the user's: the notebook itself, or a file that no package manager has put in place."""
    if not name or name == "builtins" or name.partition(".")[0] in OURS:
        return False
    if name == "__main__":
        return True
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if not file:
        return False
    return not (file.startswith(_LIBRARIES) or any(part in file for part in _PARTS))


def is_users(thing: object) -> bool:
    """Whether a class or a function is written by the user."""
    name = getattr(thing, "__module__", None)
    return is_users_module(name if isinstance(name, str) else None)
