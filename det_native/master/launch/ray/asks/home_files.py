"""Files of a master's home that agents of other machines read and write, and nothing beside them."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from det_native.errors import StorageError
from det_native.master.launch.ray.asks.kinds import Piece, Root
from det_native.storage.blobs import BlobStore
from det_native.storage.folder import INCOMING
from det_native.storage.manifest_file import MANIFEST
from det_native.storage.paths import UnsafePathError, check_relative, check_sha256, check_uuid, safe_join

#: The most that is read at once.
LONGEST_PIECE = 8 << 20
_FOLDER_MODE = 0o700
_FILE_MODE = 0o600


class HomeFiles:
    """Reads and writes files below the folders that a master shares with its agents. Threads may share it."""

    def __init__(self, home: Path) -> None:
        self._roots: dict[Root, Path] = {
            "blobs": home / "blobs",
            "data": home / "data" / "contents",
            "checkpoints": home / "checkpoints",
            "tensorboard": home / "tensorboard",
            "runs": home / "runs",
        }
        self._blobs = BlobStore(str(self._roots["blobs"]))

    def root(self, root: Root) -> Path:
        """Return where a shared folder lies.

        Raises
        ------
        UnsafePathError
            If there is none of this name.
        """
        try:
            return self._roots[root]
        except KeyError:
            raise UnsafePathError(f"{root!r} is no folder that a master shares with agents.") from None

    def missing(self, root: Root, paths: Sequence[str]) -> list[str]:
        """Return those of `paths` that are not here; a checkpoint is here once it is complete.

        Blobs that are here count as new from now on, since they are about to be reported.
        """
        return [path for path in paths if not self._is_here(root, path)]

    def read(self, root: Root, path: str, offset: int, length: int) -> Piece:
        """Return a piece of a file."""
        place = safe_join(self.root(root), path)
        try:
            descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            return Piece(None)
        try:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                return Piece(None)
            return Piece(os.pread(descriptor, max(0, min(length, LONGEST_PIECE)), offset), state.st_size)
        finally:
            os.close(descriptor)

    def write(self, root: Root, path: str, offset: int, content: bytes, *, last: bool = False) -> int:
        """Write a piece of a file, unless the file ends before `offset`; return how long it is then.

        Raises
        ------
        StorageError
            If nothing is written to this folder, or to this path.
        """
        place = self.arriving(root, path) if root in ("blobs", "checkpoints") else self._growing(root, path)
        place.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(place, flags, _FILE_MODE)
        try:
            size = os.fstat(descriptor).st_size
            if offset > size:
                return size
            view, position = memoryview(content), offset
            while len(view):
                written = os.pwrite(descriptor, view, position)
                view, position = view[written:], position + written
            if last and position < size:
                os.ftruncate(descriptor, position)
                return position
            return max(size, position)
        finally:
            os.close(descriptor)

    def arriving(self, root: Root, path: str) -> Path:
        """Return where a file of a blob or a checkpoint lies until it is published."""
        parts = check_relative(path)
        if root == "blobs":
            sha256, _, sender = parts[-1].partition(".")
            check_sha256(sha256)
            if len(parts) != 2 or parts[0] != sha256[:2] or not (sender == "" or sender.isalnum()):
                raise UnsafePathError(f"{path!r} is no path of a blob: '<first two digits>/<hash>' is wanted.")
            parts = (parts[-1],)
        else:
            check_uuid(parts[0])
        return safe_join(self.root(root), "/".join((INCOMING, *parts)))

    def _growing(self, root: Root, path: str) -> Path:
        if root not in ("runs", "tensorboard"):
            raise StorageError(f"Agents do not write to the folder {root!r} of the master.")
        # Only the master makes these: what comes late, for an experiment that was deleted, makes nothing anew.
        owner = self.root(root).joinpath(*check_relative(path)[: 1 if root == "runs" else 2])
        if not owner.is_dir():
            raise StorageError(f"{owner} is not there any more, since its experiment was deleted: nothing is kept.")
        return safe_join(self.root(root), path)

    def _is_here(self, root: Root, path: str) -> bool:
        parts = check_relative(path)
        if root == "blobs":
            return self._blobs.refresh(check_sha256(parts[-1]))
        if root == "checkpoints" and len(parts) == 1:
            path = f"{check_uuid(path)}/{MANIFEST}"
        return safe_join(self.root(root), path).is_file()
