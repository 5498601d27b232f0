"""What an adapter says of the objects of a library's class.

The check compares processes: it wants the ``content``, which is the same wherever the same was made.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class Reader(Protocol):
    """Whoever takes up what an adapter says of an object."""

    def say(self, *facts: Hashable) -> None:
        """Take facts: texts and numbers."""

    def go(self, parts: Iterable[Any]) -> None:
        """Read these objects, too."""

    def numbers(self, array: Any, bytes_of_each: int = 0) -> None:
        """Read an array of numpy's, or a number of one; of numbers of so many bytes where that is not its type."""

    def cannot_see(self, what: str = "") -> None:
        """Note that something cannot be read."""


class Content(Reader, Protocol):
    """Reads a value for the check."""

    def named(self, parts: Iterable[tuple[str, Any]]) -> None:
        """Read attributes by their names; of what cannot be read there, a lock say, nothing is noted."""

    def partly(self, what: str) -> None:
        """Note which part of a value is read, where that is not all of it."""


class Adapter:
    """What is known of a class of a library, and of those derived from it; what is not overridden is not special.

    Attributes
    ----------
    never_sent : str
        What such objects are if they are never sent (``model``, ``loader``), else empty.
    is_data : bool
        They hold numbers or texts, and are compared as a whole.
    is_model : bool
        They are compared part by part; see :meth:`parts`.
    is_dataset : bool
        They give records, and are compared by their attributes.
    """

    never_sent: str = ""
    is_data: bool = False
    is_model: bool = False
    is_dataset: bool = False

    def content(self, value: Any, reader: Content) -> bool:
        """Tell what every process has of an equal value; False if it is to be read like any other object."""
        return False

    def weights(self, value: Any) -> list[Any] | None:
        """Return the weights of a model, as a training call has them among its inputs; None of what is no model."""
        return None

    def parts(self, value: Any) -> Iterable[Any]:
        """Return what a model is made of: the models in it, and their parameters."""
        return ()

    def numbers_apart(self, value: Any) -> list[Any] | None:
        """Return numbers in a value that its library may have made up: compared apart. None of what has none."""
        return None


class Data(Adapter):
    """Numbers, texts, tables of these."""

    is_data = True


class Text(Adapter):
    """Objects that their text tells: types, devices, shapes."""

    def content(self, value: Any, reader: Content) -> bool:
        """Tell the text."""
        reader.say(str(value))
        return True


class Ending(Adapter):
    """Objects that cannot change."""


class NeverSent(Adapter):
    """Objects that never travel.

    Parameters
    ----------
    what : str
        What they are.
    """

    def __init__(self, what: str) -> None:
        self.never_sent = what


@dataclass(frozen=True)
class Library:
    """What is known of a library.

    Attributes
    ----------
    classes : mapping of str to Adapter
        By package and name, ``torch.Tensor``: in whichever module of the package the class is, as that differs from
        version to version. Where a package has several of a name, by more of the module: ``numpy.random.Generator``.
    others : Adapter or None
        Of its classes that are not among these.
    """

    classes: Mapping[str, Adapter] = field(default_factory=dict)
    others: Adapter | None = None
