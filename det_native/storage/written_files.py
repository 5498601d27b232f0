"""Files that the code of a trial writes: which are kept, put into the blob store, and what of that is to be reported.

A worker looks at them while it trains and at its end; the master, once a run has ended without that last look.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from det_native.errors import StorageError
from det_native.schema.outputs import DELETED, NAME_LENGTH, WrittenFile
from det_native.storage.blobs import BlobStore, FileState
from det_native.storage.file_states import LINK_SIZE, Baseline, Folder, Limits, State, deleted_in, written_in
from det_native.storage.frames import FrameError
from det_native.storage.paths import UnsafePathError, check_relative
from det_native.storage.room import free_bytes, lacks_room

logger = logging.getLogger("det_native")

SIZE_VARIABLE = "DET_ARTIFACTS_MB"
FILES_VARIABLE = "DET_ARTIFACTS_FILES"

#: A file that was changed so shortly before is perhaps being written.
STILL_NS = 1_000_000_000
# What is left of the disk for others.
_SPARE_BYTES = 64 << 20
# A file that changes all the time is stored after pauses that grow with every version, since each takes room: of one
# that changes for a day there are about fifteen, of a small one a version a minute at most.
_FIRST_PAUSE = 5.0
_SMALL_BYTES = 64 << 10
_LONGEST_PAUSE_OF_SMALL = 60.0
# Files of which it is said one by one that they are not kept.
_MOST_NOTES = 50
_LINK = "It is a link to a folder: the files of that folder are kept where they lie, and the link is not."
_ATTEMPTS = 3
_CERTAINLY_SHORT = 255  # for every part of a path
_HASHED_AT_ONCE = 1 << 20


@dataclass
class Selection:
    """Which of the files are kept, in order of their names, and why others are not, by their paths."""

    kept: list[str]
    refused: dict[str, WrittenFile]


@dataclass
class Changes:
    """What is to be reported: files that are new or have changed, and paths that are not there any more."""

    files: list[WrittenFile] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.files or self.removed)


def select(states: Mapping[str, State], limits: Limits, batch: int) -> Selection:
    """Choose what is kept within the limits: the smallest files first. Pure."""
    refused: dict[str, WrittenFile] = {}
    usable: list[str] = []
    for name in sorted(states):
        fault = _LINK if states[name][2] == LINK_SIZE else _fault(name)
        if fault:
            shown = shown_name(name)
            refused[shown] = WrittenFile(path=shown, size=max(0, states[name][2]), batch=batch, note=fault)
        else:
            usable.append(name)
    kept: list[str] = []
    over: list[str] = []
    total = 0
    for name in sorted(usable, key=lambda path: (states[path][2], path)):
        total += states[name][2]
        (kept if total <= limits.size and len(kept) < limits.files else over).append(name)
    several = len(kept) >= limits.files
    for name in over[-_MOST_NOTES:]:
        size = states[name][2]
        note = _too_many(limits) if several else _too_large(size, limits)
        refused[name] = WrittenFile(path=name, size=size, batch=batch, note=note)
    rest = over[:-_MOST_NOTES]
    if rest:
        folder = os.path.commonpath([os.path.dirname(name) for name in rest]) or "."
        note = f"{len(rest)} more files in this folder are not kept: {_too_many(limits) if several else _limit(limits)}"
        size = sum(states[name][2] for name in rest)
        refused[folder] = WrittenFile(path=folder[:NAME_LENGTH], size=size, batch=batch, note=note)
    return Selection(sorted(kept), refused)


def shown_name(name: str) -> str:
    """Return a name as it can be sent: what is not valid Unicode, or too long, is written in another way."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")[:NAME_LENGTH]


# Most names are like this, of which there may be very many at each look.
_PLAIN = re.compile(r"[\w-][\w. -]*(/[\w-][\w. -]*)*", re.ASCII)


def _fault(name: str) -> str:
    if len(name) <= _CERTAINLY_SHORT and _PLAIN.fullmatch(name):
        return ""
    try:
        check_relative(name)
    except UnsafePathError as error:
        return f"{error} It is not kept; rename it."
    if len(name) > NAME_LENGTH:
        return f"The path has more than {NAME_LENGTH} characters, and the file is not kept; use a shorter one."
    return ""


def _limit(limits: Limits) -> str:
    return (
        f"the files that this trial has written are more than {megabytes(limits.size)}, the limit, and the largest are "
        f"left out. Set environment_variables: [{SIZE_VARIABLE}=...] (in MB) for a higher one."
    )


def _too_large(size: int, limits: Limits) -> str:
    return f"Not kept ({megabytes(size)}): {_limit(limits)}"


def _too_many(limits: Limits) -> str:
    return (
        f"this trial has written more than {limits.files} files, the limit. Write fewer, or set environment_variables: "
        f"[{FILES_VARIABLE}=...] for a higher one."
    )


def megabytes(size: int) -> str:
    """Return a size for messages."""
    return f"{size / 1e6:.1f} MB" if size < 1e8 else f"{size / 1e6:.0f} MB"


@dataclass
class _Stored:
    """What is known of a file: the state in which it was stored last, and after how long it may be stored again."""

    state: State
    sha256: str | None
    at: float
    pause: float = _FIRST_PAUSE


class FileCollection:
    """The files that one run has written, and which of them are stored.

    Parameters
    ----------
    blobs : BlobStore
        Where contents go.
    folders : callable
        Returns the folders that the run's processes write to; the first rank's come first.
    reported : mapping of str to WrittenFile, optional
        What is known of the run already.
    """

    def __init__(
        self,
        blobs: BlobStore,
        folders: Callable[[], Sequence[Folder]],
        limits: Limits,
        reported: Mapping[str, WrittenFile] | None = None,
    ) -> None:
        self._blobs = blobs
        self._folders = folders
        self._limits = limits
        self._reported = dict(reported or {})
        self._stored: dict[str, _Stored] = {}

    def look(self, batch: int, *, last: bool = False) -> Changes:
        """Store what is new, and return what is to be reported of it.

        Parameters
        ----------
        batch : int
            Batches done.
        last : bool
            Nobody writes any more: also what has changed just now is taken. Otherwise it waits for the next look.
        """
        folders = self._folders()
        current = written_in(folders)
        selection = select({name: state for name, (_, state) in current.items()}, self._limits, batch)
        changes = Changes()
        for name in selection.kept:
            path, state = current[name]
            if self._is_due(name, state, last=last):
                self._take(changes, self._store(path, name, state, batch, last=last))
        for file in selection.refused.values():
            self._stored.pop(file.path, None)
            self._take(changes, file)
        # A file that is replaced is not there for a moment; what is deleted is known at the end.
        deleted = _deleted(folders[0], batch, self._limits.files) if last and folders else []
        for file in deleted:
            self._take(changes, file)
        present = {*selection.kept, *selection.refused, *(file.path for file in deleted)}
        for name in [name for name in self._reported if name not in present]:
            changes.removed.append(name)
            del self._reported[name]
            self._stored.pop(name, None)
        return changes

    def _is_due(self, name: str, state: State, *, last: bool) -> bool:
        known = self._stored.get(name)
        if known is not None and known.state == state and known.sha256 is not None:
            return False
        if last:
            return True
        if time.time_ns() - max(state[3], state[4]) < STILL_NS:
            return False
        return known is None or time.monotonic() - known.at >= known.pause

    def _take(self, changes: Changes, file: WrittenFile | None) -> None:
        if file is None:
            return
        known = self._reported.get(file.path)
        if known is None or (known.sha256, known.size, known.note) != (file.sha256, file.size, file.note):
            not_kept = file.note not in ("", DELETED) and (known is None or known.note != file.note)
            if not_kept and len(self._reported) < _MOST_NOTES:
                logger.warning("%s, which the training has written, is not kept. %s", file.path, file.note)
            changes.files.append(file)
            self._reported[file.path] = file

    def _store(self, path: Path, name: str, state: State, batch: int, *, last: bool) -> WrittenFile | None:
        """Put the content into the store; None if the file is being changed, or is gone."""
        sha256, note = None, ""
        for attempt in range(_ATTEMPTS if last else 1):
            try:
                sha256, size = self._put(path, None if last else state)
                break
            except FileNotFoundError:
                return None
            except FrameError:  # it changed meanwhile
                if not last:
                    return None
                note, size = "It was changed while it was read, and is not kept.", state[2]
                time.sleep(0.1 * attempt)
            except (OSError, StorageError) as error:
                note, size = self._reason(error), state[2]
                break
        known = self._stored.get(name)
        pause = _FIRST_PAUSE if known is None else 2 * known.pause
        if size <= _SMALL_BYTES:
            pause = min(pause, _LONGEST_PAUSE_OF_SMALL)
        self._stored[name] = _Stored(state, sha256, time.monotonic(), pause)
        return WrittenFile(path=name, sha256=sha256, size=size, batch=batch, note="" if sha256 else note)

    def _put(self, path: Path, state: State | None) -> tuple[str, int]:
        digest = hashlib.sha256()
        with open(path, "rb") as stream:
            found = os.fstat(stream.fileno())
            while chunk := stream.read(_HASHED_AT_ONCE):
                digest.update(chunk)
        sha256 = digest.hexdigest()
        if not self._blobs.refresh(sha256):
            free = free_bytes(self._blobs.uri) if self._blobs.local else None
            if free is not None and free < found.st_size + _SPARE_BYTES:
                raise StorageError(f"The disk of {self._blobs.uri} has {megabytes(free)} left, too few for it.")
            self._blobs.put_file(sha256, path, None if state is None else FileState.of(found))
        return sha256, found.st_size

    def _reason(self, error: Exception) -> str:
        if isinstance(error, StorageError) and not lacks_room(error):
            return str(error)[:1_000]
        if lacks_room(error):
            return f"The disk of {self._blobs.uri} is full, and the file is not kept."
        assert isinstance(error, OSError)
        return f"It cannot be read: {error.strerror or error}."


def _deleted(folder: Folder, batch: int, most: int) -> list[WrittenFile]:
    names = [name for name in deleted_in(folder) if not _fault(name)]
    deleted = [WrittenFile(path=name, size=0, batch=batch, note=DELETED) for name in names[:most]]
    if len(names) > most:
        note = f"The training has deleted {len(names) - most} more files, over the limit of {most} ({FILES_VARIABLE})."
        deleted.append(WrittenFile(path=".", size=0, batch=batch, note=note))
    return deleted


def look_at_left(folders: Sequence[Path], blobs: BlobStore, reported: Mapping[str, WrittenFile], batch: int) -> Changes:
    """Store what a run had written that has ended without its last look, and return what is to be reported of it.

    Parameters
    ----------
    folders : sequence of Path
        Of the run's processes, each with what was there when training began; the first rank's comes first.
    reported : mapping of str to WrittenFile
        What is known of the run.
    batch : int
        Batches done.
    """
    known = [(folder, baseline) for folder in folders if (baseline := Baseline.read(folder)) is not None]
    if not known:
        return Changes()
    written = [each for folder, baseline in known for each in baseline.folders(folder)]
    return FileCollection(blobs, lambda: written, known[0][1].limits, reported).look(batch, last=True)


def limits_of(variables: Mapping[str, str]) -> Limits:
    """Return the limits that the environment sets; the default ones for what it does not, or not with a number."""
    default = Limits()
    return Limits(
        size=int(_number(variables, SIZE_VARIABLE, default.size / 1e6) * 1e6),
        files=int(_number(variables, FILES_VARIABLE, default.files)),
    )


def _number(variables: Mapping[str, str], name: str, default: float) -> float:
    written = variables.get(name, "")
    try:
        value = float(written or default)
        if 0 <= value < 1e15:
            return value
    except ValueError:
        pass
    logger.warning("%s=%r is not a number of 0 or more; the default, %d, is used.", name, written, default)
    return default
