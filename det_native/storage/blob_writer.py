"""Takes the blocks of one blob as they come, and lets it appear in its store once it is complete and verified."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from det_native.errors import StorageError
from det_native.storage import frames
from det_native.storage.folder import Folder, LocalFolder, remove_file, write_all
from det_native.storage.frames import BLOCK, BLOCK_HEADER, BlockHeader, Buffer, FrameError
from det_native.storage.room import storage_error

KERNEL_COPIES = sys.platform == "linux"  # elsewhere sendfile wants a socket


class BlobWriter:
    """Takes the blocks of one blob, and publishes it once they are complete and have the right hash.

    Parameters
    ----------
    folder : Folder
        Of the store.
    key : str
        What the blob is called there.
    size : int
        Bytes of the raw content.
    stored : callable
        Is told the hash and the size of a blob that has appeared.
    """

    def __init__(self, folder: Folder, key: str, sha256: str, size: int, stored: Callable[[str, int], None]) -> None:
        self._folder = folder
        self._key = key
        self._tell_stored = stored
        self._sha256 = sha256
        self._size = size
        self._taken = 0
        self._digest = hashlib.sha256()
        self._copied = False
        self._pieces: list[Buffer] = [frames.pack_header(size)]
        self._descriptor: int | None = None
        self._temporary: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.abort()

    @property
    def complete(self) -> bool:
        """Whether all blocks have come."""
        return self._taken == self._size

    def checked(self, block: BlockHeader, payload: Buffer) -> Buffer:
        """Return the raw content of a block, after making sure that it still fits into the blob."""
        if block.raw > self._size - self._taken:
            raise FrameError(f"Blob {self._sha256} has more bytes than its header declares.")
        return frames.decode_block(block, payload)

    def write(self, header: Buffer, payload: Buffer, raw: Buffer) -> None:
        """Take a packed block (`header`, `payload`) and its raw content.

        The buffers must stay as they are until the next call of this object.
        """
        self._digest.update(raw)
        self._taken += len(raw)
        self._pieces += (header, payload)
        if not self.complete or self._descriptor is not None:
            self._flush()

    def copy(self, source: int) -> None:
        """Take the whole content, raw, from an open file that is known to have it: copied by the kernel, not hashed."""
        self._flush()
        if self._descriptor is None:
            raise StorageError(f"Blob {self._sha256} cannot be copied to {self._folder.uri}.")
        self._copied = True
        try:
            while not self.complete:
                self._copy_block(self._descriptor, source)
        except OSError as error:
            raise StorageError(f"Blob {self._sha256} cannot be stored: {error}.") from error

    def _copy_block(self, descriptor: int, source: int) -> None:
        length = min(BLOCK, self._size - self._taken)
        write_all(descriptor, [BLOCK_HEADER.pack(frames.RAW, length, length)])
        end = self._taken + length
        while self._taken < end:
            count = os.sendfile(descriptor, source, self._taken, end - self._taken)
            if not count:
                raise FrameError("The file became shorter while it was read.")
            self._taken += count

    def commit(self) -> None:
        """Let the blob appear in the store.

        Raises
        ------
        FrameError
            Blocks are missing, or the hash is another one.
        StorageError
            The blob cannot be written.
        """
        if not self.complete:
            raise FrameError(f"Blob {self._sha256} ends early.")
        if not self._copied and self._digest.hexdigest() != self._sha256:
            raise FrameError(f"Content sent as blob {self._sha256} has the hash {self._digest.hexdigest()}.")
        try:
            self._publish()
        except OSError as error:
            raise storage_error(f"Blob {self._sha256} cannot be stored: {error}.", error) from error
        self._tell_stored(self._sha256, self._size)

    def hold(self) -> None:
        """Make the buffers that were given free for others, to commit later."""
        self._pieces = [b"".join(self._pieces)]

    def abort(self) -> None:
        """Give up what was not committed. Safe to call at any time."""
        self._pieces = []
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if self._temporary is not None:
            remove_file(self._temporary)
            self._temporary = None

    def _flush(self) -> None:
        """Write out what has come, so that memory holds one block whatever the blob's size."""
        try:
            if self._descriptor is None:
                self._descriptor, self._temporary = self._create()
            write_all(self._descriptor, self._pieces)
        except OSError as error:
            raise StorageError(f"Blob {self._sha256} cannot be stored: {error}.") from error
        self._pieces = []

    def _create(self) -> tuple[int, str]:
        if isinstance(self._folder, LocalFolder):
            return self._folder.create()
        return tempfile.mkstemp(prefix="det-blob-")

    def _publish(self) -> None:
        if self._descriptor is None or self._temporary is None:
            self._folder.publish(self._key, self._pieces)
            return
        os.close(self._descriptor)
        self._descriptor = None
        if isinstance(self._folder, LocalFolder):
            self._folder.adopt(self._temporary, self._key)
            self._temporary = None
        else:
            self._folder.publish_file(self._key, Path(self._temporary))
