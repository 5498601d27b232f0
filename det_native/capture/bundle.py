"""From what capture found to a bundle: the manifest, the contents by hash, and the report."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from det_native.capture.bundle_rows import (
    Placed,
    Summary,
    key_warnings,
    rows_of,
    rows_of_inputs,
    rows_of_others,
    summaries_of,
)
from det_native.capture.files import (
    BUNDLE_LIMIT,
    DirectoryScan,
    ScannedFile,
    check_size,
    forget_scans,
    scan_tree,
)
from det_native.capture.folders import has_files
from det_native.capture.hash_cache import FileHash, FileStat, HashCache, default_cache_path, remove_cache
from det_native.capture.model import Bundle, Capture, CapturedStreams, CapturedValue, SourceFile
from det_native.capture.outside import Outside, settle_outside
from det_native.capture.own_folder import own_places
from det_native.capture.packages import current_interpreter
from det_native.capture.secret_files import without_secret_files
from det_native.capture.stored import Stored, leave_to_store, link_rows, sizes_of
from det_native.errors import CaptureError, Problem
from det_native.schema.manifests import (
    BundleManifest,
    FileEntry,
    FolderEntry,
    PlaceEntry,
    Sha256,
    StreamsEntry,
    ValueEntry,
)

_HEADLINE = "Files that belong to the call cannot be sent together:"


def assemble(
    capture: Capture,
    *,
    context_dir: Path | None,
    protocol: int,
    limit: int = BUNDLE_LIMIT,
    cache: HashCache | None = None,
    stored: Stored | None = None,
    elsewhere: bool = False,
) -> Bundle:
    """Make the bundle of a capture, with all files of a context directory.

    Parameters
    ----------
    capture : Capture
        Program, values and files.
    context_dir : Path or None
        Directory that is sent whole (but for what is ignored); it becomes the working directory of the code.
    protocol : int
        Version of the protocol that client, master and worker speak.
    limit : int
        Raw bytes of all files and values that may not be exceeded.
    cache : HashCache, optional
        Where hashes of files are remembered; default the user's.
    stored : callable, optional
        Says which contents of these sizes the cluster's store of data has. It is asked if the limit is exceeded, and,
        `elsewhere`, of what the program names outside of what is sent. What is there does not travel.
    elsewhere : bool
        Whether the workers may be on another machine: then what lies here outside of what is sent may not be there.

    Raises
    ------
    CaptureError
        A file cannot be read, or two different files have the same place; lists all of them.
    BundleTooLargeError
        The limit is exceeded; lists the ten largest files and values.
    """
    scan = scan_tree(context_dir).without_made(capture.paths.made) if context_dir is not None else None
    public = without_secret_files(scan, capture.files)
    scan, capture.files = public.scan, public.files
    hashes = cache or _shared_cache()
    outside = (
        settle_outside(capture, hashes, stored)
        if elsewhere
        else Outside(reads=capture.paths.reads, rows=capture.notes.rows)
    )
    sizes = sizes_of(scan, capture.files)
    links: tuple[FileEntry, ...] = ()
    named: Sequence[SourceFile] = capture.files
    if sum(sizes.values()) > limit:  # before anything is read
        found = leave_to_store(scan, capture.files, hashes, stored, limit)
        scan, named, links = found.scan, found.files, found.links
        check_size(sizes_of(scan, named).items(), limit, context_dir)
    inherited = _place_scan(scan, hashes) if scan else _NO_FOLDER
    explicit = _place(named, hashes)
    files = _merge(inherited, explicit)
    values = tuple(_value_entry(value) for value in capture.values)
    _check_limit(files, values, limit, context_dir)
    streams = tuple(_streams_entry(streams) for streams in capture.history.streams)
    outside.places += _own_places(capture, (*files, *links))
    folders = _folders(capture, (*files, *links))
    manifest = _manifest(protocol, capture, files, values, streams, links, outside, folders)
    contents = dict(inherited.contents)
    contents |= {placed.entry.sha256: placed.content for placed in explicit}
    contents |= {entry.sha256: value.content for entry, value in zip(values, capture.values, strict=True)}
    contents |= {entry.sha256: one.content for entry, one in zip(streams, capture.history.streams, strict=True)}
    if manifest.init_streams is not None:
        contents[manifest.init_streams.sha256] = capture.history.init_streams
    contents |= capture.history.proof_values
    contents |= {one.hash: one.trained.history for one in capture.history.earlier}
    contents |= {answers.hash: answers.content for answers in capture.history.answers}
    report = [
        *rows_of(capture, inherited.summaries, explicit, values),
        *link_rows(links),
        *rows_of_inputs(capture.history.proof_values),
        *rows_of_others(capture, outside.rows, scan),
        *public.rows,
    ]
    states = inherited.states | _states(explicit)
    places = inherited.places | {placed.entry.path: placed.source.path for placed in explicit}
    return Bundle(manifest, contents, report, [*capture.notes.warnings, *key_warnings(capture, scan)], states, places)


def _states(files: Sequence[Placed]) -> dict[Sha256, tuple[int, int, int, int]]:
    return {placed.entry.sha256: placed.found.stat[:4] for placed in files if placed.found.settled}


def _check_limit(
    files: tuple[FileEntry, ...], values: tuple[ValueEntry, ...], limit: int, context_dir: Path | None
) -> None:
    if sum(entry.size for entry in files) + sum(entry.size for entry in values) > limit:
        sizes = [(entry.path, entry.size) for entry in files]
        sizes += [(f"value {entry.name!r}", entry.size) for entry in values]
        check_size(sizes, limit, context_dir)


_caches: dict[Path, HashCache] = {}


def _shared_cache() -> HashCache:
    path = default_cache_path()
    if path not in _caches:
        _caches[path] = HashCache(path)
    return _caches[path]


def forget_files() -> None:
    """Forget all files and their hashes, here and on disk, as if none had ever been captured."""
    forget_scans()
    _placed_folders.clear()
    _caches.clear()
    remove_cache(default_cache_path())


# Files --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _PlacedFolder:
    """The files of a context directory, and what follows from them alone."""

    files: tuple[Placed, ...]
    entries: tuple[FileEntry, ...]
    contents: dict[Sha256, Path | bytes]
    states: dict[Sha256, tuple[int, int, int, int]]
    summaries: tuple[Summary, ...]
    places: dict[str, Path]

    def without_contents(self) -> _PlacedFolder:
        """Return the same with the places of files instead of what was read of them: for the next time."""
        if not any(isinstance(content, bytes) for content in self.contents.values()):
            return self
        files = tuple(replace(placed, found=placed.found._replace(content=None)) for placed in self.files)
        return replace(self, files=files, contents=_contents(files))


_NO_FOLDER = _PlacedFolder((), (), {}, {}, (), {})

# The scan is None where a hash was not settled: it has to be looked at again.
_placed_folders: dict[Path, tuple[DirectoryScan | None, HashCache, _PlacedFolder]] = {}


def _place_scan(scan: DirectoryScan, hashes: HashCache) -> _PlacedFolder:
    """Hash the files of a scan; the very scan of last time needs no second look if all of its hashes were settled."""
    before = _placed_folders.get(scan.root)
    if before is not None and before[0] is scan and before[1] is hashes:
        return before[2]
    files = _hashed(scan, hashes)
    entries = tuple(placed.entry for placed in files)
    if before is not None and before[2].entries == entries:
        entries = before[2].entries  # the very objects: a manifest of them is compared with the last one in no time
    places = {placed.entry.path: placed.source.path for placed in files}
    folder = _PlacedFolder(files, entries, _contents(files), _states(files), tuple(summaries_of(entries)), places)
    settled = len(files) == len(scan.files) and all(map(_is_unchanged, scan.files, files))
    _placed_folders[scan.root] = (scan if settled else None, hashes, folder.without_contents())
    return folder


def _hashed(scan: DirectoryScan, hashes: HashCache) -> tuple[Placed, ...]:
    """Hash the files of a scan, but for those that have gone since: somebody works in the folder."""
    files = scan.files
    try:
        found = hashes.hash_files([(os.fspath(file.path), file.stat) for file in files])
    except CaptureError:
        files = tuple(file for file in scan.files if os.path.lexists(file.path))
        if len(files) == len(scan.files):
            raise
        found = hashes.hash_files([(os.fspath(file.path), file.stat) for file in files])
    return tuple(Placed(file, _entry(file.target, one), one) for file, one in zip(files, found, strict=True))


def _contents(files: Sequence[Placed]) -> dict[Sha256, Path | bytes]:
    return {placed.entry.sha256: placed.content for placed in files}


def _is_unchanged(file: ScannedFile, placed: Placed) -> bool:
    return placed.found.settled and placed.found.stat == file.stat


def _place(files: Sequence[SourceFile], hashes: HashCache) -> tuple[Placed, ...]:
    wanted: list[tuple[str, FileStat | None]] = [(os.fspath(file.path), None) for file in files]
    found = hashes.hash_files(wanted)
    return tuple(Placed(file, _entry(file.target, one), one) for file, one in zip(files, found, strict=True))


def _entry(target: str, found: FileHash) -> FileEntry:
    """Of the mode only executability travels, so that the bundle's id does not depend on an umask."""
    mode = 0o755 if found.stat.mode & 0o100 else 0o644
    return FileEntry(path=target, sha256=found.sha256, size=found.stat.size, mode=mode)


def _merge(inherited: _PlacedFolder, explicit: tuple[Placed, ...]) -> tuple[FileEntry, ...]:
    """Return all entries by path, each once; different contents at the same place are an error."""
    if not explicit:
        return inherited.entries
    chosen: dict[str, Placed] = {}
    problems: list[Problem] = []
    for placed in (*inherited.files, *explicit):
        target = placed.entry.path
        problems += _target_problems(placed.source)
        other = chosen.setdefault(target, placed)
        if other.entry.sha256 != placed.entry.sha256:
            problems.append(_conflict(target, other.source, placed.source))
    problems += _overlaps(chosen)
    if problems:
        raise CaptureError(_HEADLINE, problems)
    return tuple(chosen[target].entry for target in sorted(chosen))


def _target_problems(source: SourceFile) -> Iterator[Problem]:
    parts = source.target.split("/")
    if "\\" in source.target or "\0" in source.target or any(part in ("", ".", "..") for part in parts):
        what = f"has the place {source.target!r} on the worker, which is no relative path with forward slashes."
        yield Problem(str(source.path), what)


def _conflict(target: str, one: SourceFile, other: SourceFile) -> Problem:
    return Problem(
        target,
        f"two different files have this place: {str(one.path)!r} ({one.why}) and {str(other.path)!r} ({other.why}).",
        "Rename one of them, or leave one out.",
    )


def _overlaps(chosen: dict[str, Placed]) -> Iterator[Problem]:
    for target in chosen:
        parts = target.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if folder in chosen:
                what = f"is a file ({str(chosen[folder].source.path)!r}) and also the folder of {target!r}."
                yield Problem(folder, what, "Rename one of them.")


def _own_places(capture: Capture, entries: Sequence[FileEntry]) -> list[PlaceEntry]:
    """Return the places of absolute paths in the folder of the user's files."""
    root = capture.paths.root
    if root is None:
        return []
    sent = {part for entry in entries for part in (entry.path, *map(str, Path(entry.path).parents))}

    def travels(path: Path) -> bool:
        made = capture.paths.made is not None and capture.paths.made(root / path) is not None
        return made or path.as_posix() in sent or not has_files(root / path)

    return own_places(capture.paths.own, (value.content for value in capture.values), root, travels)


def _folders(capture: Capture, entries: Sequence[FileEntry]) -> tuple[FolderEntry, ...]:
    """Return the folders that have to be there, and those of files which travel that a cell makes itself."""
    root = capture.paths.root
    if root is None:
        return ()
    inside = {str(folder) for entry in entries for folder in Path(entry.path).parents} - {"."}
    made = {folder for folder in inside if capture.paths.makes(root / folder)}
    wanted = {folder: False for folder in capture.paths.folders if folder not in inside}
    return tuple(
        FolderEntry(path=path, made=is_made)
        for path, is_made in sorted({**wanted, **dict.fromkeys(made, True)}.items())
    )


# The manifest -------------------------------------------------------------------------------------------------------


def _value_entry(value: CapturedValue) -> ValueEntry:
    return ValueEntry(
        name=value.name,
        sha256=hashlib.sha256(value.content).hexdigest(),
        size=len(value.content),
        before_cell=value.before_cell,
        in_place=value.in_place,
    )


def _entry_of(content: bytes) -> StreamsEntry | None:
    return _streams_entry(CapturedStreams(content, 0, in_every_trial=False)) if content else None


def _streams_entry(streams: CapturedStreams) -> StreamsEntry:
    return StreamsEntry(
        sha256=hashlib.sha256(streams.content).hexdigest(),
        size=len(streams.content),
        before_cell=streams.before_cell,
        in_every_trial=streams.in_every_trial,
    )


def _of_earlier_calls(capture: Capture) -> dict[str, Any]:
    """Return what the program has of earlier calls; nothing that a master of an earlier version need not know."""
    answers = tuple(answers.entry() for answers in capture.history.answers)
    earlier = tuple(training.entry() for training in capture.history.earlier)
    return {"earlier": earlier} | ({"answers": answers} if answers else {})


_last_manifest: BundleManifest | None = None


def _manifest(
    protocol: int,
    capture: Capture,
    files: tuple[FileEntry, ...],
    values: tuple[ValueEntry, ...],
    streams: tuple[StreamsEntry, ...],
    links: tuple[FileEntry, ...],
    outside: Outside,
    folders: tuple[FolderEntry, ...],
) -> BundleManifest:
    """Make the manifest; an equal one gives the very object of last time, of which the id may be known already."""
    global _last_manifest
    manifest = BundleManifest(
        protocol=protocol,
        interpreter=current_interpreter(),
        program=capture.program.model_copy(update=_of_earlier_calls(capture)),
        files=files,
        values=values,
        requirements=tuple(dict.fromkeys(capture.requirements)),
        streams=streams,
        init_streams=_entry_of(capture.history.init_streams),
        proof=capture.history.proof,
        links=(*links, *outside.links),
        reads=tuple(outside.reads),
        places=tuple(outside.places),
        folders=folders,
        settled=tuple(capture.paths.settled({entry.path for entry in files})),
    )
    if _last_manifest is None or _last_manifest != manifest:
        _last_manifest = manifest
    return _last_manifest
