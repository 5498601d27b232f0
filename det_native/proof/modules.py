"""What a module of PyTorch keeps beside its state dictionary: unsaved buffers, and attributes of the user's."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from det_native.inspection.libraries.torch import unsaved_places


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
    return ModuleSettings(unsaved_places(model))
