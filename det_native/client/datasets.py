"""Brings data into the cluster's store: in pieces, each file once, from where an earlier attempt was cut off."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from det_native.capture.hash_cache import HashCache
from det_native.client.persistence import over_cuts
from det_native.client.session import Session
from det_native.errors import ArgumentError, CaptureError, Problem, RequestError
from det_native.schema import routes
from det_native.schema.datasets import MOST_FILES, DataSetCreate, DataSetInfo, Sizes, WantedFile, WantedFiles
from det_native.schema.manifests import FileEntry, Sha256

_REQUEST = 64 << 20
_BLOCK = 1 << 20
_HASHED_AT_ONCE = 256 << 20
_CONFLICT = 409
# Another request may hold a file for as long as the master waits for what a cut connection still has to say.
_CONFLICT_SECONDS = 90.0
_CONFLICT_PAUSE = 1.0
_ANSWER_SECONDS = 3600.0  # the last piece of a large file is answered once the whole is verified

#: Takes what is done (``"reading"``, ``"sending"``), and how many more bytes of it are.
Tell = Callable[[str, int], None]


@dataclass(frozen=True)
class LocalFile:
    """A file to bring: where it lies, what it is called in its set, its size, and when it was changed last."""

    path: Path
    target: str
    size: int
    mode: int
    changed: int


@dataclass(frozen=True)
class Piece:
    """A part of a file, sent in one request with others."""

    file: LocalFile
    sha256: Sha256
    offset: int
    length: int


def files_to_bring(path: Path) -> list[LocalFile]:
    """Return the files of a path: itself, or all in the folder, links followed.

    Raises
    ------
    ArgumentError
        If there are none, or too many, or a link or folder leads to nothing that can be brought.
    """
    if not path.exists():
        raise ArgumentError(f"There is no {path}.")
    found = [path] if path.is_file() else sorted(islice(_files_in(path), MOST_FILES + 1))
    root = path.parent if path.is_file() else path
    if not found:
        raise ArgumentError(f"There is no file in {path}.")
    if len(found) > MOST_FILES:
        raise ArgumentError(f"{path} has more than {MOST_FILES:,} files: pack them into a few archives.")
    files = []
    for one in found:
        state = one.stat()
        target, mode = one.relative_to(root).as_posix(), state.st_mode & 0o777
        files.append(LocalFile(one, target, state.st_size, mode, state.st_mtime_ns))
    return files


def _files_in(folder: Path, around: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yield the files of a folder; `around` are the folders that it is in, by their real places."""
    real = os.path.realpath(folder)
    if real in around:
        raise ArgumentError(f"{folder} is a link back to {real}, which it is in: remove it, or bring the parts alone.")
    try:
        with os.scandir(folder) as entries:
            inside = list(entries)
    except OSError as error:
        raise ArgumentError(f"{folder} cannot be read ({error.strerror}): nothing was brought.") from error
    for entry in inside:
        path = folder / entry.name
        if entry.is_dir():
            yield from _files_in(path, (*around, real))
        elif entry.is_file():
            yield path
        elif entry.is_symlink():
            raise ArgumentError(f"{path} is a link to {os.readlink(path)}, which is not there: remove or correct it.")


def bring(session: Session, path: Path, name: str, tell: Tell) -> DataSetInfo:
    """Bring a file or folder into the store of a master, under a name.

    Raises
    ------
    ArgumentError
        If there is nothing to bring.
    CaptureError
        If a file cannot be read, or changes while it is sent.
    """
    files = files_to_bring(path)
    hashes = _hashed(files, tell)
    sizes = {sha256: file.size for file, sha256 in zip(files, hashes, strict=True)}
    by_hash = {sha256: file for file, sha256 in zip(files, hashes, strict=True)}
    wanted = [WantedFile(sha256=sha256, size=size) for sha256, size in sizes.items()]
    tell("sending", sum(sizes.values()))
    told: dict[Sha256, int] = dict.fromkeys(sizes, 0)

    def send() -> None:
        deadline = time.monotonic() + _CONFLICT_SECONDS
        while True:
            missing = _missing(session, wanted)
            for sha256, size in sizes.items():
                arrived = missing.get(sha256, size)
                tell("sent", arrived - told[sha256])
                told[sha256] = arrived
            if not missing:
                return
            try:
                for request in _requests(missing, by_hash):
                    _post(session, request)
                    for piece in request:
                        tell("sent", piece.length)
                        told[piece.sha256] += piece.length
            except RequestError as error:
                _check_unchanged(files)
                if error.status != _CONFLICT or time.monotonic() > deadline:
                    raise
                time.sleep(_CONFLICT_PAUSE)

    over_cuts(session, send)
    entries = [
        FileEntry(path=file.target, sha256=sha256, size=file.size, mode=file.mode)
        for file, sha256 in zip(files, hashes, strict=True)
    ]
    body = DataSetCreate(name=name, files=entries)
    return over_cuts(session, lambda: session.call(routes.CREATE_DATA, body))


def stored_sizes(session: Session, sizes: Sequence[int]) -> dict[int, set[Sha256]]:
    """Return the contents of these sizes that a master's store has."""
    if not sizes:
        return {}
    found: dict[int, set[Sha256]] = {}
    for one in session.call(routes.FIND_DATA, Sizes(sizes=list(sizes))).files:
        found.setdefault(one.size, set()).add(one.sha256)
    return found


def _hashed(files: Sequence[LocalFile], tell: Tell) -> list[Sha256]:
    tell("reading", sum(file.size for file in files))
    cache, hashes = HashCache(), list[Sha256]()
    for group in _groups(files):
        hashes += [one.sha256 for one in cache.hash_files([(os.fspath(file.path), None) for file in group])]
        tell("read", sum(file.size for file in group))
    return hashes


def _groups(files: Iterable[LocalFile]) -> Iterator[list[LocalFile]]:
    group: list[LocalFile] = []
    for file in files:
        group.append(file)
        if sum(one.size for one in group) >= _HASHED_AT_ONCE:
            yield group
            group = []
    if group:
        yield group


def _missing(session: Session, wanted: Sequence[WantedFile]) -> dict[Sha256, int]:
    missing = session.call(routes.FIND_MISSING_DATA, WantedFiles(files=list(wanted)))
    return {file.sha256: file.offset for file in missing.files}


def _requests(missing: dict[Sha256, int], by_hash: dict[Sha256, LocalFile]) -> Iterator[list[Piece]]:
    """Yield the pieces of each request: many small files, or a part of a large one."""
    request: list[Piece] = []
    room = _REQUEST
    for sha256, offset in missing.items():
        file = by_hash[sha256]
        while True:
            length = min(file.size - offset, room)
            request.append(Piece(file, sha256, offset, length))
            offset, room = offset + length, room - length
            if room <= 0:
                yield request
                request, room = [], _REQUEST
            if offset >= file.size:
                break
    if request:
        yield request


def _post(session: Session, pieces: Sequence[Piece]) -> None:
    from det_native.storage.datasets import CONTENT_TYPE

    headers = {"Content-Type": CONTENT_TYPE}
    session.call(routes.PUT_DATA, _body(pieces), headers=headers, timeout=_ANSWER_SECONDS)


def _body(pieces: Sequence[Piece]) -> Iterator[bytes]:
    from det_native.storage.datasets import PIECE

    for piece in pieces:
        yield PIECE.pack(bytes.fromhex(piece.sha256), piece.file.size, piece.offset, piece.length)
        left = piece.length
        with _reading(piece.file), piece.file.path.open("rb") as stream:
            stream.seek(piece.offset)
            while left:
                block = stream.read(min(_BLOCK, left))
                if not block:
                    raise _unusable(piece.file, "became shorter meanwhile")
                left -= len(block)
                yield block


@contextmanager
def _reading(file: LocalFile) -> Iterator[None]:
    """Say of an error that it is the file's: in a body, one of the system's would pass for one of the connection."""
    try:
        yield
    except OSError as error:
        raise _unusable(file, f"cannot be read any more: {error.strerror}") from error


def _check_unchanged(files: Iterable[LocalFile]) -> None:
    """Refuse a file that is not what was hashed: sent again, it would be refused again."""
    for file in files:
        with _reading(file):
            state = file.path.stat()
        if (state.st_size, state.st_mtime_ns) != (file.size, file.changed):
            raise _unusable(file, "changed while it was sent")


def _unusable(file: LocalFile, what: str) -> CaptureError:
    remedy = "Bring it again once nothing writes there; what has arrived of other files is kept."
    return CaptureError("The data cannot be sent:", [Problem(str(file.path), f"{what}.", remedy)])


class Bar:
    """A progress bar for the terminal; it is drawn anew when another thing begins. Elsewhere nothing is drawn."""

    def __init__(self) -> None:
        self._bar: Any = None

    def tell(self, what: str, size: int) -> None:
        """Begin a bar (``"reading"``, ``"sending"``), or move it on."""
        from tqdm import tqdm

        if what.endswith("ing"):
            self.close()
            self._bar = tqdm(total=size, desc=what, unit="B", unit_scale=True, leave=False, disable=None)
        elif self._bar is not None:
            self._bar.update(size)

    def close(self) -> None:
        """Draw no more."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
