"""Files that are too large to travel and that the cluster's store of data has: the workers read them there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from det_native.capture.bundle_rows import summaries_of
from det_native.capture.files import DirectoryScan
from det_native.capture.hash_cache import FileHash, FileStat, HashCache
from det_native.capture.model import SourceFile
from det_native.schema.manifests import FileEntry, Sha256
from det_native.schema.reports import CaptureRow

#: Says which contents of the store have one of these sizes.
Stored = Callable[[Sequence[int]], Mapping[int, set[Sha256]]]

# Smaller ones travel as quickly as they are asked for, unless they are many.
_LEAST = 1 << 20
# A row for each file up to so many.
_ROWS = 12


@dataclass(frozen=True)
class Left:
    """What travels, and what does not."""

    scan: DirectoryScan | None
    files: list[SourceFile]
    links: tuple[FileEntry, ...]


def sizes_of(scan: DirectoryScan | None, files: Iterable[SourceFile]) -> dict[str, int]:
    """Return the sizes of all files by their targets; one that is gone has none, which is told when it is read."""
    sizes = {} if scan is None else {file.target: file.stat.size for file in scan.files}
    for file in files:
        try:
            sizes[file.target] = os.stat(file.path).st_size
        except OSError:
            sizes[file.target] = 0
    return sizes


def in_store(stats: Mapping[Path, FileStat], hashes: HashCache, stored: Stored) -> dict[Path, FileHash]:
    """Return which of these files the store has; only such are read of whose sizes it has some."""
    there = stored(sorted({stat.size for stat in stats.values()})) if stats else {}
    asked = [(os.fspath(path), stat) for path, stat in stats.items() if stat.size in there]
    found = hashes.hash_files(asked)
    return {
        Path(name): one
        for (name, _), one in zip(asked, found, strict=True)
        if one.sha256 in there.get(one.stat.size, ())
    }


def leave_to_store(
    scan: DirectoryScan | None, files: Sequence[SourceFile], hashes: HashCache, stored: Stored | None, limit: int
) -> Left:
    """Part what the store has from the rest: the large files, and if the rest exceeds the limit, the small ones too.

    Only files are read of whose sizes the store has any.
    """
    if stored is None:
        return Left(scan, list(files), ())
    scanned = () if scan is None else scan.files
    stats = {file.path: file.stat for file in scanned}
    for file in files:
        try:
            stats.setdefault(file.path, FileStat.of(os.stat(file.path)))
        except OSError:
            continue
    kept = in_store(stats, hashes, stored)
    large = {path: one for path, one in kept.items() if one.stat.size >= _LEAST}
    if sum(stat.size for path, stat in stats.items() if path not in large) <= limit:
        kept = large
    links = {
        file.target: FileEntry(path=file.target, sha256=kept[file.path].sha256, size=kept[file.path].stat.size)
        for file in (*scanned, *files)
        if file.path in kept
    }
    left = None if scan is None else replace(scan, files=tuple(file for file in scanned if file.path not in kept))
    named = [file for file in files if file.path not in kept]
    return Left(left, named, tuple(links[target] for target in sorted(links)))


def link_rows(links: Sequence[FileEntry]) -> Iterator[CaptureRow]:
    """Yield a row for each file that the store has, or for each folder of them where they are many."""
    where = "in the cluster's store of data: the workers read {} there, by the same {}"
    if len(links) <= _ROWS:
        for link in links:
            note = where.format("it", "name")
            yield CaptureRow(what=link.path, how="stored data", size=link.size, status="not sent", note=note)
        return
    for summary in summaries_of(links):
        note = f"{summary.how}, {where.format('them', 'names')}"
        yield CaptureRow(what=summary.what, how="stored data", size=summary.size, status="not sent", note=note)
