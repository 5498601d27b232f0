"""What live values are called, how large they are, which texts are in them, and formats of their own for some.

Nothing is imported to tell, and nothing of the user's classes is called.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from det_native.heap.edges import full_name
from det_native.heap.ownership import is_offered
from det_native.schema.manifests import Codec


@dataclass(frozen=True)
class Encoded:
    """A value as bytes. `modules` are local modules that loading it imports."""

    codec: Codec
    content: bytes
    description: str
    modules: frozenset[str] = frozenset()


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


def human_size(size: float) -> str:
    """Return ``200.0 MB`` for 200 000 000 bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("unreachable")


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


def encode(value: Any) -> Encoded | None:
    """Return a value in a format of its own; None if it travels like any other object."""
    name = full_name(type(value))
    encoder = next((encoder for end, encoder in _ENCODERS.items() if name in end), None)
    return None if encoder is None else encoder(value)


def _encode_array(value: Any) -> Encoded | None:
    import numpy as np

    if value.dtype.hasobject:
        return None
    file = io.BytesIO()
    np.save(file, value, allow_pickle=False)
    return Encoded("npy", file.getvalue(), f"array {value.shape} of {value.dtype}")


def _encode_table(value: Any) -> Encoded | None:
    """Return it as parquet where an engine is installed and gives back the same table."""
    import pandas

    if value.attrs:  # of which parquet makes JSON
        return None
    file = io.BytesIO()
    try:
        value.to_parquet(file)
        same = pandas.read_parquet(io.BytesIO(file.getvalue())).equals(value)
    except (ImportError, NotImplementedError, ValueError, TypeError, OSError):
        return None
    return Encoded("parquet", file.getvalue(), f"table of {len(value)} rows") if same else None


def _encode_tensor(value: Any) -> Encoded | None:
    """Return it as safetensors; one that this does not know (sparse, quantized) has no such format."""
    if value.requires_grad:
        return None
    from safetensors.torch import save

    try:
        content = save({"value": value.cpu().contiguous()})
    except (KeyError, RuntimeError, ValueError):
        return None
    return Encoded("safetensors", content, f"tensor {tuple(value.shape)} of {value.dtype}")


_ENCODERS: dict[tuple[str, ...], Callable[[Any], Encoded | None]] = {
    ("numpy.ndarray",): _encode_array,
    ("pandas.DataFrame", "pandas.core.frame.DataFrame"): _encode_table,
    ("torch.Tensor",): _encode_tensor,
}


def decode(codec: Codec, content: bytes, place: Callable[[str], str] = str) -> Any:
    """Return the value that `content` encodes.

    A ``safetensors`` file that holds one tensor called ``value`` is that tensor, else a dictionary of tensors.

    Parameters
    ----------
    codec : str
    content : bytes
    place : callable
        Gives the path that is used here instead of one in an object.
    """
    if codec == "objects":
        from det_native.heap.values import only_value

        return only_value(content, place)
    if codec in ("npy", "weights"):
        import numpy as np

        return np.load(io.BytesIO(content), allow_pickle=False)
    if codec == "parquet":
        import pandas

        return pandas.read_parquet(io.BytesIO(content))
    from safetensors.torch import load

    tensors = load(content)
    return tensors["value"] if set(tensors) == {"value"} else tensors
