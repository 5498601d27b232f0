"""What live values are called, how large they are, and which texts are in them.

Nothing is imported to tell, and nothing of the user's classes is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from det_native.heap.edges import full_name
from det_native.heap.ownership import is_offered

_KNOWN_AS = {
    "_thread.lock": "threading.Lock",
    "_thread.RLock": "threading.RLock",
    "_io.TextIOWrapper": "an open file",
    "_io.BufferedReader": "an open file",
    "_io.BufferedWriter": "an open file",
    "_io.BufferedRandom": "an open file",
    "_io.FileIO": "an open file",
    "builtins.generator": "a generator",
    "builtins.coroutine": "a coroutine",
    "builtins.async_generator": "a generator",
}


def type_name(value: object) -> str:
    """Return the name of the value's type as users know it: ``numpy.ndarray``, ``threading.Lock``."""
    name = full_name(type(value))
    return _KNOWN_AS.get(name, name.removeprefix("builtins.").removeprefix("__main__."))


def size_of(value: Any) -> int | None:
    """Return the bytes that a value takes if its type tells at once (arrays, tensors, tables, text), else None."""
    cls: Any = type(value)
    try:
        for base in (bytes, bytearray, str):
            if issubclass(cls, base):
                return base.__len__(value)
        size = _reader_of_size(cls)
        return None if size is None else int(size(value))
    except Exception:  # noqa: BLE001 (a class of the user's may raise whatever is asked of it)
        return None


@lru_cache(maxsize=4096)
def _reader_of_size(cls: Any) -> Callable[[Any], int] | None:
    return next((size for name, size in _SIZES.items() if is_offered(cls, name)), None)


def _size_of_table(value: Any) -> int:
    usage = value.memory_usage(deep=False)
    return int(usage.sum()) if hasattr(usage, "sum") else int(usage)


def _size_of_image(value: Any) -> int:
    width, height = value.size
    return int(width * height * len(value.getbands()) * (4 if value.mode in ("I", "F") else 1))


#: By what a class offers, how large its objects are.
_SIZES: dict[str, Callable[[Any], int]] = {
    "memory_usage": _size_of_table,
    "estimated_size": lambda value: value.estimated_size(),
    "getbands": _size_of_image,
    "element_size": lambda value: value.numel() * value.element_size(),
    "tocoo": lambda value: sum(getattr(part, "nbytes", 0) for part in vars(value).values()),
    "nbytes": lambda value: value.nbytes() if callable(value.nbytes) else value.nbytes,
    "_datatype_enum": lambda value: value.shape.num_elements() * value.dtype.size,
}


def tells_content(cls: Any) -> bool:
    """Whether objects of a class tell their size or their texts."""
    return (_reader_of_size(cls) or _reader_of_texts(cls)) is not None


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts that an array or a table holds as its content, and not as objects of their own."""
    cls: Any = type(value)
    read = _reader_of_texts(cls)
    return iter(()) if read is None else read(value)


@lru_cache(maxsize=4096)
def _reader_of_texts(cls: Any) -> Callable[[Any], Iterator[str]] | None:
    names = {full_name(base) for base in cls.__mro__}
    if "numpy.ndarray" in names:
        return _texts_in_array
    return None if names.isdisjoint(_OF_PANDAS) else _texts_in_table


_OF_PANDAS = frozenset(
    name
    for short, long in (("DataFrame", "frame"), ("Series", "series"), ("Index", "indexes.base"))
    for name in (f"pandas.{short}", f"pandas.core.{long}.{short}")
)


def _texts_in_array(value: Any) -> Iterator[str]:
    if value.dtype.kind in ("S", "U", "T"):
        yield from _texts(value.ravel().tolist())
    for name in value.dtype.names or ():
        yield from _texts_in_array(value[name])


def _texts_in_table(value: Any) -> Iterator[str]:
    is_table = hasattr(value, "columns")
    columns = [value.index, value.columns, *(column for _, column in value.items())] if is_table else [value]
    for column in columns:
        # A category or a text of pandas is of the kind of objects, too.
        if getattr(getattr(column, "dtype", None), "kind", "") in ("O", "S", "U") and hasattr(column, "__iter__"):
            yield from _texts(column)


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """Yield texts, those written as bytes, and those in tuples of them."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, bytes):
            yield value.decode("latin-1")
        elif isinstance(value, tuple):
            yield from _texts(value)
