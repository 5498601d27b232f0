"""How a folder of files becomes a checkpoint: its files are found and hashed, and on a local disk made to last."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath

from det_native.errors import CheckpointCorruptError, StorageError
from det_native.schema.manifests import CheckpointFile, CheckpointManifest
from det_native.storage.folder import LocalFolder, remove_file, write_all
from det_native.storage.manifest_file import MANIFEST, changed, encode
from det_native.storage.paths import check_relative

CHUNK = 4 << 20
THREADS = min(os.cpu_count() or 1, 8)
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)

# Goes through the pieces of a file, with rests between them where the processor is needed for something else.
Throttle = Callable[[Iterable[bytes]], Iterable[bytes]]


def walk(directory: Path) -> list[str]:
    """Return the relative paths of all files, sorted."""
    names: list[str] = []
    pending = [""]
    while pending:
        prefix = pending.pop()
        with os.scandir(directory / prefix) as entries:
            for entry in entries:
                name = f"{prefix}{entry.name}"
                check_relative(name)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{name}/")
                elif entry.is_file(follow_symlinks=False):
                    names.append(name)
                else:
                    raise StorageError(f"A checkpoint consists of plain files; {name!r} is a link or a special file.")
    if MANIFEST in names:
        raise StorageError(f"A file of a checkpoint is called {MANIFEST!r}; that name is reserved.")
    return sorted(names)


def described(
    directory: Path,
    names: Sequence[str],
    manifest: CheckpointManifest,
    pool: ThreadPoolExecutor,
    throttle: Throttle,
) -> CheckpointManifest:
    """Return the manifest with sizes and hashes of the files."""
    files = pool.map(lambda name: _describe(directory, name, throttle), names)
    return manifest.model_copy(update={"files": tuple(files)})


def _describe(directory: Path, name: str, throttle: Throttle) -> CheckpointFile:
    digest, size = hashlib.sha256(), 0
    with open(directory / name, "rb", buffering=0) as stream:
        for piece in throttle(iter(partial(stream.read, CHUNK), b"")):
            digest.update(piece)
            size += len(piece)
    return CheckpointFile(path=name, sha256=digest.hexdigest(), size=size)


def publish_local(
    folder: LocalFolder,
    directory: Path,
    names: Sequence[str],
    manifest: CheckpointManifest,
    throttle: Throttle,
    like: CheckpointManifest | None,
) -> CheckpointManifest:
    """Make the files of a directory a checkpoint of a local folder; see ``CheckpointStorage.publish``."""
    source = directory
    if os.stat(directory).st_dev != folder.device():
        source = Path(folder.create_folder())
        try:
            shutil.copytree(directory, source, dirs_exist_ok=True)
        except OSError:
            shutil.rmtree(source, ignore_errors=True)
            raise
    # One hashes from the page cache while the other waits for the disk.
    with ThreadPoolExecutor(THREADS) as hashing, ThreadPoolExecutor(THREADS) as synchronising:
        synchronised = synchronising.map(_fsync, _files_and_folders(source, names))
        complete = described(source, names, manifest, hashing, throttle)
        list(synchronised)  # before the manifest, which must never speak of what is not on the disk
    if like is not None:
        _check_links(folder, source, complete, like)
    try:
        _write_manifest(source, complete)
        os.rename(source, folder.path(manifest.uuid))
    except OSError as error:
        remove_file(str(source / MANIFEST))
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise StorageError(f"Checkpoint {manifest.uuid} exists already at {folder.uri}.") from error
        raise
    _fsync(folder.root)
    if source != directory:
        shutil.rmtree(directory)
    return complete


def _check_links(folder: LocalFolder, source: Path, complete: CheckpointManifest, like: CheckpointManifest) -> None:
    """Refuse links to files of an earlier checkpoint that are damaged: here they would pass for whole."""
    earlier = {file.path: file for file in like.files}
    for file in complete.files:
        old = earlier.get(file.path)
        if old is None or old.sha256 == file.sha256 or os.stat(source / file.path).st_nlink == 1:
            continue
        if os.path.samefile(source / file.path, folder.path(f"{like.uuid}/{file.path}")):
            raise CheckpointCorruptError(changed(like.uuid, old))


def _files_and_folders(directory: Path, names: Sequence[str]) -> list[Path]:
    folders = {directory / parent for name in names for parent in PurePosixPath(name).parents}
    return [*(directory / name for name in names), *folders]


def _write_manifest(directory: Path, manifest: CheckpointManifest) -> None:
    descriptor = os.open(directory / MANIFEST, NEW_FILE, 0o644)
    try:
        write_all(descriptor, [encode(manifest)])
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    _fsync(directory)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
