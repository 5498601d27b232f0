"""What a module of PyTorch keeps beside its state dictionary: unsaved buffers, and attributes of the user's."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, MutableMapping
from typing import Any

from det_native.proof.attributes import is_own_module, settings_in


class ModuleSettings(MutableMapping[str, Any]):
    """Attributes of the modules in a model, by their path; what is set here is set there.

    Parameters
    ----------
    places : dict of str to (object, str)
        The owner of each attribute, and its name there.
    """

    def __init__(self, places: dict[str, tuple[Any, str]]) -> None:
        self._places = places

    def __getitem__(self, path: str) -> Any:
        return getattr(*self._places[path])

    def __setitem__(self, path: str, value: Any) -> None:
        setattr(*self._places[path], value)

    def __delitem__(self, path: str) -> None:
        delattr(*self._places[path])

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def module_settings(model: Any) -> ModuleSettings:
    """Return what the modules of a model keep that its state dictionary lacks.

    Parameters
    ----------
    model : torch.nn.Module
    """
    saved = set(model.state_dict(keep_vars=True))
    places = {}
    for path, module in model.named_modules():
        prefix = f"{path}." if path else ""
        for name, buffer in module.named_buffers(recurse=False):
            if f"{prefix}{name}" not in saved and buffer is not None:
                places[f"{prefix}{name}"] = (module, name)
        if is_own_module(type(module).__module__):
            for name, value in settings_in(module):
                if name not in _names_of_library() and not _is_module(value):
                    places[f"{prefix}{name}"] = (module, name)
    return ModuleSettings(places)


@functools.cache
def _names_of_library() -> frozenset[str]:
    """Return the attributes that every module has."""
    return frozenset(vars(sys.modules["torch"].nn.Module()))


def _is_module(value: Any) -> bool:
    torch = sys.modules["torch"]
    return isinstance(value, torch.nn.Module | torch.nn.Parameter)
