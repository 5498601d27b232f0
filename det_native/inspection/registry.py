"""Finds the adapter of a class by its name, and by those of the classes that it is derived from; imports no library."""

from __future__ import annotations

import weakref
from importlib import import_module

from det_native.inspection.adapter import Adapter, Ending, Library

_OURS = "det_native.inspection.libraries"
#: Modules of the standard library that have classes of which something is known.
_STANDARD = (
    *("_abc", "_collections", "_contextvars", "_io", "_socket", "_thread", "asyncio", "builtins", "io", "itertools"),
    *("mmap", "multiprocessing", "queue", "random", "socket", "sqlite3", "subprocess", "threading"),
)
#: The file of each library, by the package that its classes say they are of.
LIBRARIES: dict[str, str] = {
    "det_native": f"{_OURS}.det_native",
    "numpy": f"{_OURS}.numpy",
    "pandas": f"{_OURS}.pandas",
    "torch": f"{_OURS}.torch",
    "tensorflow": f"{_OURS}.tensorflow",
    "keras": f"{_OURS}.keras",
    "tf_keras": f"{_OURS}.keras",
    "polars": f"{_OURS}.polars",
    "pyarrow": f"{_OURS}.pyarrow",
    "scipy": f"{_OURS}.scipy",
    "sklearn": f"{_OURS}.sklearn",
    "matplotlib": f"{_OURS}.matplotlib",
    "PIL": f"{_OURS}.pillow",
    "jax": f"{_OURS}.jax",
    "jaxlib": f"{_OURS}.jax",
    "traitlets": f"{_OURS}.traitlets",
    **dict.fromkeys(_STANDARD, f"{_OURS}.standard"),
}

#: Classes with this attribute stand for something elsewhere, and change with it: our handles of experiments.
_KNOWN_BY_IDENTITY = "_det_known_by_identity"
_HANDLE = Ending()

_known: weakref.WeakKeyDictionary[type, Adapter | None] = weakref.WeakKeyDictionary()


def library_of(package: str) -> Library | None:
    """Return what is known of a library; None of one that has no file here.

    Parameters
    ----------
    package : str
        The first part of its modules' names.
    """
    file = LIBRARIES.get(package)
    if file is None:
        return None
    library: Library = import_module(file).LIBRARY
    return library


def adapter_of(kind: type) -> Adapter | None:
    """Return the adapter of a class, or of the nearest class that it is derived from.

    Returns
    -------
    Adapter or None
        None of a class that is unknown here: who reads its objects says so where they tell nothing of themselves.
    """
    try:
        return _known[kind]
    except KeyError:
        found = _known[kind] = _sought(kind)
        return found
    except TypeError:  # its metaclass has no hash
        return _sought(kind)


def is_derived(kind: type) -> bool:
    """Whether a class is of somebody else than those that are known here: its objects may keep more than these do."""
    return _library_of(kind) is None


def _sought(kind: type) -> Adapter | None:
    bases = kind.__mro__
    if any(_KNOWN_BY_IDENTITY in base.__dict__ for base in bases):
        return _HANDLE
    adapters = [*map(_of_class, bases), *map(_of_package, bases)]
    return next((adapter for adapter in adapters if adapter is not None), None)


def _of_class(kind: type) -> Adapter | None:
    library = _library_of(kind)
    if library is None:
        return None
    parts = kind.__module__.split(".")
    names = (".".join([*parts[:length], kind.__qualname__]) for length in range(len(parts), 0, -1))
    return next((library.classes[name] for name in names if name in library.classes), None)


def _of_package(kind: type) -> Adapter | None:
    library = _library_of(kind)
    return None if library is None else library.others


def _library_of(kind: type) -> Library | None:
    module = kind.__module__  # which may be anything where a class says so
    return library_of(module.partition(".")[0]) if isinstance(module, str) else None
