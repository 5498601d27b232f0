"""Names that came from elsewhere, made into paths that cannot leave their folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

from det_native.errors import StorageError

_SHA256 = re.compile(r"[0-9a-f]{64}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_DRIVE = re.compile(r"[A-Za-z]:")
_MAX_PART = 255
_MAX_PATH = 4096


class UnsafePathError(StorageError):
    """A relative path that would leave its folder, or that is no plain path at all."""


def check_relative(relative: str) -> tuple[str, ...]:
    """Return the parts of a relative path with forward slashes, or refuse it. Looks at the text only.

    Parameters
    ----------
    relative : str
        Such as ``"data/train.csv"``. It is taken literally: nothing is decoded or normalised.

    Returns
    -------
    tuple of str
        At least one part; none is empty, ``.`` or ``..``.

    Raises
    ------
    UnsafePathError
        For an absolute path, a drive letter, a backslash, a NUL, an empty part, ``.``, ``..``, a part over 255 bytes,
        a path over 4096 bytes, or text that is not valid Unicode.
    """
    fault = _fault(relative)
    if fault:
        raise UnsafePathError(f"The path {relative!r} {fault}.")
    return tuple(relative.split("/"))


def _fault(relative: str) -> str | None:
    if not relative:
        return "is empty"
    if "\0" in relative:
        return "contains a NUL"
    if "\\" in relative:
        return "contains a backslash; parts are separated by '/'"
    if relative.startswith("/"):
        return "is absolute"
    if _DRIVE.match(relative):
        return "starts with a drive letter"
    try:
        encoded = relative.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode"
    if len(encoded) > _MAX_PATH:
        return f"is longer than {_MAX_PATH} bytes"
    for part in relative.split("/"):
        if part in ("", ".", ".."):
            return f"has the part {part!r}"
        if len(part.encode()) > _MAX_PART:
            return f"has a part longer than {_MAX_PART} bytes"
    return None


def safe_join(root: Path, relative: str) -> Path:
    """Join `relative` to `root`, and refuse what would lie outside of it, by its text or through a symbolic link.

    Parameters
    ----------
    root : Path
        Folder that may not be left. It may be reached through links itself.
    relative : str
        Path with forward slashes; see :func:`check_relative`.

    Returns
    -------
    Path
        ``root / relative``, which need not exist.

    Raises
    ------
    UnsafePathError
        The path is not a plain relative one, or a link on the way leads out of `root`.
    """
    path = root.joinpath(*check_relative(relative))
    real_root = os.path.realpath(root)
    try:
        real = os.path.realpath(path)
    except OSError as error:
        raise UnsafePathError(f"The path {relative!r} cannot be followed: {error.strerror}.") from error
    if real == real_root or not real.startswith(real_root.rstrip(os.sep) + os.sep):
        raise UnsafePathError(f"The path {relative!r} leads out of its folder through a symbolic link.")
    return path


def check_sha256(sha256: str) -> str:
    """Return `sha256` if it is 64 lower-case hexadecimal digits, else refuse it."""
    if not _SHA256.fullmatch(sha256):
        raise UnsafePathError(f"{sha256!r} is not a SHA-256: 64 lower-case hexadecimal digits are wanted.")
    return sha256


def check_uuid(uuid: str) -> str:
    """Return `uuid` if it is a lower-case UUID with hyphens, else refuse it."""
    if not _UUID.fullmatch(uuid):
        raise UnsafePathError(f"{uuid!r} is not the UUID of a checkpoint.")
    return uuid
