"""The files of a working directory and their states: what is there, and what has changed since training began."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from det_native.storage.blobs import FileState

# Made by tools, again and again.
SKIPPED = frozenset({"__pycache__", ".git", ".ipynb_checkpoints"})
#: Where a worker leaves what was in its working directory when training began, until it has reported what is new.
BASELINE_NAME = "files-before.json"
_FORMAT = 1

#: In the state of a link to a folder, in place of a size.
LINK_SIZE = -1
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
    leads to, if that lies below `root` too, and one to a folder comes with `LINK_SIZE`. The folders `without`, by their
    paths in `root`, are left out.
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
                    elif links and entry.is_dir():
                        state = _state(entry.stat(follow_symlinks=False))
                        yield name, [*state[:2], LINK_SIZE, *state[3:]]
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
class Folder:
    """A folder that a training writes to: what was in it before, and where its files belong, relative to the working
    directory, with a ``/`` at the end; nothing for that itself. The folders `without` in it are not looked at.
    """

    root: Path
    before: Mapping[str, State] = field(default_factory=dict)
    prefix: str = ""
    without: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Baseline:
    """What was in the working directory when training began, and the limits for what is new.

    Attributes
    ----------
    elsewhere : dict of str to str
        Folders that lie elsewhere and were empty, by where their files belong; see `Folder`.
    """

    states: dict[str, State] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    elsewhere: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Leave it in the folder of a process, whole or not at all."""
        content = {
            "format": _FORMAT,
            "states": self.states,
            "limits": [self.limits.size, self.limits.files],
            "elsewhere": self.elsewhere,
        }
        temporary = folder / f".{BASELINE_NAME}.{os.getpid()}"
        temporary.write_text(json.dumps(content), encoding="utf-8", errors="surrogateescape")
        temporary.replace(folder / BASELINE_NAME)

    @classmethod
    def read(cls, folder: Path) -> Baseline | None:
        """Return what was left in the folder of a process; None if nothing was, or it cannot be read."""
        try:
            content: dict[str, Any] = json.loads((folder / BASELINE_NAME).read_text("utf-8", "surrogateescape"))
            size, files = content["limits"]
            return cls(content["states"], Limits(size, files), content["elsewhere"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def folders(self, folder: Path) -> list[Folder]:
        """Return the folders that the process of this folder writes to."""
        others = [Folder(Path(root), prefix=prefix) for prefix, root in self.elsewhere.items()]
        return [Folder(folder / "work", self.states), *others]


def written_in(folders: Sequence[Folder]) -> dict[str, tuple[Path, State]]:
    """Return the files that are new in the folders, or have changed: where each lies, and its state.

    Of the same path, the first folder's counts. A link to a folder that lies elsewhere is not news.
    """
    merged: dict[str, tuple[Path, State]] = {}
    links = {folder.prefix.rstrip("/") for folder in folders}
    for folder in folders:
        for name, state in changed_files(
            folder.before, dict(walk(folder.root, links=True, without=folder.without))
        ).items():
            if name not in links:
                merged.setdefault(f"{folder.prefix}{name}", (folder.root / name, state))
    return merged


def deleted_in(folder: Folder) -> list[str]:
    """Return the files that were in a folder before and are gone, and of folders that are gone with them each."""
    gone = [name for name in folder.before if not os.path.lexists(folder.root / name)]
    folders = {parent for name in gone for parent in PurePosixPath(name).parents if not (folder.root / parent).exists()}
    return sorted([*gone, *map(str, folders)])
