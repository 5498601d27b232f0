"""What a stream of random numbers is: how its state is read, written and put back."""

from __future__ import annotations

import array
import random
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import _LazyModule  # type: ignore[attr-defined]
from typing import Any

#: Plain values by names that begin with the stream's; arrays are pairs of a type of numpy's and bytes.
State = dict[str, Any]


@dataclass(frozen=True)
class Stream:
    """What a library draws from for the whole process: random numbers, or the numbers of names.

    Attributes
    ----------
    read : callable
        Returns its state; None where it has not begun.
    put_back : callable
        Takes its state, with arrays of numpy.
    begins : str
        The module whose first import begins it; empty if it is there from the beginning, or begins when it is seeded.
    counts : bool
        It only counts, to make names that nobody has given: the same in every trial, whatever its seed is, and nothing
        that a training goes on with.
    """

    name: str
    read: Callable[[], State | None]
    put_back: Callable[[Mapping[str, Any]], None]
    begins: str = ""
    counts: bool = False

    def state(self) -> State | None:
        """Return its state; None where it has not begun, or cannot be read."""
        with suppress(Exception):  # a library that is only half loaded, or whose generator was replaced
            return self.read()
        return None


def generator_stream(name: str, find: Callable[[], random.Random | None], after: Callable[[], object] = bool) -> Stream:
    """Return the stream of a generator of Python's that a library has.

    Parameters
    ----------
    find : callable
        Returns the generator; None where there is none.
    after : callable
        Called when a state was put back.
    """

    def read() -> State | None:
        """Return the state in 2.5 kB; in its own form, of whole numbers, it has 20."""
        generator = find()
        if generator is None:
            return None
        version, words, gauss = generator.getstate()
        return {name: [version, gauss], f"{name}_words": ("uint32", array.array("I", words).tobytes())}

    def put_back(states: Mapping[str, Any]) -> None:
        generator = find()
        if generator is not None:
            version, gauss = states[name]
            generator.setstate((version, tuple(int(word) for word in states[f"{name}_words"]), gauss))
            after()

    return Stream(name, read, put_back)


def is_loaded(library: str) -> bool:
    """Whether this process has imported a library; a lazy module would be loaded by being asked."""
    module = sys.modules.get(library)
    return module is not None and not isinstance(module, _LazyModule)
