"""What a training call is given: each input with its part in the training."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Set
from dataclasses import dataclass
from typing import Any

from det_native.schema.proof import Role


@dataclass(frozen=True)
class Input:
    """An input of a training call.

    Attributes
    ----------
    value : object
    role : str
        What it is to the training; this decides what a difference means.
    variable : str
        The variable that holds it, where that is known without a search; empty if it is not.
    assign : callable or None
        Gives the call another value instead; None where only what is in it can be changed.
    """

    value: Any
    role: Role = "data"
    variable: str = ""
    assign: Callable[[Any], object] | None = None


def as_inputs(parts: Mapping[str, Any]) -> dict[str, Input]:
    """Return inputs by name; a plain value is one of data."""
    return {name: part if isinstance(part, Input) else Input(part) for name, part in parts.items()}


def frozen(value: Any) -> Any:
    """Return a copy of containers that cannot be changed: what describes an object, and is not part of it.

    Only the object itself can be put right, so nothing may be changed in its description.
    """
    if isinstance(value, Mapping):
        return types.MappingProxyType({key: frozen(part) for key, part in value.items()})
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value


class WithoutKeys(MutableMapping[str, Any]):
    """A dictionary without some of its keys; what is set here is set there.

    Parameters
    ----------
    content : MutableMapping
    keys : set of str
        Those that are not seen.
    """

    def __init__(self, content: MutableMapping[str, Any], keys: Set[str]) -> None:
        self._content = content
        self._hidden = keys

    def __getitem__(self, key: str) -> Any:
        if key in self._hidden:
            raise KeyError(key)
        return self._content[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._content[key] = value

    def __delitem__(self, key: str) -> None:
        del self._content[key]

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._content if key not in self._hidden)

    def __len__(self) -> int:
        return sum(1 for _ in self)
