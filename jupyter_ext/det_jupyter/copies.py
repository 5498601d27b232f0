"""Copies of executed notebooks, written where a user sees them: nothing of the user's is written over."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

from det_native.errors import StorageError


def write_copy(content: bytes, name: str, folders: Sequence[Path], seen: Path | None = None) -> Path:
    """Write a copy into the first folder that takes it; return where it lies.

    Parameters
    ----------
    name : str
        A file of this name that holds anything but an earlier copy stays: the copy gets a number.
    seen : Path, optional
        Keeps the hash of the last copy, so that a later one takes its place.

    Raises
    ------
    StorageError
        If no folder takes it.
    """
    hashes = {hashlib.sha256(content).hexdigest()}
    if seen is not None:
        with suppress(OSError):
            hashes.add(seen.read_text(encoding="utf-8").strip())
    why: object = "there is no folder"
    for folder in folders:
        try:
            target = next(path for path in _names(folder, name) if not path.exists() or _hash(path) in hashes)
            _write(target, content)
        except OSError as error:
            why = error.strerror or error
            continue
        if seen is not None:
            with suppress(OSError):
                seen.write_text(hashlib.sha256(content).hexdigest(), encoding="utf-8")
        return target
    raise StorageError(f"{name} cannot be written in {' or '.join(map(str, folders))}: {why}.")


def _names(folder: Path, name: str) -> Iterator[Path]:
    yield folder / name
    path = Path(name)
    for number in count(2):
        yield folder / f"{path.stem} {number}{path.suffix}"


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write(target: Path, content: bytes) -> None:
    """Write the whole of a file, or nothing."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
