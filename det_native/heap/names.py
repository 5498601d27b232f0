"""What has names: the notebook, running functions, the environment, modules, classes. Only names that differ travel."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

from det_native.heap.edges import BY_NAME, OF_DET_NATIVE, Difference, Kind, Left, State, is_same_child, kind_of

_SHELL = frozenset({"In", "Out", "get_ipython", "exit", "quit", "open", "_", "__", "___", "_oh", "_dh", "_ih"})


def is_users_name(name: str) -> bool:
    """Whether a name of the namespace is the user's, not the shell's."""
    history = name.startswith("_") and name.removeprefix("_").removeprefix("i").isdigit()
    return name not in _SHELL and not name.startswith("__") and not history


class NamesKind(Kind):
    """What binds names to values. The other process may have fewer names or more: those are never compared."""

    def names(self, obj: Any) -> Mapping[str, Any]:
        """Return the values by name."""
        raise NotImplementedError

    def bind(self, obj: Any, values: Mapping[str, Any], gone: Sequence[str]) -> None:
        """Bind some names, and delete others."""
        raise NotImplementedError

    def others(self, obj: Any) -> Sequence[Any]:
        """Return what is held without a name: it can be reached, and is never written."""
        return ()

    def step(self, label: Any) -> str:
        return f".{label}" if isinstance(label, str) else ""

    def take(self, obj: Any) -> State:
        names = self.names(obj)
        return [*names.values(), *self.others(obj)], (*names,)

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return [*facts, *(("other", place) for place in range(len(children) - len(facts)))]

    def difference(self, obj: Any, before: State | None, now: State, renewed: Callable[[Any], bool]) -> Difference:
        held = dict(zip(before[1], before[0], strict=False)) if before else {}
        values = {
            name: value
            for name, value in zip(now[1], now[0], strict=False)
            if name not in held or not is_same_child(held[name], value) or renewed(value)
        }
        names = frozenset(now[1])
        return [*values.values()], (*values,), [name for name in held if name not in names]

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        values = {name: value for name, value in zip(facts, children, strict=True) if not isinstance(value, Left)}
        ours = {name for name, value in self.names(obj).items() if kind_of(value) is OF_DET_NATIVE}
        values = {name: value for name, value in values.items() if name not in ours}
        self.bind(obj, values, [name for name in content if name not in ours])

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        return ""

    def bound_since(self, obj: Any, children: Sequence[Any], facts: Any) -> set[str]:
        """Return the names that have been bound or deleted since a state was taken."""
        before, now = dict(zip(facts, children, strict=False)), self.names(obj)
        both = before.keys() & now.keys()
        return {name for name in before.keys() | now.keys() if name not in both or before[name] is not now[name]}


class NamespaceKind(NamesKind):
    """The notebook's names."""

    def names(self, obj: dict[str, Any]) -> Mapping[str, Any]:
        return {name: value for name, value in obj.items() if is_users_name(name)}

    def bind(self, obj: dict[str, Any], values: Mapping[str, Any], gone: Sequence[str]) -> None:
        obj.update(values)
        for name in gone:
            obj.pop(name, None)


class FrameKind(NamesKind):
    """The variables of a running function, those of its closure too."""

    def names(self, obj: FrameType) -> Mapping[str, Any]:
        return dict(obj.f_locals)

    def bind(self, obj: FrameType, values: Mapping[str, Any], gone: Sequence[str]) -> None:
        variables = obj.f_locals
        variables.update(values)
        if sys.version_info >= (3, 13):  # what it returns writes through, and deletes nothing
            return
        for name in gone:
            variables.pop(name, None)
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(obj), ctypes.c_int(1))


class EnvironmentKind(NamesKind):
    """The variables of ``os.environ``: what is as it was never travels."""

    def names(self, obj: Any) -> Mapping[str, Any]:
        return dict(os.environ)

    def bind(self, obj: Any, values: Mapping[str, Any], gone: Sequence[str]) -> None:
        os.environ.update(values)
        for name in gone:
            os.environ.pop(name, None)


class SettingsKind(NamesKind):
    """Settings of libraries that live outside of what names lead to; of libraries that are not imported, none."""

    def names(self, obj: Any) -> Mapping[str, Any]:
        return {name: value for library in _SETTINGS for name, value in _read(library).items()}

    def bind(self, obj: Any, values: Mapping[str, Any], gone: Sequence[str]) -> None:
        for library, write in _SETTINGS.items():
            if library in sys.modules:
                write(sys.modules[library], {**_read(library), **values})


def _read(library: str) -> dict[str, Any]:
    module = sys.modules.get(library)
    if module is None:
        return {}
    if library == "numpy":
        return {f"print option {name}": value for name, value in module.get_printoptions().items()}
    if library == "torch":
        return {"default dtype": module.get_default_dtype()}
    return {"next hook": module.RemovableHandle.next_id}


def _write_numpy(numpy: Any, values: Mapping[str, Any]) -> None:
    prefix = "print option "
    numpy.set_printoptions(**{name.removeprefix(prefix): v for name, v in values.items() if name.startswith(prefix)})


def _write_torch(torch: Any, values: Mapping[str, Any]) -> None:
    torch.set_default_dtype(values["default dtype"])


def _write_hooks(hooks: Any, values: Mapping[str, Any]) -> None:
    hooks.RemovableHandle.next_id = max(values["next hook"], hooks.RemovableHandle.next_id)


_SETTINGS = {"numpy": _write_numpy, "torch": _write_torch, "torch.utils.hooks": _write_hooks}


class RootsKind(NamesKind):
    """What everything is reached from, or what a call is given."""

    def names(self, obj: dict[str, Any]) -> Mapping[str, Any]:
        return obj

    def bind(self, obj: dict[str, Any], values: Mapping[str, Any], gone: Sequence[str]) -> None:
        obj.update(values)


NAMESPACE, FRAME, ROOTS = NamespaceKind(), FrameKind(), RootsKind()
ENVIRONMENT, SETTINGS = EnvironmentKind(), SettingsKind()
BY_NAME["os._Environ"] = ENVIRONMENT
