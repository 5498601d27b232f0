"""What a trial did with files, done in the notebook's folder: where plain code would have done it.

A file there that has changed since the submit is somebody's work: it stays, and the trial's lies beside it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from det_native.errors import DetError, MasterUnreachableError
from det_native.schema import rest
from det_native.schema.outputs import DELETED
from det_native.storage.paths import UnsafePathError, check_relative, safe_join

LIMIT_VARIABLE = "DET_FILES_HOME_MB"
DEFAULT_LIMIT_MB = 1024
_BLOCK = 1 << 20

WriteContent = Callable[[rest.Artifact, Path], object]

#: Device, inode, size, and time of the last change of a file.
_State = tuple[int, int, int, int]
#: By path, of files that we have written: their state, and when by the clock of this machine.
_written: dict[str, tuple[_State, float]] = {}


@dataclass
class Placed:
    """What became of the files of a trial.

    Attributes
    ----------
    beside : dict of Path to Path
        Of files that had changed here: theirs, and where the trial's lie.
    stayed : dict of str to str
        Paths of those that have not come, or could not be deleted, with the reason.
    """

    beside: dict[Path, Path] = field(default_factory=dict)
    stayed: dict[str, str] = field(default_factory=dict)


def place_files(
    write_content: WriteContent,
    artifacts: Sequence[rest.Artifact],
    folder: Path,
    *,
    submitted: float,
    title: str,
    below: str = "",
    room: float | None = None,
) -> Placed:
    """Write the files of a trial into a folder, and delete there what it has deleted.

    Parameters
    ----------
    write_content : callable
        Writes the content of a file to a path, all at once.
    submitted : float
        Files that have changed here since, in seconds since 1970, are not replaced: another training that ran
        beside this one may have written them.
    title : str
        What a file is named by that lies beside another one: ``experiment 7``.
    below : str
        The beginning of the paths of the trial that `folder` stands for.
    room : float, optional
        How many bytes may come; by default `LIMIT_VARIABLE` says it.

    Raises
    ------
    MasterUnreachableError
        If the master does not answer any more; what has come by then is complete.
    """
    placed, room = Placed(), _limit_bytes() if room is None else room
    deleted = [artifact for artifact in artifacts if artifact.note == DELETED]
    for artifact in sorted(deleted, key=lambda artifact: artifact.path, reverse=True):  # files before their folders
        _delete(artifact.path.removeprefix(below), folder, submitted, placed)
    for artifact in sorted(artifacts, key=lambda artifact: (artifact.size, artifact.path)):
        path = artifact.path.removeprefix(below)
        if artifact.sha256 is None:
            if artifact.note != DELETED:
                placed.stayed[path] = artifact.note or "its content was not kept"
            continue
        room -= artifact.size
        if room < 0:
            placed.stayed[path] = (
                f"with it there would be more than {_limit_bytes() / 1e6:.0f} MB, the limit ({LIMIT_VARIABLE})"
            )
            continue
        try:
            _place(write_content, artifact, folder, path, submitted, title, placed)
        except MasterUnreachableError:
            raise
        except (OSError, DetError) as error:
            placed.stayed[path] = _reason(error)
    return placed


def _limit_bytes() -> int:
    """Return how many bytes of one experiment's files come by themselves."""
    try:
        return int(float(os.environ.get(LIMIT_VARIABLE) or DEFAULT_LIMIT_MB) * 1e6)
    except ValueError:
        return int(DEFAULT_LIMIT_MB * 1e6)


def _beside(path: Path, title: str) -> Path:
    """Return the path of a file that lies beside another: ``best (experiment 7).keras``."""
    stem, dot, ends = path.name.partition(".") if not path.name.startswith(".") else (path.name, "", "")
    return path.with_name(f"{stem} ({title}){dot}{ends}")


def _place(
    write_content: WriteContent,
    artifact: rest.Artifact,
    folder: Path,
    name: str,
    submitted: float,
    title: str,
    placed: Placed,
) -> None:
    target = folder.joinpath(*check_relative(name))
    if target.is_symlink() and target.exists():
        target = target.resolve()
    if _has_content(target, artifact):
        _remember(target)
        return
    path = _beside(target, title) if _is_others(target, submitted) else target
    _write(write_content, artifact, path)
    if path != target:
        placed.beside[target] = path


def _delete(name: str, folder: Path, submitted: float, placed: Placed) -> None:
    """Delete what the trial has deleted; a folder only if nothing is left in it."""
    try:
        path = safe_join(folder, name)
        if path.is_dir() and not path.is_symlink():
            if not os.listdir(path):
                path.rmdir()
        elif not os.path.lexists(path):
            return
        elif _is_others(path, submitted):
            placed.stayed[name] = "the training deleted it, and it has changed here since the submit"
        else:
            path.unlink()
    except (OSError, UnsafePathError) as error:
        placed.stayed[name] = _reason(error)


def _is_others(path: Path, submitted: float) -> bool:
    """Whether what is at a path is not to be replaced."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return False
    if path.is_dir():
        return True
    # The time of the last change cannot be set by who copies a file with its times.
    state, written = _written.get(str(path), (None, 0.0))
    return max(status.st_mtime, status.st_ctime) > submitted and (written > submitted or state != _state(path))


def _write(write_content: WriteContent, artifact: rest.Artifact, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:50]}.", suffix=".part", dir=path.parent)
    os.close(descriptor)
    part = Path(name)
    try:
        write_content(artifact, part)
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask if not path.exists() else path.stat().st_mode & 0o777)
        if _is_open_here(path):  # who writes to it goes on with it
            shutil.copyfile(part, path)
        else:
            os.replace(part, path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    _remember(path)


def _is_open_here(path: Path) -> bool:
    """Whether this process has a file open: a log, say."""
    state = _state(path)
    if state is None or not os.path.isdir("/dev/fd"):
        return False
    for name in os.listdir("/dev/fd"):
        try:
            status = os.fstat(int(name))
        except (OSError, ValueError):  # closed meanwhile
            continue
        if (status.st_dev, status.st_ino) == state[:2]:
            return True
    return False


def _remember(path: Path) -> None:
    state = _state(path)
    if state is not None:
        _written[str(path)] = state, time.time()


def _state(path: Path) -> _State | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns


def _has_content(path: Path, artifact: rest.Artifact) -> bool:
    try:
        if not path.is_file() or path.stat().st_size != artifact.size:
            return False
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError:
        return False
    return digest.hexdigest() == artifact.sha256


def _reason(error: Exception) -> str:
    if not isinstance(error, OSError):
        return str(error)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"the folder cannot be written: {error.strerror}"
    return str(error.strerror or error)
