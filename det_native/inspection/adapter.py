"""What an adapter says of the objects of a library's class.

There are two that ask. The check compares processes: it wants the ``content``, which is the same wherever the same
was made. The look around a cell compares moments of one process: it wants the ``children``, object by object.
"""

from __future__ import annotations

import array
import random
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
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


#: A generator of Python's: version, words, and the next number of a normal distribution.
Words = tuple[int, bytes, float | None]


@dataclass(frozen=True)
class Stream:
    """What a library draws from for the whole process: random numbers, or the numbers of names.

    Attributes
    ----------
    name : str
    read : callable
        Returns its state in the short form; None where it has not begun.
    put_back : callable
        Takes its state in the form of checkpoints.
    written : callable
        Turns the short form into that of checkpoints, where arrays are pairs of a type of numpy's and bytes.
    begins : str
        The module whose first import begins it; empty if it is there from the beginning, or begins when it is seeded.
    counts : bool
        It only counts, to make names that nobody has given: the same in every trial, whatever its seed is, and nothing
        that a training goes on with.
    """

    name: str
    read: Callable[[], Any]
    put_back: Callable[[Mapping[str, Any]], None]
    written: Callable[[Any], dict[str, Any]]
    begins: str = ""
    counts: bool = False

    def state(self) -> Any:
        """Return its state in the short form; None where it has not begun, or cannot be read."""
        with suppress(Exception):  # a library that is only half loaded, or whose generator was replaced
            return self.read()
        return None


def generator_stream(name: str, find: Callable[[], random.Random | None], after: Callable[[], object] = bool) -> Stream:
    """Return the stream of a generator of Python's that a library has.

    Parameters
    ----------
    name : str
    find : callable
        Returns the generator; None where there is none.
    after : callable
        Called when a state was put back.
    """

    def read() -> Words | None:
        """Return the state in 2.5 kB; in its own form, of whole numbers, it has 20."""
        generator = find()
        if generator is None:
            return None
        version, words, gauss = generator.getstate()
        return version, array.array("I", words).tobytes(), gauss

    def written(state: Words) -> dict[str, Any]:
        version, words, gauss = state
        return {name: [version, gauss], f"{name}_words": ("uint32", words)}

    def put_back(states: Mapping[str, Any]) -> None:
        generator = find()
        if generator is not None:
            version, gauss = states[name]
            generator.setstate((version, tuple(int(word) for word in states[f"{name}_words"]), gauss))
            after()

    return Stream(name, read, put_back, written)


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
    settings : callable or None
        What is set in it for the whole process, given its module: all of it, or a dictionary by how it is written.
    streams : tuple of Stream
        Its global streams of random numbers, and its counters of names.
    """

    classes: Mapping[str, Adapter] = field(default_factory=dict)
    others: Adapter | None = None
    settings: Callable[[Any], Hashable | dict[str, Hashable]] | None = None
    streams: tuple[Stream, ...] = ()
