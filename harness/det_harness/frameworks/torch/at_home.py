"""Models of a program that has run again, as objects of the classes that this process has: those of the notebook.

``isinstance(loaded, Net)`` holds then, and ``torch.save(loaded)`` finds the class. A class or a function is replaced by
another one of its name that does the same: its code, and all that its code looks up, are equal. If any of a model is
another one by now, or is not here, the model stays what it was when it was trained, all of it: half of it would compare
its own members of an enumeration with those of the other half.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from det_harness.frameworks.torch.copies import ObjectCopy, reduced
from det_native.inspection.parts import names_looked_up, parts_of
from det_native.pytorch import PyTorchTrialContext

_CODE = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags", "co_consts")
_COUNTS = ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount")
# What Python keeps in a class besides what its statement says.
_OF_ALL_CLASSES = frozenset(
    {
        *("__dict__", "__weakref__", "__module__", "__annotations__", "__annotate_func__", "__annotations_cache__"),
        *("__firstlineno__", "__static_attributes__", "_abc_impl"),
    }
)

_MISSING = object()


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


class _Moved(ObjectCopy):
    """A copy with other classes, whose original is not used any more."""

    def __init__(self) -> None:
        super().__init__()
        self._comparison = _Comparison()

    def definition(self, value: Any) -> Any:
        """Return the same definition of this process.

        Raises
        ------
        LookupError
            If it does not have it.
        """
        here = _of_its_name(value)
        if here is value or (here is None and _is_of_this_process(value)):
            return value
        if not self._comparison.alike(value, here):
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


class _Comparison:
    """Compares definitions, and what they use; what was compared once is not again."""

    def __init__(self) -> None:
        self._results: dict[tuple[int, int], bool] = {}
        self._alive: list[Any] = []

    def alike(self, first: Any, second: Any) -> bool:
        """Return whether two definitions do the same; False where that cannot be told."""
        result = self.same(first, second)
        if not result:  # what was the same as far as that was known may not be
            self._results = {pair: same for pair, same in self._results.items() if not same}
        return result

    def same(self, first: Any, second: Any) -> bool:
        """Return whether two objects do the same, if all does that is being compared."""
        if first is second:
            return True
        pair = (id(first), id(second))
        if pair not in self._results:
            self._alive += [first, second]
            self._results[pair] = True  # as far as is known, where they are parts of themselves
            self._results[pair] = self._compare(first, second)
        return self._results[pair]

    def _compare(self, first: Any, second: Any) -> bool:
        if isinstance(first, type):
            return isinstance(second, type) and self._same_classes(first, second)
        if not self.same(type(first), type(second)):
            return False
        if isinstance(first, types.FunctionType):
            return self._same_functions(first, second)
        if isinstance(first, types.CodeType):
            return all(getattr(first, name) == getattr(second, name) for name in _COUNTS) and self._each(
                [getattr(first, name) for name in _CODE], [getattr(second, name) for name in _CODE]
            )
        if isinstance(first, torch.Tensor):
            return first.dtype is second.dtype and torch.equal(first, second)
        if isinstance(first, np.ndarray):
            return first.dtype == second.dtype and np.array_equal(first, second)
        if isinstance(first, PyTorchTrialContext):
            return self.same(first.get_hparams(), second.get_hparams())
        return self._same_values(first, second)

    def _same_values(self, first: Any, second: Any) -> bool:
        kind = type(first)
        if kind in (list, tuple):
            return self._each(first, second)
        if kind in (dict, types.MappingProxyType):
            return first.keys() == second.keys() and all(self.same(first[key], second[key]) for key in first)
        if kind in (set, frozenset, int, float, complex, str, bytes, bool):
            return bool(first == second)
        parts = parts_of(first)
        if parts is not None:
            return self._each([part for _, part in parts], [part for _, part in parts_of(second) or ()])
        try:
            own, other = (_made_of(value) for value in (first, second))
        except Exception:  # noqa: BLE001 (a lock, a file: nobody can tell what it does)
            return False
        return self._each(own, other)

    def _each(self, first: Any, second: Any) -> bool:
        return len(first) == len(second) and all(map(self.same, first, second))

    def _same_classes(self, first: type, second: type) -> bool:
        if (first.__module__, first.__qualname__) != (second.__module__, second.__qualname__):
            return False
        own, other = (
            {key: value for key, value in vars(kind).items() if key not in _OF_ALL_CLASSES} for kind in (first, second)
        )
        return self._each(first.__bases__, second.__bases__) and self.same(own, other)

    def _same_functions(self, first: types.FunctionType, second: types.FunctionType) -> bool:
        return (
            self.same(first.__code__, second.__code__)
            and self.same(first.__defaults__, second.__defaults__)
            and self.same(first.__kwdefaults__, second.__kwdefaults__)
            and self._each(first.__closure__ or (), second.__closure__ or ())
            and self.same(vars(first), vars(second))
            and all(self._same_globals(name, first, second) for name in names_looked_up(first.__code__))
        )

    def _same_globals(self, name: str, first: types.FunctionType, second: types.FunctionType) -> bool:
        own, other = first.__globals__, second.__globals__
        return not name.startswith("*") and self.same(own.get(name, _MISSING), other.get(name, _MISSING))


def _made_of(value: Any) -> list[Any]:
    parts = reduced(value)
    return list(_written_out(parts)) if not isinstance(parts, str) else [parts]


def _written_out(parts: tuple[Any, ...]) -> Iterator[Any]:
    yield from parts[:3]
    for more in parts[3:5]:
        yield list(more or ())
