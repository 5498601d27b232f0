"""Models of a program that has run again, as objects of the classes that this process has: those of the notebook.

``isinstance(loaded, Net)`` holds then, and ``torch.save(loaded)`` finds the class. A class or a function is replaced by
another one of its name that does the same: its code, and all that its code looks up, are equal. If any of a model is
another one by now, or is not here, the model stays what it was when it was trained, all of it: half of it would compare
its own members of an enumeration with those of the other half.
"""

from __future__ import annotations

import functools
import io
import pickle
import sys
import types
from typing import Any

import torch

from det_harness.frameworks.torch.copies import ModelCopy
from det_native.heap.kinds.functions import global_names
from det_native.heap.ownership import is_users_module
from det_native.pytorch import PyTorchTrialContext

_CODE = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags", "co_consts")
_COUNTS = ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount")
#: Functions by which code looks up names that it puts together.
_LOOKING_UP = frozenset({"globals", "locals", "vars", "eval"})
#: Classes of objects that are nothing but a few others.
_MADE_OF: dict[type, tuple[str, ...]] = {
    types.MethodType: ("__func__", "__self__"),
    functools.partial: ("func", "args", "keywords", "__dict__"),
    types.CellType: ("cell_contents",),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
}
# What Python keeps in a class besides what its statement says.
_OF_ALL_CLASSES = frozenset(
    {
        *("__dict__", "__weakref__", "__module__", "__annotations__", "__annotate_func__", "__annotations_cache__"),
        *("__firstlineno__", "__static_attributes__", "_abc_impl"),
    }
)


def at_home(models: list[torch.nn.Module]) -> list[torch.nn.Module]:
    """Return models with the classes of this process where it has the same; their tensors are the same ones.

    Parameters
    ----------
    models : list of torch.nn.Module
        Nobody else has them.
    """
    try:
        moved: list[torch.nn.Module] = _Moved().of(models)
    except Exception:  # noqa: BLE001 (the user's classes may raise anything)
        return models
    return moved


class _Moved(ModelCopy):
    """A copy with other classes, whose original is not used any more."""

    def definition(self, value: Any) -> Any:
        """Return the same definition of this process; LookupError is raised if it does not have it."""
        here = _of_its_name(value)
        if here is value or (here is None and _is_of_this_process(value)):
            return value
        if here is None or _Definitions(value).described() != _Definitions(here).described():
            raise LookupError(value.__qualname__)
        return here

    def tensor(self, value: torch.Tensor) -> torch.Tensor:
        """Return the tensor itself."""
        return value if value.is_leaf else super().tensor(value)


def _of_its_name(value: Any) -> Any:
    owner: Any = sys.modules.get(value.__module__ or "")
    for name in value.__qualname__.split("."):
        owner = getattr(owner, name, None)
    return owner


def _is_of_this_process(value: Any) -> bool:
    """Return whether a definition that its module does not name (within a function, or in C) is of the module here."""
    functions = [value] if isinstance(value, types.FunctionType) else vars(value).values()
    names = getattr(sys.modules.get(value.__module__ or ""), "__dict__", None)
    return all(one.__globals__ is names for one in functions if isinstance(one, types.FunctionType))


class _Definitions(pickle.Pickler):
    """Describes a class or a function, and all that its code looks up, but not on which lines they stand."""

    def __init__(self, definition: Any) -> None:
        self._into = io.BytesIO()
        super().__init__(self._into, protocol=4)
        self.fast = True  # what is equal is written alike, whether it is one object or several
        self._module = definition.__module__
        self._found = [definition]
        self._places = {id(definition): 0}

    def described(self) -> bytes:
        """Return the description."""
        for definition in self._found:  # which grows meanwhile
            self.dump(self._parts(definition))
        return self._into.getvalue()

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, types.ModuleType):
            return value.__name__
        if not isinstance(value, type | types.FunctionType) or not self._is_read(value):
            return None
        if id(value) not in self._places:
            self._places[id(value)] = len(self._found)
            self._found.append(value)
        return self._places[id(value)]

    def _is_read(self, value: Any) -> bool:
        own = value.__module__ == self._module or is_users_module(value.__module__ or "")
        return own or _of_its_name(value) is not value

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, types.CodeType):
            return _read, tuple(getattr(value, name) for name in (*_COUNTS, *_CODE))
        if isinstance(value, torch.Tensor):
            return _read, (str(value.dtype), value.shape, value.tolist())
        if isinstance(value, PyTorchTrialContext):
            return _read, (value.get_hparams(),)
        if isinstance(value, types.MappingProxyType):
            return _read, (dict(value),)
        if isinstance(value, types.MemberDescriptorType):
            return _read, (value.__name__,)
        names = next((_MADE_OF[base] for base in type(value).__mro__ if base in _MADE_OF), None)
        return NotImplemented if names is None else (_read, (type(value).__name__, *_parts_named(value, names)))

    def _parts(self, value: Any) -> tuple[Any, ...]:
        own = vars(value)
        if isinstance(value, type):
            members = {name: member for name, member in own.items() if name not in _OF_ALL_CLASSES}
            return value.__module__, value.__qualname__, type(value), value.__bases__, members
        names = sorted(global_names(value.__code__))
        if not _LOOKING_UP.isdisjoint(names):
            raise LookupError(value.__qualname__)  # which names it looks up is not known
        read = {name: value.__globals__[name] for name in names if name in value.__globals__}
        return value.__code__, value.__defaults__, value.__kwdefaults__, value.__closure__, own, read


def _parts_named(value: Any, names: tuple[str, ...]) -> list[Any]:
    try:
        return [getattr(value, name) for name in names]
    except ValueError:  # a cell that has nothing yet
        return []


def _read(*parts: Any) -> None:
    """Stand for what makes an object again: nobody does."""
