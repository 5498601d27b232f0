"""What a training changes in the program's objects: its snapshot, a file of checkpoints, the way home."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from det_native.schema.environment import TrialEnvironment

if TYPE_CHECKING:
    from det_native.heap.call import CallSnapshot

logger = logging.getLogger("det_native")

_FILE = "heap.bin"
_NO_HEAD = b"[[], 0]\n"


def snapshot_of(
    given: Mapping[str, Any],
    environment: TrialEnvironment | None,
    kept_elsewhere: Iterable[Any] = (),
    frame: FrameType | None = None,
) -> CallSnapshot:
    """Return all that a call can reach, as it is now; trials of a search need not begin with the same values."""
    from det_native.heap import roots
    from det_native.heap.call import CallSnapshot

    config = {} if environment is None else environment.config
    exact = (config.get("searcher") or {}).get("name", "single") == "single"
    return CallSnapshot(*roots.roots_of_call(frame), given, kept_elsewhere, exact=exact)


class KeptChanges:
    """What has changed since a snapshot, for checkpoints.

    Parameters
    ----------
    snapshot : callable
        Returns the snapshot; None for a trial class, whose program is not the notebook's.
    reopen : callable, optional
        Says how a process that goes on opens a file again, see ``CallSnapshot.changes``.
    """

    def __init__(self, snapshot: Callable[[], CallSnapshot | None], *, reopen: Any = None) -> None:
        self._snapshot, self._reopen = snapshot, reopen
        self._saved: bytes | None = None
        self._warned: set[str] = set()
        #: What the checkpoint has that the process goes on from.
        self.before = b""

    def content(self) -> bytes:
        """Return, for a checkpoint, a line with what is left out, then the changes; nothing without a snapshot."""
        content = self._packed()
        self._saved = hashlib.blake2b(content).digest() if content else None
        return content

    def content_at_end(self) -> bytes:
        """Return the content when the training has ended, if the last checkpoint has another one; else nothing."""
        saved = self._saved
        content = self.content() if saved else b""
        return content if self._saved != saved else b""

    def save(self, folder: Path) -> None:
        """Write the content into a checkpoint."""
        write(folder, self.content())

    def save_end(self, checkpoints: Any) -> None:
        """Have the last checkpoint have what has changed since, when the training ended."""
        content = self.content_at_end()
        if content:
            checkpoints.save_end(lambda folder: write(folder, content))

    def digest(self) -> bytes:
        """Return what tells the present changes from others."""
        return hashlib.blake2b(self._packed()).digest()

    def _packed(self) -> bytes:
        from det_native.heap import call

        snapshot = self._snapshot()
        if snapshot is None:
            return b""
        changes = snapshot.changes(call.LIMIT, reopen=self._reopen)
        for sentence in changes.left_out:
            if sentence not in self._warned:
                self._warned.add(sentence)
                logger.warning("%s A trial that is stopped and goes on has it as the cells make it.", sentence)
        head = json.dumps([changes.left_out, len(changes.large)])
        return b"".join((head.encode(), b"\n", changes.data, changes.large))

    def open(self, folder: Path | None) -> None:
        """Read what a checkpoint has, for :meth:`restore`."""
        self.before = b"" if folder is None else read_whole(folder)

    def restore(self) -> None:
        """Put it in place, once, in a process that goes on with the training; files are opened again."""
        content, self.before = self.before, b""
        snapshot = self._snapshot()
        if snapshot is not None and content:
            end = len(content) - json.loads(content.partition(b"\n")[0])[1]
            for part in (content[:end], _NO_HEAD + content[end:]):
                for sentence in _put(part, snapshot, reopen=True):
                    logger.warning("%s", sentence)


def write(folder: Path, content: bytes) -> None:
    """Write the files of a checkpoint, if there is anything to be in them."""
    from det_native.heap import call

    if content:
        size = len(content) - json.loads(content.partition(b"\n")[0])[1]
        (folder / _FILE).write_bytes(content[:size])
        if size < len(content):
            (folder / call.LARGE).write_bytes(_NO_HEAD + content[size:])


def read(folder: Path, name: str = _FILE) -> bytes:
    """Return the content of a file; nothing where there is none."""
    return (folder / name).read_bytes() if (folder / name).exists() else b""


def read_whole(folder: Path) -> bytes:
    """Return the content that :func:`write` was given."""
    from det_native.heap import call

    return read(folder) + read(folder, call.LARGE).removeprefix(_NO_HEAD)


def folder_in(checkpoint: Path, name: str = _FILE) -> Path:
    """Return the folder of a checkpoint whose file is the latest."""
    from det_harness.trial import after_training

    after = after_training.weights_in(checkpoint)
    return after if (after / name).exists() else checkpoint


def bring_home(checkpoint: Path, snapshot: CallSnapshot | None, name: str = _FILE) -> list[str]:
    """Put changes in place in the process that has submitted the training; return what stays as it was."""
    content = read(folder_in(checkpoint, name), name)
    if snapshot is None or not content:
        return []
    manifest = checkpoint / "manifest.json"  # not of a worker, where an earlier call of the program loads
    experiment = json.loads(manifest.read_bytes())["experiment_id"] if manifest.exists() else None
    return [*json.loads(content.partition(b"\n")[0])[0], *_put(content, snapshot, experiment=experiment)]


def _put(content: bytes, snapshot: CallSnapshot, **how: Any) -> list[str]:
    data = content.partition(b"\n")[2]
    return [*dict.fromkeys(snapshot.put(data, **how))] if data else []
