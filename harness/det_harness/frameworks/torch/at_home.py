"""Models of a program that has run again, as objects of the classes that this process has: those of the notebook.

``isinstance(loaded, Net)`` holds then, and ``torch.save(loaded)`` finds the class. A class or a function is replaced by
another one of its name that does the same: its code, and all that its code looks up, are equal. If any of a model is
another one by now, or is not here, the model stays what it was when it was trained, all of it: half of it would compare
its own members of an enumeration with those of the other half.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import torch

from det_harness.frameworks.torch.copies import ModelCopy
from det_native.heap.compare import Table, differs
from det_native.pytorch import PyTorchTrialContext


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
        if here is None or not _do_the_same(value, here):
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


def _do_the_same(definition: Any, here: Any) -> bool:
    """Return whether all that two classes or functions lead to, and read, is equal, and nothing of it unknown."""
    then, now = Table({"": definition}), Table({"": here})
    if then.not_compared or now.not_compared or then.entries.keys() != now.entries.keys():
        return False
    if _hparams_in(then) != _hparams_in(now):
        return False
    return not any(differs(entry, now.entries[key]) or _is_unknown(then, key) for key, entry in then.entries.items())


def _hparams_in(table: Table) -> list[Any]:
    return [obj.get_hparams() for obj in table.snapshot.objects if isinstance(obj, PyTorchTrialContext)]


def _is_unknown(table: Table, key: str) -> bool:
    """Return whether the source of a function is not known; what ``dataclass`` and the like write has none."""
    objects = (table.snapshot.objects[number] for number in table.numbers.get(key, ()))
    functions = (obj for obj in objects if isinstance(obj, types.FunctionType))
    return not table.entries[key].source and any(obj.__code__.co_filename != "<string>" for obj in functions)
