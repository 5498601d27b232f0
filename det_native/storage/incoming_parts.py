"""One file on its way to S3: parts that have arrived there, and on this machine what is no whole part yet.

All of it outlives this process. A note tells of the upload; S3 knows its parts. While there is a note the file does
not count, whatever lies in S3 under its key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from det_native.schema.manifests import Sha256
from det_native.schema.private_files import write_private
from det_native.storage.folder import write_all
from det_native.storage.multipart import Multipart
from det_native.storage.parts import part_size
from det_native.storage.remote_folder import RemoteFolder

_READ_BACK = 16 << 20


class _Note(BaseModel):
    model_config = ConfigDict(extra="forbid")

    upload: str
    part: int


class IncomingParts:
    """A file that comes in order, block by block.

    Parameters
    ----------
    remote : RemoteFolder
        One that is in S3.
    key : str
        What the file is called there.
    folder : Path
        Where the note lies, and what is no whole part yet.
    size : int
        Of the whole file.
    """

    def __init__(self, remote: RemoteFolder, key: str, folder: Path, sha256: Sha256, size: int = 0) -> None:
        self._remote = remote
        self._uploads = Multipart(remote)
        self._key = key
        self._folder = folder
        self._sha256 = sha256
        self._size = size
        self._parts = 0
        #: Whether all of it is in S3 already, unverified.
        self.complete = False
        self._note = self._read()
        if self._note is not None:
            try:
                self._parts = len(self._uploads.parts(key, self._note.upload))
            except FileNotFoundError:  # completed, or somebody has aborted it
                self.complete = remote.exists(key)
                if not self.complete:
                    self.forget()

    @staticmethod
    def known(folder: Path) -> set[Sha256]:
        """Return the files that have a note."""
        return {path.stem for path in folder.glob("*.json")}

    @staticmethod
    def is_known(folder: Path, sha256: Sha256) -> bool:
        """Return whether a file has a note."""
        return (folder / f"{sha256}.json").exists()

    @property
    def arrived(self) -> int:
        """Return how many bytes there are of it."""
        if self.complete:
            return self._remote.size(self._key)
        with suppress(FileNotFoundError):
            return self._before + self._tail_path.stat().st_size
        return self._before

    @property
    def touched(self) -> float:
        """When something has arrived last, in seconds since 1970."""
        paths = [self._note_path, *self._folder.glob(f"{self._sha256}.*")]
        return max((path.stat().st_mtime for path in paths if path.exists()), default=0.0)

    def write(self, block: memoryview) -> None:
        """Take what follows."""
        if self._note is None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._note = _Note(upload=self._uploads.begin(self._key), part=part_size(self._size))
            write_private(self._note_path, self._note.model_dump_json())
        while len(block):
            held = self.arrived - self._before
            taken = block[: self._note.part - held]
            with self._tail_path.open("ab", buffering=0) as file:
                write_all(file.fileno(), (taken,))
            block = block[len(taken) :]
            if held + len(taken) == self._note.part:
                self._send()

    def finish(self) -> None:
        """Make a file of what has come; it counts once :meth:`forget` is called."""
        if self.complete:
            return
        if self._note is None:  # it is empty
            self._remote.publish(self._key, [b""])
            return
        if self.arrived > self._before:
            self._send()
        self._uploads.complete(self._key, self._note.upload, self._uploads.parts(self._key, self._note.upload))

    def read_back(self) -> str:
        """Return the hash of what is in S3."""
        digest = hashlib.sha256()
        for block in self._blocks():
            digest.update(block)
        return digest.hexdigest()

    def forget(self) -> None:
        """Let it be known no more that something is on its way."""
        for path in (*self._folder.glob(f"{self._sha256}.[0-9]*"), self._note_path):
            path.unlink(missing_ok=True)
        self._note = None

    def give_up(self) -> None:
        """Remove all that has come."""
        if self._note is not None:
            self._uploads.abort(self._key, self._note.upload)
        self._remote.delete(self._key)
        self.forget()

    def _blocks(self) -> Iterator[bytes]:
        size, offset = self._remote.size(self._key), 0
        while offset < size:
            block = self._remote.read(self._key, offset, _READ_BACK)
            yield block
            offset += len(block)

    def _send(self) -> None:
        assert self._note is not None
        path = self._tail_path
        self._uploads.put(self._key, self._note.upload, self._parts + 1, path.read_bytes())
        self._parts += 1
        path.unlink()

    @property
    def _before(self) -> int:
        return self._parts * (self._note.part if self._note is not None else 0)

    @property
    def _note_path(self) -> Path:
        return self._folder / f"{self._sha256}.json"

    @property
    def _tail_path(self) -> Path:
        """What is no whole part yet, named by its number: one that has been sent is not taken for the next."""
        return self._folder / f"{self._sha256}.{self._parts + 1}"

    def _read(self) -> _Note | None:
        try:
            return _Note.model_validate_json(self._note_path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None
