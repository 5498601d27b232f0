"""numpy: arrays, numbers, generators."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from typing import Any

from det_native.inspection.adapter import Adapter, Content, Encoded, Ending, Library, Plain, Text, texts_in


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

    def size(self, value: Any) -> int:
        """Return its bytes, without those of objects in it."""
        return int(value.nbytes)

    def texts(self, value: Any) -> Iterator[str]:
        """Yield its texts, and those in the fields of records; objects are looked at by themselves."""
        if value.dtype.kind in ("S", "U", "T"):
            yield from texts_in(value.ravel().tolist())
        for name in value.dtype.names or ():
            yield from self.texts(value[name])

    def referents(self, value: Any) -> Iterable[Any]:
        """Return the object whose numbers it shares, and the objects in it."""
        return (value.base, *(value.ravel().tolist() if value.dtype.hasobject else ()))

    def codec(self, value: Any) -> Encoded | None:
        """Return it as ``npy``; one of objects, or of a class of its own, has no such format."""
        import numpy as np

        if value.dtype.hasobject or type(value) is not np.ndarray:
            return None
        file = io.BytesIO()
        np.save(file, value, allow_pickle=False)
        return Encoded("npy", file.getvalue(), f"array {value.shape} of {value.dtype}")

    def state(self, value: Any) -> Any:
        """Return the numbers."""
        return value

    def put_state(self, value: Any, state: Any) -> bool:
        """Take the numbers where shape and type are the same."""
        if value.shape != state.shape or value.dtype != state.dtype or not value.flags.writeable:
            return False
        value[...] = state
        return True


class _Generator(Adapter):
    def state(self, value: Any) -> Any:
        return value.bit_generator.state

    def put_state(self, value: Any, state: Any) -> bool:
        if value.bit_generator.state["bit_generator"] != state["bit_generator"]:
            return False
        value.bit_generator.state = state
        return True

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
