"""A difference between what the recorded call is given and what it was given in the notebook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from det_native.heap.compare import SECRET, is_array
from det_native.schema.proof import Role

# What differs certainly, and with it the training.
_DECISIVE: frozenset[Role] = frozenset({"data", "weights", "layers", "optimizer", "loss", "metrics", "loader", "code"})
_CONTAINERS = frozenset(f"builtins.{name}" for name in ("list", "tuple", "dict", "set", "frozenset", "bytearray"))


@dataclass(frozen=True)
class Difference:
    """An object, or a value in it, that differs here from the notebook's.

    Attributes
    ----------
    part, title : str
        Which input it is a part of, and the way to it from there, as messages call them.
    name : str
        The notebook's variable that leads to it; empty if none does.
    sides : (str, str)
        What is here, and in the notebook, in words.
    """

    part: str
    title: str
    name: str
    role: Role
    sides: tuple[str, str]
    cls: str
    value: Any = None

    @property
    def is_decisive(self) -> bool:
        """Whether the training is another one."""
        return self.role in _DECISIVE or (self.role == "variable" and is_data(self.cls))

    @property
    def is_part(self) -> bool:
        """Whether it is in an input, and not that itself."""
        return self.title != self.part

    @property
    def heading(self) -> str:
        """The name that leads to it, and the input."""
        if not self.name or self.part.startswith((self.name, "the function")):
            return self.title
        way = self.title.removeprefix(self.part) if self.title.startswith((f"{self.part}.", f"{self.part}[")) else ""
        return f"{self.name}{way} ({self.title if not way else self.part})"

    @property
    def text(self) -> str:
        """Both sides in words."""
        here, there = self.sides
        if SECRET in (here, there):
            return f"{SECRET} has another value on the worker"
        if here == there:
            return f"{here} on the worker and in the notebook, with other content"
        return f"{here} on the worker, {there} in the notebook"


def is_data(cls: str) -> bool:
    """Whether a class is of arrays, tables or containers."""
    return cls in _CONTAINERS or is_array(cls)
