"""How files that have arrived from another machine appear in a home: verified, whole or not at all, by a rename."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from det_native.errors import CheckpointCorruptError, CheckpointNotFoundError, StorageError
from det_native.schema.manifests import CheckpointManifest
from det_native.storage import frames
from det_native.storage.checkpoints import CheckpointStorage
from det_native.storage.folder import LocalFolder, remove_file
from det_native.storage.frames import FrameError
from det_native.storage.manifest_file import MANIFEST


def publish_blob(blobs: Path, arrived: Path, sha256: str) -> None:
    """Let a packed blob that has arrived appear in a store, once its content has its hash. A repeat changes nothing.

    Raises
    ------
    FrameError
        If the content has another hash; what has arrived is removed.
    StorageError
        If nothing has arrived.
    """
    folder, key = LocalFolder(blobs), f"{sha256[:2]}/{sha256}"
    try:
        _verify_blob(arrived, sha256)
        folder.adopt(str(arrived), key)
    except FileNotFoundError as error:  # published before, or by another process at the same time
        if not folder.exists(key):
            raise StorageError(f"Nothing of the blob {sha256} has arrived: send it again.") from error
    except FrameError:
        remove_file(str(arrived))
        raise


def _verify_blob(path: Path, sha256: str) -> None:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for block in frames.read_blocks(stream.read):
            digest.update(block)
    if digest.hexdigest() != sha256:
        raise FrameError(f"The content that was sent as the blob {sha256} has the hash {digest.hexdigest()}.")


def publish_checkpoint(checkpoints: Path, arrived: Path, uuid: str) -> None:
    """Let a checkpoint that has arrived appear in a folder of checkpoints, once its files are what its manifest says.

    A repeat changes nothing.

    Raises
    ------
    CheckpointCorruptError
        If a file is missing, or another one than the manifest says; what has arrived is removed.
    StorageError
        If it has not arrived.
    """
    published = checkpoints / uuid
    if (published / MANIFEST).is_file():
        shutil.rmtree(arrived, ignore_errors=True)
        return
    try:
        storage = CheckpointStorage(str(arrived.parent))
        manifest = storage.manifest(uuid)
        _refuse_strangers(arrived, manifest)
        storage.verify(manifest)
        _synchronise(arrived)
        os.rename(arrived, published)
    except CheckpointCorruptError:
        if not (published / MANIFEST).is_file():
            shutil.rmtree(arrived, ignore_errors=True)
            raise
    except (CheckpointNotFoundError, OSError) as error:  # another process may have published it at the same time
        if not (published / MANIFEST).is_file():
            if isinstance(error, CheckpointNotFoundError | FileNotFoundError):
                raise StorageError(f"The checkpoint {uuid} has not arrived: send it again.") from error
            raise
    else:
        _fsync(checkpoints)


def _refuse_strangers(folder: Path, manifest: CheckpointManifest) -> None:
    expected = {file.path for file in manifest.files} | {MANIFEST}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if not path.is_dir() and name not in expected:
            raise CheckpointCorruptError(f"Checkpoint {manifest.uuid}: its manifest knows no file {name!r}.")


def _synchronise(folder: Path) -> None:
    """Have the disk take all of a folder, before its new name says that it is complete."""
    for path in folder.rglob("*"):
        _fsync(path)
    _fsync(folder)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
