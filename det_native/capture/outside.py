"""Files outside of what is sent, which a program names by their absolute paths, on a master of another machine.

What the store there has (``det data put``) is read there by the same line: the worker has it below :data:`FOLDER` in
its working directory, and the program is compiled with that path. All else is named, with what can be done.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from det_native.capture.hash_cache import FileHash, FileStat, HashCache
from det_native.capture.missing_files import OF_THE_SYSTEM
from det_native.capture.model import Capture, OutsidePath
from det_native.capture.stored import Stored, in_store
from det_native.schema.datasets import MOST_FILES
from det_native.schema.manifests import FileEntry, PlaceEntry, ReadEntry
from det_native.schema.reports import CaptureRow
from det_native.schema.sizes import shown_size

#: In the working directory of a worker: the store's files by their absolute paths here.
FOLDER = ".det_outside"


@dataclass
class Outside:
    """What becomes of such files.

    Attributes
    ----------
    links : list of FileEntry
        What the store has, with its place on a worker.
    places : list of PlaceEntry
        Paths that the program is given another place for.
    reads : list of ReadEntry
        What is to be looked for on the workers.
    """

    links: list[FileEntry] = field(default_factory=list)
    places: list[PlaceEntry] = field(default_factory=list)
    reads: list[ReadEntry] = field(default_factory=list)
    rows: list[CaptureRow] = field(default_factory=list)


def settle_outside(capture: Capture, hashes: HashCache, stored: Stored | None) -> Outside:
    """Say of each file or folder whether the store has it, and what is read of the workers' machine itself.

    Parameters
    ----------
    stored : callable, optional
        Says which contents of these sizes the store has.
    """
    found = Outside()
    texts = {one.text for one in capture.paths.outside}
    found.rows = [row for row in capture.notes.rows if not (row.how == "path" and row.what in texts)]
    links: dict[str, FileEntry] = {}
    inside = [_files_of(one.path) for one in capture.paths.outside]
    stats = {path: stat for files in inside for path, stat in files}
    kept = in_store(stats, hashes, stored) if stored is not None else {}
    for one, files in zip(capture.paths.outside, inside, strict=True):
        has_all = all(path in kept and _is_portable(path) for path, _ in files)
        entries = [_entry(path, kept[path]) for path, _ in files] if has_all else []
        if entries:
            links.update((entry.path, entry) for entry in entries)
            found.places.append(PlaceEntry(text=one.text, target=_target(one.path)))
            found.rows.append(_stored_row(one, entries))
        else:
            found.rows.append(_unsent_row(one, files))
    found.links = [links[target] for target in sorted(links)]
    placed = [place.text for place in found.places]
    found.reads = [read for read in capture.paths.reads if not _is_below(read.path, placed)]
    certain = {read.path for read in found.reads}
    found.reads += [
        ReadEntry(path=one.text, where=one.where, certain=False)
        for one in capture.paths.outside
        if one.text not in certain and not _is_below(one.text, placed) and not one.text.startswith(OF_THE_SYSTEM)
    ]
    return found


def _is_below(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def _target(path: Path) -> str:
    return f"{FOLDER}{path.as_posix()}"


def _files_of(path: Path) -> list[tuple[Path, FileStat]]:
    """Return a file, or those of a folder; none if they are more than the store takes, or cannot be read."""
    try:
        paths = [path] if path.is_file() else list(islice(_walk(path), MOST_FILES + 1))
        return [] if len(paths) > MOST_FILES else [(one, FileStat.of(os.stat(one))) for one in paths]
    except OSError:
        return []


def _walk(folder: Path) -> Iterator[Path]:
    for inside, _, names in os.walk(folder, followlinks=True):  # as `det data put` does
        yield from (path for name in names if (path := Path(inside, name)).is_file())


def _is_portable(path: Path) -> bool:
    """Whether another machine can have a file by this name."""
    name = path.as_posix()
    return "\\" not in path.name and name.encode(errors="ignore").decode() == name


def _entry(path: Path, content: FileHash) -> FileEntry:
    return FileEntry(path=_target(path), sha256=content.sha256, size=content.stat.size)


def _stored_row(one: OutsidePath, entries: Sequence[FileEntry]) -> CaptureRow:
    note = "in the cluster's store of data: the workers read it there, by the same line"
    size = sum(entry.size for entry in entries)
    return CaptureRow(what=one.text, how="stored data", size=size, cell=one.cell, status="not sent", note=note)


def _unsent_row(one: OutsidePath, files: Sequence[tuple[Path, FileStat]]) -> CaptureRow:
    size = sum(stat.size for _, stat in files)
    amount = f"{len(files)} files, {shown_size(size)}; " if len(files) > 1 else ""
    note = (
        f"{amount}lies outside of what is sent: `det data put {one.text}` brings it to the workers, after which this "
        "line reads it there; or name a path or URL that the workers see"
    )
    return CaptureRow(what=one.text, how="path", size=size, cell=one.cell, status="not sent", note=note)
