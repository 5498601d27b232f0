"""What an adapter says of the objects of a library's class.

There are two that ask. The check compares processes: it wants the ``content``, which is the same wherever the same
was made. The look around a cell compares moments of one process: it wants the ``children``, object by object.
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


class Walk(Reader, Protocol):
    """Walks through the objects of a value, for the look."""

    changeable: set[int]
    kept: list[Any]

    def raw(self, content: Any) -> None:
        """Read a contiguous buffer of bytes."""


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
    changes_alone : bool
        Threads of the library's own may change them at any time.
    wraps : str
        The attribute that has the object around which such ones are made anew each time they are needed.
    caches : frozenset of str
        Attributes that are set when they are merely used.
    asks_in_vain : bool
        To make one asks the system for random bytes, which are thrown away where the first argument is a seed.
    """

    never_sent: str = ""
    is_data: bool = False
    is_model: bool = False
    is_dataset: bool = False
    changes_alone: bool = True
    wraps: str = ""
    caches: frozenset[str] = frozenset()
    asks_in_vain: bool = False

    def content(self, value: Any, reader: Content) -> bool:
        """Tell what every process has of an equal value; False if it is to be read like any other object."""
        return False

    def children(self, value: Any, walk: Walk) -> bool:
        """Tell what a value holds at this moment; False if it is to be walked through like any other object."""
        return False

    def address(self, value: Any) -> int | None:
        """Return where the numbers of a value lie: other objects may have the same. None of what shares none."""
        return None

    def referents(self, value: Any) -> Iterable[Any]:
        """Return objects to which a value refers and of which Python's garbage collector does not know."""
        return ()

    def weights(self, value: Any) -> list[Any] | None:
        """Return the weights of a model, as a training call has them among its inputs; None of what is no model."""
        return None

    def parts(self, value: Any) -> Iterable[Any]:
        """Return what a model is made of: the models in it, and their parameters."""
        return ()

    def numbers_apart(self, value: Any) -> list[Any] | None:
        """Return numbers in a value that its library may have made up: compared apart. None of what has none."""
        return None


class Plain(Adapter):
    """What the check reads of an object is all that the look can see of it, too."""

    def children(self, value: Any, walk: Walk) -> bool:
        """Tell the content, which is short."""
        return self.content(value, walk)  # type: ignore[arg-type]


class Data(Adapter):
    """Numbers, texts, tables of these."""

    is_data = True
    changes_alone = False


class Text(Plain):
    """Objects that their text tells: types, devices, shapes."""

    changes_alone = False

    def content(self, value: Any, reader: Content) -> bool:
        """Tell the text."""
        reader.say(str(value))
        return True


class Ending(Adapter):
    """Objects that cannot change."""

    changes_alone = False

    def children(self, value: Any, walk: Walk) -> bool:
        """Tell nothing: which object it is says all."""
        return True


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
