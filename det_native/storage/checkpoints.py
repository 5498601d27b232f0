"""Checkpoints on disk or in an object store: files first, then the manifest; without a valid manifest there is none."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from det_native.errors import CheckpointCorruptError, CheckpointNotFoundError, StorageError
from det_native.schema.manifests import CheckpointFile, CheckpointManifest, Sha256
from det_native.storage.folder import INCOMING, LocalFolder, buffered, write_all
from det_native.storage.manifest_file import MANIFEST, changed, decode, encode, missing, refuse_other, resized
from det_native.storage.multipart import abort_left
from det_native.storage.paths import UnsafePathError, check_relative, check_uuid
from det_native.storage.publication import CHUNK, NEW_FILE, THREADS, Throttle, described, publish_local, walk
from det_native.storage.remote_folder import open_folder
from det_native.storage.room import storage_error

_FORGOTTEN_SECONDS = 7 * 86_400.0
_MAX_MANIFEST = 32 << 20

logger = logging.getLogger("det_native")


class CheckpointStorage:
    """Published checkpoints at a path or at any address that fsspec knows, one folder named by UUID for each.

    On a local file system a checkpoint appears by one rename, its files and folders synchronised before; in an object
    store by its manifest, which is put last. What a crash leaves in between is never listed.

    Parameters
    ----------
    uri : str
        A path, ``file:///path``, or for instance ``s3://bucket/folder``.
    options : mapping, optional
        What fsspec's file system takes beside the address, secrets among it.
    prompt : bool
        Whether somebody waits for answers: a storage that is silent is given up soon.
    """

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None, *, prompt: bool = False) -> None:
        self._folder = open_folder(uri, options, prompt=prompt)
        self.uri = self._folder.uri

    def workspace(self) -> Path:
        """Return a fresh empty folder to write a checkpoint's files into, from where :meth:`publish` is a rename.

        Raises
        ------
        StorageError
            If none can be made.
        """
        if not isinstance(self._folder, LocalFolder):
            return Path(tempfile.mkdtemp(prefix="det-checkpoint-"))
        try:
            return Path(self._folder.create_folder())
        except OSError as error:
            raise storage_error(f"No checkpoint can be written to {self.uri}: {error}.", error) from error

    def publish(
        self,
        directory: Path,
        manifest: CheckpointManifest,
        throttle: Throttle = iter,
        like: CheckpointManifest | None = None,
    ) -> tuple[str, CheckpointManifest]:
        """Make the files in `directory` a checkpoint. The directory is used up.

        Parameters
        ----------
        directory : Path
            Files and folders; links and special files are refused. Best made by :meth:`workspace`: from another file
            system the files are copied.
        manifest : CheckpointManifest
            All but its `files`, which are filled in here.
        throttle : callable, optional
            Goes through the pieces of each file that is read for its hash, with rests between them if need be.
        like : CheckpointManifest, optional
            An earlier checkpoint here. Files of `directory` may be links to its files; to an object store, what has not
            changed since is copied there instead of being sent again.

        Returns
        -------
        location : str
            Address of the checkpoint's folder.
        manifest : CheckpointManifest
            With sizes and hashes of the files.

        Raises
        ------
        StorageError
            The checkpoint exists already, or cannot be written. `directory` is as it was then.
        """
        check_uuid(manifest.uuid)
        if self._folder.exists(f"{manifest.uuid}/{MANIFEST}"):
            raise StorageError(f"Checkpoint {manifest.uuid} exists already at {self.uri}.")
        names = walk(directory)
        try:
            if isinstance(self._folder, LocalFolder):
                complete = publish_local(self._folder, directory, names, manifest, throttle, like)
            else:
                complete = self._publish_remote(directory, names, manifest, throttle, like)
        except OSError as error:
            raise storage_error(
                f"Checkpoint {manifest.uuid} cannot be written to {self.uri}: {error}.", error
            ) from error
        return f"{self.uri}/{manifest.uuid}", complete

    def _publish_remote(
        self,
        directory: Path,
        names: Sequence[str],
        manifest: CheckpointManifest,
        throttle: Throttle,
        like: CheckpointManifest | None,
    ) -> CheckpointManifest:
        there = {file.sha256: f"{like.uuid}/{file.path}" for file in like.files} if like is not None else {}

        def upload(file: CheckpointFile) -> None:
            key = f"{manifest.uuid}/{file.path}"
            if file.sha256 not in there or not self._folder.copy(there[file.sha256], key):
                self._folder.publish_file(key, directory / file.path)

        with ThreadPoolExecutor(THREADS) as pool:
            complete = described(directory, names, manifest, pool, throttle)
            list(pool.map(upload, complete.files))
        self._folder.publish(f"{manifest.uuid}/{MANIFEST}", [encode(complete)])
        shutil.rmtree(directory)
        return complete

    def check_writable(self) -> None:
        """See that checkpoints can be written here: a small file appears and goes.

        Raises
        ------
        StorageError
            If they cannot; the message says where, and what the storage says.
        """
        key = f"{INCOMING}/{secrets.token_hex(8)}"
        try:
            self._folder.publish(key, [b"checkpoints can be written here"])
            self._folder.delete(key)
        except OSError as error:
            of_a_file = error.filename is not None and error.strerror  # the path would be there twice
            said = str(error.strerror if of_a_file else error).strip().rstrip(".") or type(error).__name__
            raise storage_error(f"Checkpoints cannot be written to {self.uri}: {said}.", error) from error

    def local_path(self, uuid: str, path: str) -> Path | None:
        """Return where a file of a checkpoint lies, if that is on this machine."""
        check_uuid(uuid)
        check_relative(path)
        return Path(self._folder.path(f"{uuid}/{path}")) if isinstance(self._folder, LocalFolder) else None

    def manifest(self, uuid: str) -> CheckpointManifest:
        """Return the manifest of a checkpoint.

        Raises
        ------
        CheckpointNotFoundError
            There is no such checkpoint, or it was never completed.
        CheckpointCorruptError
            Its manifest is damaged.
        """
        try:
            check_uuid(uuid)
            with buffered(self._folder.open(f"{uuid}/{MANIFEST}")) as stream:
                content = stream.read(_MAX_MANIFEST)
        except (FileNotFoundError, NotADirectoryError, UnsafePathError) as error:
            raise CheckpointNotFoundError(f"There is no checkpoint {uuid} at {self.uri}.") from error
        return decode(uuid, content)

    def verify(self, expected: CheckpointManifest) -> None:
        """See that a checkpoint is the one that is expected, with the content that was saved; see :meth:`check`."""
        self.check(expected)
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda file: self._verify_file(expected.uuid, file), expected.files))

    def _verify_file(self, uuid: str, file: CheckpointFile) -> None:
        with self.open(uuid, file.path) as source:
            if hashlib.file_digest(source, "sha256").hexdigest() != file.sha256:  # type: ignore[arg-type]
                raise CheckpointCorruptError(changed(uuid, file))

    def check(self, expected: CheckpointManifest, path: str | None = None) -> None:
        """See that a checkpoint is the one that is expected, and that its files have their sizes.

        Parameters
        ----------
        expected : CheckpointManifest
            As it was reported.
        path : str, optional
            Look at this file only.

        Raises
        ------
        CheckpointNotFoundError
            There is no such checkpoint.
        CheckpointCorruptError
            Its manifest is another one, or a file is missing or has another size; the message names it.
        """
        uuid = expected.uuid
        refuse_other(self.manifest(uuid), expected.sha256)
        for file in expected.files:
            if path in (None, file.path):
                try:
                    size = self._folder.size(f"{uuid}/{file.path}")
                except (FileNotFoundError, NotADirectoryError) as error:
                    raise CheckpointCorruptError(missing(uuid, file)) from error
                if size != file.size:
                    raise CheckpointCorruptError(resized(uuid, file, size))

    def list(self) -> list[CheckpointManifest]:
        """Return the manifests of all checkpoints that are complete, oldest first."""
        found = (self._complete(uuid) for uuid in self._folder.children())
        return sorted((one for one in found if one is not None), key=lambda one: (one.created, one.uuid))

    def latest_complete(self, uuids: Iterable[str]) -> CheckpointManifest | None:
        """Return the manifest of the furthest complete checkpoint among `uuids`, by batch and then by time.

        Complete means that the manifest is valid and all files have their sizes; hashes are verified by :meth:`fetch`.
        """
        found = [one for one in map(self._complete, uuids) if one is not None]
        return max(found, key=lambda one: (one.batch, one.created), default=None)

    def _complete(self, uuid: str) -> CheckpointManifest | None:
        try:
            manifest = self.manifest(uuid)
        except CheckpointNotFoundError:
            return None
        except CheckpointCorruptError as error:
            logger.warning("Left out: %s", error)
            return None
        for file in manifest.files:
            try:
                size = self._folder.size(f"{uuid}/{file.path}")
            except (FileNotFoundError, NotADirectoryError):
                size = -1
            if size != file.size:
                logger.warning("Left out: checkpoint %s, whose file %r is missing or incomplete.", uuid, file.path)
                return None
        return manifest

    def fetch(
        self,
        uuid: str,
        into: Path,
        expected: Sha256 | None = None,
        wanted: Callable[[str], bool] | None = None,
    ) -> CheckpointManifest:
        """Copy the files of a checkpoint, each verified, into an empty directory (made if need be).

        Who can write to the storage can make a manifest that fits the files. Where `expected` is given, the hash of the
        manifest as it was reported, another manifest is refused before a file is read. `wanted` says by its path if
        a file is copied; by itself all are.

        Raises
        ------
        CheckpointNotFoundError
            There is no such checkpoint.
        CheckpointCorruptError
            A file is missing, or not what the manifest says; the message names it, and no file is left in `into`.
        StorageError
            `into` is not empty, or cannot be written.
        """
        manifest = self.manifest(uuid)
        if expected is not None:
            refuse_other(manifest, expected)
        try:
            into.mkdir(parents=True, exist_ok=True)
            if any(into.iterdir()):
                raise StorageError(
                    f"The directory {str(into)!r} is not empty; a checkpoint is copied into an empty one."
                )
            files = [file for file in manifest.files if wanted is None or wanted(file.path)]
            for folder in {(into / file.path).parent for file in files}:
                folder.mkdir(parents=True, exist_ok=True)
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(lambda file: self._fetch_file(uuid, file, into), files))
        except CheckpointCorruptError:
            for child in into.iterdir():
                shutil.rmtree(child) if child.is_dir() else child.unlink()
            raise
        except OSError as error:
            raise storage_error(f"Checkpoint {uuid} cannot be copied to {str(into)!r}: {error}.", error) from error
        return manifest

    def _fetch_file(self, uuid: str, file: CheckpointFile, into: Path) -> None:
        digest = hashlib.sha256()
        size = 0
        descriptor = os.open(into / file.path, NEW_FILE, 0o644)
        try:
            with self.open(uuid, file.path) as source:
                while chunk := source.read(CHUNK):
                    size += len(chunk)
                    digest.update(chunk)
                    write_all(descriptor, (chunk,))
        except CheckpointNotFoundError as error:
            raise CheckpointCorruptError(missing(uuid, file)) from error
        finally:
            os.close(descriptor)
        if size != file.size:
            raise CheckpointCorruptError(resized(uuid, file, size))
        if digest.hexdigest() != file.sha256:
            raise CheckpointCorruptError(changed(uuid, file))

    def open(self, uuid: str, path: str) -> IO[bytes]:
        """Open a file of a checkpoint for reading. Its content is not verified.

        Parameters
        ----------
        uuid : str
            The checkpoint.
        path : str
            Relative path of a file, with forward slashes.

        Raises
        ------
        CheckpointNotFoundError
            There is no such file.
        """
        try:
            check_uuid(uuid)
            check_relative(path)
            return buffered(self._folder.open(f"{uuid}/{path}"))
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, UnsafePathError) as error:
            raise CheckpointNotFoundError(f"Checkpoint {uuid} at {self.uri} has no file {path!r}.") from error

    def delete(self, uuid: str) -> None:
        """Remove a checkpoint, if it is there. It stops existing at once, whatever happens on the way."""
        check_uuid(uuid)
        if not self._folder.local:
            self._folder.delete(f"{uuid}/{MANIFEST}")
        self._folder.delete_tree(uuid)

    def discard(self, uuid: str) -> None:
        """Remove what there is of a checkpoint that never became complete: its writer was killed.

        In a local folder nothing of it has appeared.
        """
        if not self._folder.local:
            abort_left(self._folder, key=check_uuid(uuid))
            self.delete(uuid)

    def remove_leftovers(self) -> None:
        """Remove what crashed more than a day ago, from a local folder; from S3 parts that have waited for a week."""
        if isinstance(self._folder, LocalFolder):
            self._folder.remove_leftovers()
        else:
            abort_left(self._folder, time.time() - _FORGOTTEN_SECONDS, of=_is_checkpoints)


def _is_checkpoints(key: str) -> bool:
    """Return whether a file is one of a checkpoint: a bucket may have others."""
    try:
        check_uuid(key.partition("/")[0])
    except UnsafePathError:
        return False
    return True
