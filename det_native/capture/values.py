"""What a live value is sent as, or why it is not sent."""

from __future__ import annotations

import io
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from det_native.capture.facts import human_size, size_of, type_name
from det_native.capture.secrets import looks_secret, text_of_bytes
from det_native.inspection.adapter import Encoded
from det_native.inspection.registry import adapter_of

#: Bytes of one pickled value, and of all together, that travel undeclared.
VALUE_LIMIT = 1 << 20
TOTAL_LIMIT = 8 << 20


class CannotSendError(ValueError):
    """A value cannot travel; the message says why in words that fit after the value's name."""

    def __init__(self, message: str, *, remedy: str = "", kind: str = "", size: int | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.kind = kind
        self.size = size


class _TooLargeError(Exception):
    pass


class _BoundedWriter(io.RawIOBase):
    """Collects what is written, up to a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        size = memoryview(part).nbytes  # large arrays come as buffers
        self.size += size
        if self.size > self.limit:
            raise _TooLargeError
        self.parts.append(bytes(part))
        return size


@contextmanager
def bounded(limit: int, value: Any) -> Iterator[_BoundedWriter]:
    """Give a file to pickle a value into; that it comes to more than so many bytes is its error."""
    writer = _BoundedWriter(limit)
    try:
        yield writer
    except _TooLargeError:
        size = size_of(value)
        raise CannotSendError(
            f"{type_name(value)}, {human_size(size) if size else 'over ' + human_size(limit)}", kind="large", size=size
        ) from None


def never_sent(value: Any) -> str | None:
    """Return what a value is (``model``, ``lock``, ``handle`` ...) if such things are never sent, else None."""
    adapter = adapter_of(type(value))
    return adapter.never_sent or None if adapter is not None else None


def encode(
    name: str,
    value: Any,
    *,
    declared: bool,
    arrays: bool = False,
    limit: int = VALUE_LIMIT,
    is_local: Callable[[str], bool] = lambda _: False,
) -> Encoded:
    """Encode a value for the bundle.

    Parameters
    ----------
    name : str
        Its name in the notebook.
    value : object
    declared : bool
        The user named it in ``values=``: arrays and tables get a format of their own and no limit applies but the
        bundle's; a secret is sent, because that is asked for.
    arrays : bool
        Arrays and tables of a size within the limit get a format of their own, though the user has not named them.
    limit : int
        Bytes of the pickle of a value that is not declared.
    is_local : callable
        Whether a module (by name) is a file of the user's.

    Raises
    ------
    CannotSendError
        The value is of a kind that never travels, is too large, looks like a secret, or holds something that a fresh
        process could not load.
    """
    kind = never_sent(value)
    if kind is not None:
        raise refused_kind(value, kind)
    if (declared or arrays) and (encoded := encode_plain(name, value, declared=declared, limit=limit)) is not None:
        return encoded
    if not declared:
        _check_limit(value, limit)
    return _pickle(name, value, declared=declared, limit=limit, is_local=is_local)


def encode_plain(name: str, value: Any, *, declared: bool, limit: int) -> Encoded | None:
    """Return an array, a table or a tensor in the format of its kind, within the limit; None of all else.

    Raises
    ------
    CannotSendError
        It looks like a secret.
    """
    if not declared and (size_of(value) or limit) >= limit:
        return None
    if not declared:
        refuse_secrets(name, value)
    adapter = adapter_of(type(value))
    return None if adapter is None else adapter.codec(value)


def _check_limit(value: Any, limit: int) -> None:
    if (size := size_of(value)) is not None and size > limit:
        raise too_large(value, size)
    elif isinstance(value, list | tuple | dict | set | frozenset) and 2 * len(value) > limit:
        raise too_large(value, None)


def refused_kind(value: Any, kind: str) -> CannotSendError:
    """Return the error of what never travels."""
    remedy = {
        "model": "Run the cell that builds it again, so that its code can be sent.",
        "optimizer": "Run the cell that makes it again, so that its code can be sent.",
        "dataset": "Run the cell that makes it again, so that its code can be sent.",
        "loader": "Run the cell that makes it again, so that its code can be sent.",
    }.get(kind, "Create it inside the function or in setup().")
    return CannotSendError(type_name(value), remedy=remedy, kind=kind)


def too_large(value: Any, size: int | None) -> CannotSendError:
    """Return the error of what is over a limit."""
    shown = human_size(size) if size is not None else "over 1 MiB"
    return CannotSendError(f"{type_name(value)}, {shown}", kind="large", size=size)


def _pickle(name: str, value: Any, *, declared: bool, limit: int, is_local: Callable[[str], bool]) -> Encoded:
    """Pickle a value into a bounded buffer, looking at every object on the way."""
    import pickle

    import cloudpickle

    modules: set[str] = set()

    class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
        def persistent_id(self, obj: Any) -> None:
            _inspect(name, obj, declared, limit, is_local, modules)

    try:
        with bounded(limit if not declared else 1 << 62, value) as writer:
            _Pickler(writer, protocol=5).dump(value)
    except CannotSendError:
        raise
    except (pickle.PicklingError, TypeError, AttributeError, NotImplementedError, RecursionError, ValueError) as error:
        raise CannotSendError(
            type_name(value), remedy=f"It cannot be pickled ({error}).", kind="unpicklable"
        ) from error
    return Encoded("cloudpickle", b"".join(writer.parts), type_name(value), frozenset(modules))


def _inspect(
    name: str, part: Any, declared: bool, limit: int, is_local: Callable[[str], bool], modules: set[str]
) -> None:
    """Look at one object inside a value that is being pickled."""
    if isinstance(part, int | float | bool | type(None)):
        return
    if not declared:
        refuse_secrets(name, part)
        if (size := size_of(part)) is not None and size > limit:
            raise too_large(part, size)
    if isinstance(part, str | bytes):
        return
    kind = never_sent(part)
    if kind is not None:
        raise refused_kind(part, kind)
    _note_home(part, is_local, modules)


def refuse_secrets(name: str, part: Any) -> None:
    """Raise if an object by itself, without those in it, looks like a secret."""
    if isinstance(part, bytes | bytearray):
        part = text_of_bytes(part)
    if isinstance(part, str) and looks_secret(part, name):
        raise CannotSendError("looks like a secret", kind="secret")
    if isinstance(part, dict):
        for key, inner in part.items():
            if isinstance(key, str) and isinstance(inner, str) and looks_secret(inner, key):
                raise CannotSendError("holds what looks like a secret", kind="secret")
        return
    adapter = adapter_of(type(part))
    if adapter is not None and any(map(looks_secret, adapter.texts(part))):
        raise CannotSendError("holds what looks like a secret", kind="secret")


def _note_home(part: Any, is_local: Callable[[str], bool], modules: set[str]) -> None:
    """Where the code of an object lives: in a cell, which cannot be pickled, or in a module of the user's."""
    if isinstance(part, types.ModuleType):
        home = part.__name__
    else:
        owner = part if isinstance(part, type | types.FunctionType) else type(part)
        home = getattr(owner, "__module__", None) or ""
        if home == "__main__" and not isinstance(part, types.BuiltinFunctionType):
            raise CannotSendError(
                f"is made of `{owner.__qualname__}`, which a cell defines", kind="notebook", remedy=owner.__qualname__
            )
    if home and is_local(home):
        modules.add(home)
