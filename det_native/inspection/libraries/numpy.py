"""numpy: arrays, numbers, generators."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from det_native.inspection.adapter import Adapter, Content, Ending, Library, Plain, Text


class Number(Plain):
    """A number that is an array without dimensions."""

    is_data = True
    changes_alone = False

    def content(self, value: Any, reader: Content) -> bool:
        """Tell its type and itself."""
        reader.numbers(value)
        return True


class Array(Number):
    """``ndarray``."""

    def referents(self, value: Any) -> Iterable[Any]:
        """Return the object whose numbers it shares, and the objects in it."""
        return (value.base, *(value.ravel().tolist() if value.dtype.hasobject else ()))


class _Generator(Adapter):
    def content(self, value: Any, reader: Content) -> bool:
        reader.go((value.bit_generator,))
        return True

    children = content  # type: ignore[assignment]


class _BitGenerator(Plain):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say(type(value).__name__, _digest(value.state))
        return True


class _RandomState(Plain):
    asks_in_vain = True

    def content(self, value: Any, reader: Content) -> bool:
        reader.say(_digest(value.get_state(legacy=False)))
        return True


def _digest(state: Any) -> str:
    """Return the digest of a state: numbers, texts and arrays in dictionaries."""
    digest = hashlib.blake2b(digest_size=16)
    waiting = [state]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += [*part, *part.values()]
        else:
            digest.update(part.tobytes() if hasattr(part, "tobytes") else f"{part}\0".encode())
    return digest.hexdigest()


class _Function(Ending):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say(value.__name__)
        return True


LIBRARY = Library(
    {
        "numpy.ndarray": Array(),
        "numpy.generic": Number(),
        "numpy.dtype": Text(),
        "numpy.ufunc": _Function(),
        "numpy.random.Generator": _Generator(),
        "numpy.random.BitGenerator": _BitGenerator(),
        "numpy.random.RandomState": _RandomState(),
    },
)
