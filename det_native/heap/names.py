"""The roots of a call: the notebook's names, running functions, the environment, settings of libraries."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

from det_native.heap.edges import BY_NAME, NamedKind

_SHELL = frozenset({"In", "Out", "get_ipython", "exit", "quit", "open", "_", "__", "___", "_oh", "_dh", "_ih"})
_PRINT_OPTION = "print option "


def is_users_name(name: str) -> bool:
    """Whether a name of the namespace is the user's, not the shell's."""
    history = name.startswith("_") and name.removeprefix("_").removeprefix("i").isdigit()
    return name not in _SHELL and not name.startswith("__") and not history


class MappingKind(NamedKind):
    """A mapping of names. The other process may have fewer or more: those are never compared."""

    compared = False

    def __init__(self, is_read: Callable[[str], bool] | None = None) -> None:
        self._is_read = is_read

    def read(self, obj: Any) -> Mapping[Any, Any]:
        return {name: value for name, value in dict(obj).items() if self._is_read is None or self._is_read(name)}

    def write(self, obj: Any, values: Mapping[Any, Any], gone: Sequence[Any]) -> None:
        obj.update(values)
        for name in gone:
            obj.pop(name, None)

    def bound_since(self, obj: Any, children: Sequence[Any], facts: Any) -> set[str]:
        """Return the names that have been bound or deleted since a state was read."""
        before, now, unbound = dict(zip(facts, children, strict=True)), self.read(obj), object()
        return {n for n in before.keys() | now.keys() if before.get(n, unbound) is not now.get(n, unbound)}


class FrameKind(MappingKind):
    """The variables of a running function, those of its closure too."""

    def read(self, obj: FrameType) -> Mapping[Any, Any]:
        return dict(obj.f_locals)

    def write(self, obj: FrameType, values: Mapping[Any, Any], gone: Sequence[Any]) -> None:
        if sys.version_info >= (3, 13):  # what it returns writes through, and deletes nothing
            obj.f_locals.update(values)
            return
        super().write(obj.f_locals, values, gone)
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(obj), ctypes.c_int(1))


class SettingsKind(MappingKind):
    """Settings of libraries that live outside of what names lead to; of libraries that are not imported, none."""

    def read(self, obj: Any) -> Mapping[Any, Any]:
        values: dict[str, Any] = {}
        if numpy := sys.modules.get("numpy"):
            values |= {f"{_PRINT_OPTION}{name}": value for name, value in numpy.get_printoptions().items()}
        if torch := sys.modules.get("torch"):
            values["default dtype"] = torch.get_default_dtype()
        if hooks := sys.modules.get("torch.utils.hooks"):
            values["next hook"] = hooks.RemovableHandle.next_id
        return values

    def write(self, obj: Any, values: Mapping[Any, Any], gone: Sequence[Any]) -> None:
        numpy, torch, hooks = map(sys.modules.get, ("numpy", "torch", "torch.utils.hooks"))
        options = {n.removeprefix(_PRINT_OPTION): v for n, v in values.items() if n.startswith(_PRINT_OPTION)}
        if numpy and options:
            numpy.set_printoptions(**options)
        if torch and "default dtype" in values:
            torch.set_default_dtype(values["default dtype"])
        if hooks and "next hook" in values:
            hooks.RemovableHandle.next_id = max(values["next hook"], hooks.RemovableHandle.next_id)


NAMESPACE, ROOTS, FRAME, SETTINGS = MappingKind(is_users_name), MappingKind(), FrameKind(), SettingsKind()
ENVIRONMENT = BY_NAME["os._Environ"] = MappingKind()
