"""The files of a working directory and their states: what is there, and what has changed since training began."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from det_native.storage.blobs import FileState

# Made by tools, again and again.
SKIPPED = frozenset({"__pycache__", ".git", ".ipynb_checkpoints"})
#: Where a worker leaves what was in its working directory when training began, until it has reported what is new.
BASELINE_NAME = "files-before.json"
_FORMAT = 1

#: Device, inode, size, times of the content and of the entry in ns: tells that a file has not changed. A list, as JSON
#: gives it back.
State = list[int]


def state_of(path: Path | str, *, links: bool = False) -> State | None:
    """Return the state of a file, with `links` of what a link leads to; None if there is none."""
    try:
        found = os.stat(path, follow_symlinks=links)
    except OSError:
        return None
    return _state(found)


def _state(found: os.stat_result) -> State:
    state = FileState.of(found)
    return [found.st_dev, state.inode, state.size, state.mtime_ns, state.ctime_ns]


def walk(root: Path, *, links: bool = False, without: Collection[str] = frozenset()) -> Iterator[tuple[str, State]]:
    """Yield the files below a folder with their states, by paths with ``/``.

    Folders that are links are not entered. A link to a file is passed over; with `links` it counts as the file that it
    leads to, if that lies below `root` too. The folders `without`, by their paths in `root`, are left out.
    """
    real_root = os.path.realpath(root) + os.sep if links else ""
    pending = [""]
    while pending:
        prefix = pending.pop()
        with suppress(OSError), os.scandir(os.path.join(root, prefix)) as entries:
            for entry in entries:
                name = f"{prefix}{entry.name}"
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in SKIPPED and name not in without:
                            pending.append(f"{name}/")
                    elif entry.is_file(follow_symlinks=False):
                        yield name, _state(entry.stat(follow_symlinks=False))
                    elif links and entry.is_symlink() and os.path.realpath(entry.path).startswith(real_root):
                        found = entry.stat()
                        if stat.S_ISREG(found.st_mode):
                            yield name, _state(found)
                except OSError:  # removed meanwhile
                    continue


def changed_files(before: Mapping[str, State], now: Mapping[str, State]) -> dict[str, State]:
    """Return the files that are new or in another state than before."""
    return {name: state for name, state in now.items() if before.get(name) != state}


@dataclass(frozen=True)
class Limits:
    """How much of what a training writes is kept: bytes of a trial, and files."""

    size: int = 1_000_000_000
    files: int = 10_000


@dataclass(frozen=True)
class Baseline:
    """What was in a folder when training began, and the limits for what is new."""

    states: dict[str, State] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    def write(self, folder: Path) -> None:
        """Leave it in the folder of a run, whole or not at all."""
        content = {
            "format": _FORMAT,
            "states": self.states,
            "limits": [self.limits.size, self.limits.files],
        }
        temporary = folder / f".{BASELINE_NAME}.{os.getpid()}"
        temporary.write_text(json.dumps(content), encoding="utf-8", errors="surrogateescape")
        temporary.replace(folder / BASELINE_NAME)

    @classmethod
    def read(cls, folder: Path) -> Baseline | None:
        """Return what was left in the folder of a run; None if nothing was, or it cannot be read."""
        try:
            content: dict[str, Any] = json.loads((folder / BASELINE_NAME).read_text("utf-8", "surrogateescape"))
            size, files = content["limits"]
            return cls(content["states"], Limits(size, files))
        except (OSError, ValueError, KeyError, TypeError):
            return None


def first_of(folders: Iterable[tuple[Path, Mapping[str, State]]]) -> dict[str, tuple[Path, State]]:
    """Return in which folder each file counts, and its state there: of the same path, the first folder's."""
    merged: dict[str, tuple[Path, State]] = {}
    for root, states in folders:
        for name, state in states.items():
            merged.setdefault(name, (root, state))
    return merged
