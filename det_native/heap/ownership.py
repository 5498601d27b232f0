"""Whose a class, a function or a module is: the user's, a library's, or det_native's own."""

from __future__ import annotations

import functools
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

#: What a class of det_native has whose objects are treated as those of the user's classes are.
CAN_GO_ON = "_det_can_go_on"
_OURS = ("det_native", "det_harness")


@functools.lru_cache(maxsize=1)
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    own = Path(__file__).resolve().parent.parent
    folders = {str(Path(paths[key]).resolve()) for key in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")}
    return (*sorted(folders), str(own))


@functools.lru_cache(maxsize=4096)
def is_library_file(path: str) -> bool:
    """Whether a file belongs to Python, an installed package (or its commands) or det_native, and not to the user."""
    if path.startswith("<") or "site-packages" in path or "dist-packages" in path:
        return True
    resolved = str(Path(path).resolve())
    return any(resolved.startswith(folder + "/") or resolved == folder for folder in _library_folders())


def is_library_of_ours(name: str | None) -> bool:
    """Whether a module is one of det_native."""
    return (name or "").partition(".")[0] in _OURS


def is_users_module(name: str) -> bool:
    """Whether a module is the notebook, or a file that no package manager has installed."""
    return _is_users_file(name, getattr(sys.modules.get(name), "__file__", None))


def is_namespace(module: types.ModuleType) -> bool:
    """Whether a module is a namespace of the user's: one of their files, or made by a cell and found nowhere else."""
    names = object.__getattribute__(module, "__dict__")
    name = names.get("__name__")
    if type(name) is not str or name == "__main__":
        return False
    is_found = any(names.get(f"__{origin}__") is not None for origin in ("file", "spec", "loader"))
    # What a library makes is beneath its own name.
    own = sys.modules.get(name.partition(".")[0], module) is module and type(module) is types.ModuleType
    return is_users_module(name) or (own and not is_found)


@functools.cache
def _is_users_file(name: str, file: str | None) -> bool:
    return name == "__main__" or (not is_library_of_ours(name) and bool(file) and not is_library_file(file or ""))


def is_users(thing: Any) -> bool:
    """Whether the user wrote a class or a function."""
    name = getattr(thing, "__module__", None)
    return isinstance(name, str) and is_users_module(name)


def is_of_det_native(cls: type) -> bool:
    """Whether objects of a class belong to det_native, and so to their process."""
    name = cls.__module__
    return isinstance(name, str) and is_library_of_ours(name) and not getattr(cls, CAN_GO_ON, False)


def definer_of(cls: type, name: str) -> type | None:
    """Return the class that an attribute of objects of a class comes from; no code of the objects is run."""
    return next((base for base in cls.__mro__ if name in vars(base)), None)


def is_offered(cls: type, *names: str) -> bool:
    """Whether libraries have written all these attributes of a class: asking for them runs no code of the user's."""
    if not all(definer_of(cls, name) for name in names):
        return False
    asked = (definer_of(cls, name) for name in (*names, "__getattribute__", "__torch_function__"))
    return not any(definer is not None and is_users(definer) for definer in asked)
