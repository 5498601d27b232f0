"""Numbered reports on disk, until the master has stored them.

The folder holds segments ``<first seq, 12 digits>.jsonl``: one report (``rest.Report`` as JSON) and its checksum
(:mod:`det_native.schema.sealed`) a line, in the order of ``seq`` without gaps. A segment goes once every report in it
is stored by the master; what is left when the process ends is for the master to read. A process that is killed may
leave an incomplete last line, which is to be ignored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from det_native.errors import DiskFailedError, StorageError
from det_native.schema.sealed import seal, unseal
from det_native.storage.room import device_of, storage_error

_SEGMENT_BYTES = 1 << 20
_BATCH_BYTES = 2 << 20
_BATCH_REPORTS = 500
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


@dataclass
class _Segment:
    path: Path
    size: int = 0


@dataclass(frozen=True)
class SpooledBatch:
    """Consecutive reports as JSON texts, and where reading goes on after them."""

    reports: list[str]
    segment: Path
    offset: int


class Spool:
    """Appends reports and reads them back for sending. Not thread-safe: the reporter holds its lock around each call.

    Parameters
    ----------
    directory : Path
        Made if it is not there; must be empty.
    segment_bytes : int
        Size after which a new segment begins.
    sent : bool
        Whether the reports are for a master; otherwise they stay as long as their folder.
    """

    def __init__(self, directory: Path, *, segment_bytes: int = _SEGMENT_BYTES, sent: bool = True) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._segment_bytes = segment_bytes
        self._sent = sent
        self._segments: list[_Segment] = []
        self._descriptor: int | None = None
        self._read_offset = 0
        self._device = device_of(directory)

    def append(self, seq: int, report: str, *, durable: bool = False) -> None:
        """Append one report.

        Parameters
        ----------
        seq : int
            Its number; one more than the last one's.
        durable : bool
            Survive a crash of the machine too, not only of this process.

        Raises
        ------
        StorageError
            If it cannot be written; the spool is then as before.
        """
        content = seal(report)
        try:
            segment = self._writable(seq)
            self._write(segment, content, durable)
        except OSError as error:
            message = f"Reports cannot be kept in {self.directory}: {error}."
            if isinstance(error, FileNotFoundError) and self._is_unmounted():
                raise DiskFailedError(message) from error
            raise storage_error(message, error) from error

    def read(self) -> SpooledBatch | None:
        """Return the next reports that were not confirmed, None if there are none.

        Raises
        ------
        OSError
            If the disk gives nothing at the moment.
        DiskFailedError
            If reports are not there any more.
        StorageError
            If they are not what was written.
        """
        for position, segment in enumerate(self._segments if self._sent else ()):
            offset = self._read_offset if position == 0 else 0
            if offset < segment.size:
                return self._read_from(segment, offset)
        return None

    def confirm(self, batch: SpooledBatch) -> None:
        """Forget a batch that the master has stored, and everything before it."""
        while self._segments and self._segments[0].path != batch.segment:
            self._drop_first()
        self._read_offset = batch.offset
        if self._segments and self._read_offset >= self._segments[0].size and self._is_full(self._segments[0]):
            self._drop_first()

    def empty(self) -> bool:
        """Return whether everything was confirmed."""
        return not self._sent or sum(segment.size for segment in self._segments) <= self._read_offset

    def close(self) -> None:
        """Close; removes the last segment if all of it was confirmed."""
        self._close_segment()
        if self._sent and self.empty():
            while self._segments:
                self._drop_first()

    def _close_segment(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)

    def _is_unmounted(self) -> bool:
        """Return whether the file system that it lay on is not there at the moment; otherwise it was deleted."""
        return device_of(self.directory) != self._device

    def _is_full(self, segment: _Segment) -> bool:
        return segment.size >= self._segment_bytes

    def _writable(self, seq: int) -> _Segment:
        if self._segments and not self._is_full(self._segments[-1]) and self._descriptor is not None:
            return self._segments[-1]
        self._close_segment()
        self.directory.mkdir(exist_ok=True)  # a disk that has failed may have lost it
        path = self.directory / f"{seq:012d}.jsonl"
        self._descriptor = os.open(path, _FLAGS | os.O_EXCL, 0o600)
        self._segments.append(_Segment(path))
        return self._segments[-1]

    def _write(self, segment: _Segment, content: bytes, durable: bool) -> None:
        assert self._descriptor is not None
        try:
            written = os.write(self._descriptor, content)
            while written < len(content):
                written += os.write(self._descriptor, content[written:])
            if durable:
                os.fsync(self._descriptor)
        except OSError:
            try:
                os.ftruncate(self._descriptor, segment.size)
            except OSError:  # the disk has failed: what comes next is for a file that is opened anew
                self._close_segment()
            raise
        segment.size += len(content)

    def _read_from(self, segment: _Segment, offset: int) -> SpooledBatch:
        lost = DiskFailedError(f"Reports in {segment.path} were lost with the disk, which had not written them.")
        if not segment.path.exists() and self.directory.exists():
            raise lost
        lines: list[bytes] = []
        size = 0
        with segment.path.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size < segment.size:
                raise lost
            stream.seek(offset)
            while offset + size < segment.size and len(lines) < _BATCH_REPORTS and size < _BATCH_BYTES:
                lines.append(stream.readline())
                size += len(lines[-1])
                if not lines[-1].endswith(b"\n"):
                    raise StorageError(f"{segment.path} has lost reports: it is shorter than what was written.")
        return SpooledBatch([_text(segment.path, line) for line in lines], segment.path, offset + size)

    def _drop_first(self) -> None:
        segment = self._segments.pop(0)
        if not self._segments and self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        segment.path.unlink(missing_ok=True)
        self._read_offset = 0


def _text(path: Path, line: bytes) -> str:
    try:
        return unseal(line)
    except ValueError as error:
        raise StorageError(f"{path} is damaged: a report in it is not what was written.") from error


def read_spool(directory: Path) -> Iterator[str]:
    """Yield the JSON of every complete report in a spool's folder, in order.

    Raises
    ------
    StorageError
        At a report that is not what was written.
    """
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_bytes().split(b"\n")[:-1]:
            yield _text(path, line)


# Characters that wait before the training waits too.
_MOST = 64 << 20


@dataclass(frozen=True)
class Held:
    """A report that waits in memory; `then` is called once it is in the spool, or the master has it."""

    seq: int
    text: str
    durable: bool
    then: Callable[[], None] | None


class HeldReports:
    """What the disk does not take, in order; all later ones wait behind it."""

    def __init__(self) -> None:
        self._reports: list[Held] = []
        self._size = 0

    def __len__(self) -> int:
        return len(self._reports)

    @property
    def full(self) -> bool:
        """Whether the training is to wait."""
        return self._size > _MOST

    def add(self, held: Held) -> None:
        """Have a report wait behind all others."""
        self._reports.append(held)
        self._size += len(held.text)

    def first(self, count: int) -> list[Held]:
        """Return the first ones, at most so many."""
        return self._reports[:count]

    def drop(self, count: int) -> None:
        """Forget the first ones."""
        self._size -= sum(len(held.text) for held in self._reports[:count])
        del self._reports[:count]
