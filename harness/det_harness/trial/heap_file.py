"""What a training has changed in the program's objects, as a file of a checkpoint."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

from det_native.heap.call import CallSnapshot, Changes
from det_native.schema.environment import TrialEnvironment

logger = logging.getLogger("det_native")

_FILE = "heap.bin"


def is_in(folder: Path) -> bool:
    """Whether a checkpoint has such a file."""
    return (folder / _FILE).exists()


def save(folder: Path, snapshot: CallSnapshot, *, reopen: Any = None) -> None:
    """Write what has changed since a snapshot: a line with what is left out, then the changes.

    `reopen` says how a process that goes on opens a file again, see ``CallSnapshot.changes``.
    """
    (folder / _FILE).write_bytes(content_of(snapshot.changes(reopen=reopen)))


def digest(snapshot: CallSnapshot) -> bytes:
    """Return what tells the present changes from others."""
    return hashlib.blake2b(content_of(snapshot.changes())).digest()


def digest_in(folder: Path) -> bytes:
    """Return what tells the changes in a checkpoint from others."""
    return hashlib.blake2b((folder / _FILE).read_bytes()).digest()


def content_of(changes: Changes) -> bytes:
    """Return changes with what is left out of them, as bytes."""
    return json.dumps(changes.left_out).encode() + b"\n" + changes.data


def read(folder: Path) -> bytes:
    """Return the content of the file; nothing where there is none."""
    return (folder / _FILE).read_bytes() if is_in(folder) else b""


def restore(content: bytes, snapshot: CallSnapshot) -> None:
    """Put the changes in place in a process that goes on with the training; files are opened again."""
    for sentence in _put(content, snapshot, reopen=True):
        logger.warning("%s", sentence)


def bring_home(content: bytes, snapshot: CallSnapshot) -> list[str]:
    """Put the changes in place in the process that has submitted the training; return what stays as it was."""
    return [*json.loads(content.partition(b"\n")[0] or b"[]"), *_put(content, snapshot, reopen=False)]


def _put(content: bytes, snapshot: CallSnapshot, *, reopen: bool) -> list[str]:
    data = content.partition(b"\n")[2]
    return [*dict.fromkeys(snapshot.put(data, reopen=reopen))] if data else []


def is_exact(environment: TrialEnvironment) -> bool:
    """Whether a trial is to begin with the values of the notebook: those of a search have other hyperparameters."""
    return bool((environment.config.get("searcher") or {}).get("name", "single") == "single")
