"""Documented names of the API that this version of det_native does not support."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Never

from det_native.errors import UnsupportedFeatureError


class UnsupportedNameError(UnsupportedFeatureError, ImportError):
    """A documented name that this version does not have yet; raised on its import or use."""


def unsupported_names(module: str, names: Collection[str], *, remedy: str = "") -> Callable[[str], Never]:
    """Make the ``__getattr__`` of a module for names that are not there yet.

    Parameters
    ----------
    module : str
        Name of the module.
    names : collection of str
        Documented names that will come.
    remedy : str
        A sentence on what to use until then.

    Returns
    -------
    callable
        Raises UnsupportedNameError for `names`, AttributeError for any other name.
    """

    def missing(name: str) -> Never:
        if name in names:
            sentence = f"{module}.{name} comes with a later version of det_native."
            raise UnsupportedNameError(f"{sentence} {remedy}".rstrip())
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return missing
