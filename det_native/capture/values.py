"""What a live value is sent as, or why it is not sent."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from det_native.capture.facts import human_size, size_of, type_name
from det_native.capture.secrets import looks_secret, text_of_bytes
from det_native.inspection.adapter import Encoded
from det_native.inspection.registry import adapter_of


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
