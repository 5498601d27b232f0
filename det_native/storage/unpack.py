"""A bundle's files, from blobs into a worker's empty directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from det_native.errors import BundleCorruptError, StorageError
from det_native.schema.manifests import BundleManifest, FileEntry
from det_native.storage.blobs import BlobStore
from det_native.storage.paths import UnsafePathError, check_relative

_GROUP = 64
_LARGE = 4 << 20


def unpack_bundle(manifest: BundleManifest, blobs: BlobStore, into: Path) -> None:
    """Write the files of a bundle into an empty directory, each verified by size and hash.

    Parameters
    ----------
    manifest : BundleManifest
        What to write; all paths are checked before the first file is written.
    blobs : BlobStore
        Where the contents are.
    into : Path
        Directory to fill. It is made if need be, and must be empty: then nothing in it can lead elsewhere.

    Raises
    ------
    BundleCorruptError
        A path leaves the bundle or stands twice, or a content is not what the manifest says; it names the file.
    StorageError
        A blob is not there, `into` is not empty, or a file cannot be written.
    """
    _check_paths(manifest.files)
    _make_empty(into)
    root = os.fspath(into)
    for folder in sorted({entry.path.rpartition("/")[0] for entry in manifest.files} - {""}):
        os.makedirs(f"{root}/{folder}", exist_ok=True)
    blobs.fetch(entry.sha256 for entry in manifest.files)
    try:
        _write_groups(_groups(manifest.files), blobs, root)
    except BundleCorruptError:
        blobs.remove_damaged(manifest.hashes())  # all that is damaged is sent anew at once, not one by one
        raise


def _write_groups(groups: Sequence[Sequence[FileEntry]], blobs: BlobStore, root: str) -> None:
    workers = min(os.cpu_count() or 1, 8, len(groups))
    if workers < 2:
        for group in groups:
            _write_files(group, blobs, root)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="det-unpack") as pool:
        futures = [pool.submit(_write_files, group, blobs, root) for group in groups]
        try:
            for future in futures:
                future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _check_paths(files: Sequence[FileEntry]) -> None:
    paths: set[str] = set()
    folders: set[str] = set()
    for entry in files:
        try:
            parts = check_relative(entry.path)
        except UnsafePathError as error:
            raise BundleCorruptError(f"The bundle names a file outside of its folder. {error}") from error
        if entry.path in paths:
            raise BundleCorruptError(f"The bundle names the file {entry.path!r} twice.")
        paths.add(entry.path)
        folders.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
    both = paths & folders
    if both:
        raise BundleCorruptError(f"The bundle names {min(both)!r} both as a file and as a folder.")


def _make_empty(into: Path) -> None:
    try:
        into.mkdir(parents=True, exist_ok=True)
        occupied = any(into.iterdir())
    except OSError as error:
        raise StorageError(f"The directory {str(into)!r} cannot be made: {error.strerror}.") from error
    if occupied:
        raise StorageError(f"The directory {str(into)!r} is not empty; a bundle is unpacked into an empty one.")


def _groups(files: Sequence[FileEntry]) -> list[list[FileEntry]]:
    """Gather small files, so that a thread gets about the same work each time."""
    groups: list[list[FileEntry]] = []
    group: list[FileEntry] = []
    size = 0
    for entry in files:
        group.append(entry)
        size += entry.size
        if len(group) >= _GROUP or size >= _LARGE:
            groups.append(group)
            group, size = [], 0
    if group:
        groups.append(group)
    return groups


def _write_files(files: Sequence[FileEntry], blobs: BlobStore, root: str) -> None:
    for entry in files:
        path = f"{root}/{entry.path}"
        try:
            size = blobs.write_to(entry.sha256, path, entry.mode & 0o777)
        except BundleCorruptError as error:
            raise BundleCorruptError(f"The file {entry.path!r} of the bundle is damaged. {error}") from error
        except StorageError as error:
            raise StorageError(f"The file {entry.path!r} of the bundle cannot be unpacked. {error}") from error
        if size != entry.size:
            os.unlink(path)
            raise BundleCorruptError(
                f"The file {entry.path!r} of the bundle has {size} bytes where its manifest says {entry.size}."
            )
