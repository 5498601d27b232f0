"""The files of a checkpoint in a folder: what is there already is verified, and not fetched again."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from det_native.errors import CheckpointError
from det_native.schema.home import Home
from det_native.schema.manifests import CheckpointFile, CheckpointManifest

_MANIFEST = "manifest.json"
#: Of the checkpoints in the cache so many stay, and those that were used on the last day.
_CACHED = 5
_CACHED_SECONDS = 24 * 3600.0

Fetch = Callable[[Path], object]


def fill(folder: Path, manifest: CheckpointManifest, fetch: Fetch) -> None:
    """Have the files of a checkpoint in an existing folder.

    Parameters
    ----------
    folder : Path
        Empty, or filled by this checkpoint before: then only files that are not there any more are fetched.
    fetch : callable
        Puts all files, verified, into an empty folder.

    Raises
    ------
    CheckpointError
        If the folder has other content, or a file in it was changed.
    """
    if not any(folder.iterdir()):
        fetch(folder)
        return
    missing = missing_files(folder, manifest)
    if not missing and (folder / _MANIFEST).is_file():
        return
    with tempfile.TemporaryDirectory(prefix=".det-checkpoint-", dir=folder.parent) as beside:
        fetch(Path(beside))
        for file in missing:
            target = folder / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            (Path(beside) / file.path).replace(target)
        (Path(beside) / _MANIFEST).replace(folder / _MANIFEST)


def missing_files(folder: Path, manifest: CheckpointManifest) -> list[CheckpointFile]:
    """Return the files that a folder lacks which this checkpoint has filled, wholly or in part.

    Raises
    ------
    CheckpointError
        If something else filled it, or a file in it was changed: nothing is written over.
    """
    described = _uuid_in(folder)
    if described not in (None, manifest.uuid):
        raise CheckpointError(f"{folder} has the files of checkpoint {described}. Give download() a folder of its own.")
    if described is None and (other := _other_file(folder, manifest)) is not None:
        raise CheckpointError(
            f"{folder} is not empty: {other} is not of this checkpoint. Give download() a folder of its own."
        )
    missing = []
    for file in manifest.files:
        path = folder / file.path
        if not path.is_file():
            missing.append(file)
        elif path.stat().st_size != file.size or _sha256(path) != file.sha256:
            raise CheckpointError(
                f"{path} was changed after it was downloaded. Move it away, or give download() another folder."
            )
    return missing


def cached(manifest: CheckpointManifest, fetch: Fetch) -> Path:
    """Return a folder of this user's cache with the files of a checkpoint, verified; fetched if need be.

    Parameters
    ----------
    fetch : callable
        Puts all files, verified, into an empty folder.

    Returns
    -------
    Path
        ``files`` in a folder of the checkpoint's own, for which what is made from them may lie beside it.
    """
    root = Home.default().path / "cache" / "checkpoints"
    own = root / manifest.uuid
    files = own / "files"
    own.mkdir(parents=True, exist_ok=True)
    os.utime(own)
    try:
        whole = files.is_dir() and not missing_files(files, manifest)
    except CheckpointError:
        whole = False  # it was written over
    if not whole:
        shutil.rmtree(files, ignore_errors=True)
        arriving = Path(tempfile.mkdtemp(prefix="arriving-", dir=own))
        try:
            fetch(arriving)
            if not files.is_dir():  # another process was faster
                arriving.rename(files)
        finally:
            shutil.rmtree(arriving, ignore_errors=True)
    _remove_old(root)
    return files


def _remove_old(root: Path) -> None:
    times = {folder: folder.stat().st_mtime for folder in root.iterdir()}
    newest_first = sorted(times, key=times.__getitem__, reverse=True)
    for folder in newest_first[_CACHED:]:
        if time.time() - times[folder] > _CACHED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def _uuid_in(folder: Path) -> str | None:
    try:
        described = json.loads((folder / _MANIFEST).read_bytes())
        return str(described["uuid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _other_file(folder: Path, manifest: CheckpointManifest) -> Path | None:
    """Return a file that is not of the checkpoint; a download that was interrupted leaves no others."""
    known = {file.path for file in manifest.files} | {_MANIFEST}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_dir() and name not in known:
            return Path(name)
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
