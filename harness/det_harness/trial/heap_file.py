"""What a training has changed in the program's objects, as a file of a checkpoint."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from det_native.heap.call import CallSnapshot, Changes

logger = logging.getLogger("det_native")

_FILE = "heap.bin"


def is_in(folder: Path) -> bool:
    """Whether a checkpoint has such a file."""
    return (folder / _FILE).exists()


def save(folder: Path, snapshot: CallSnapshot, *, reopen: Any = None) -> None:
    """Write what has changed since a snapshot: a line with what is left out, then the changes.

    `reopen` says how a process that goes on opens a file again, see ``CallSnapshot.changes``.
    """
    changes = snapshot.changes(reopen=reopen)
    (folder / _FILE).write_bytes(_content(changes))


def digest(snapshot: CallSnapshot) -> bytes:
    """Return what tells the present changes from others."""
    return hashlib.blake2b(_content(snapshot.changes())).digest()


def digest_in(folder: Path) -> bytes:
    """Return what tells the changes in a checkpoint from others."""
    return hashlib.blake2b((folder / _FILE).read_bytes()).digest()


def _content(changes: Changes) -> bytes:
    return json.dumps(changes.left_out).encode() + b"\n" + changes.data


def read(folder: Path) -> bytes:
    """Return the content of the file; nothing where there is none."""
    return (folder / _FILE).read_bytes() if is_in(folder) else b""


def restore(content: bytes, snapshot: CallSnapshot) -> None:
    """Put the changes in place in a process that goes on with the training; files are opened again."""
    _tell(_put(content, snapshot, reopen=True)[1])


def bring_home(content: bytes, snapshot: CallSnapshot) -> None:
    """Put the changes in place in the process that the training was submitted from."""
    left_out, sentences = _put(content, snapshot, reopen=False)
    _tell([*left_out, *sentences])


def _put(content: bytes, snapshot: CallSnapshot, *, reopen: bool) -> tuple[list[str], list[str]]:
    if not content:
        return [], []
    line, data = content.split(b"\n", 1)
    return json.loads(line), snapshot.put(data, reopen=reopen)


def _tell(sentences: Iterable[str]) -> None:
    for sentence in dict.fromkeys(sentences):
        logger.warning("%s", sentence)
