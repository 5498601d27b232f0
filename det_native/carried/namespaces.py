"""Where names have their values: the globals of a cell or a module, the variables of a running function."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any

#: Stands for the variables of the function that the loop is in.
LOCAL = "the function"
#: What IPython keeps of former cells, and gives every notebook.
_OF_IPYTHON = frozenset({"In", "Out", "_", "__", "___", "get_ipython", "exit", "quit"})


class Namespace:
    """Names with values, which may be set from outside.

    Parameters
    ----------
    names : dict of str
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names

    def values(self) -> Mapping[str, Any]:
        """Return the present values by name."""
        return self._names

    def put(self, values: Mapping[str, Any], gone: Iterable[str] = ()) -> None:
        """Bind names, and delete others."""
        self._names.update(values)
        for name in gone:
            self._names.pop(name, None)


class FunctionNames(Namespace):
    """The variables of a running function, those of its closure too.

    Parameters
    ----------
    frame : frame
    """

    def __init__(self, frame: FrameType) -> None:
        super().__init__({})
        self._frame = frame

    def values(self) -> Mapping[str, Any]:
        """Return the present values by name."""
        return dict(self._frame.f_locals)

    def put(self, values: Mapping[str, Any], gone: Iterable[str] = ()) -> None:
        """Bind variables, and delete others."""
        several = self._frame.f_locals
        several.update(values)
        if sys.version_info >= (3, 13):  # what it returns writes through, but deletes nothing
            return
        for name in gone:
            several.pop(name, None)
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(self._frame), ctypes.c_int(1))


def is_users(name: str) -> bool:
    """Whether a name of a namespace is the user's, and not Python's or IPython's."""
    return name not in _OF_IPYTHON and not name.startswith("__") and not (name[:1] == "_" and name[1:].isdigit())
