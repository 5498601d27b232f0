"""Which files a local trial has written: they lie where its code put them, and a list of them is kept with the run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from det_native.errors import StorageError
from det_native.schema.outputs import Artifact

NAME = "artifacts.json"


class WrittenHere(BaseModel):
    """A file of a local trial, where it lies, and its size and time in ns when the trial had ended."""

    artifact: Artifact
    location: str
    size: int = -1
    time: int = -1

    @classmethod
    def at(cls, artifact: Artifact, location: Path) -> WrittenHere:
        """Take the file as it is now."""
        try:
            found = os.stat(location)
        except OSError:
            return cls(artifact=artifact, location=str(location))
        return cls(artifact=artifact, location=str(location), size=found.st_size, time=found.st_mtime_ns)


_LIST = TypeAdapter(list[WrittenHere])


def keep_written(trial_folder: Path, files: Iterable[WrittenHere]) -> None:
    """Add to what a trial has written; of the same path, the newer one counts."""
    known = {file.artifact.path: file for file in (*written_here(trial_folder), *files)}
    temporary = trial_folder / f".{NAME}"
    temporary.write_bytes(_LIST.dump_json([known[path] for path in sorted(known)]))
    temporary.replace(trial_folder / NAME)


def written_here(trial_folder: Path) -> list[WrittenHere]:
    """Return what a trial has written, by path."""
    try:
        return _LIST.validate_json((trial_folder / NAME).read_bytes())
    except (FileNotFoundError, ValidationError):
        return []


def copy_written(trial_folder: Path, artifact: Artifact, target: Path) -> None:
    """Copy a file that a trial has written; what is at `target` is replaced.

    Raises
    ------
    StorageError
        If it is not there any more, or was changed since.
    """
    file = next((file for file in written_here(trial_folder) if file.artifact.path == artifact.path), None)
    if file is None or artifact.sha256 is None:
        raise StorageError(f"The content of {artifact.path!r} was not kept. {artifact.note}".strip())
    if WrittenHere.at(file.artifact, Path(file.location)) != file:
        raise StorageError(
            f"{file.location} is not what the training wrote any more: it was changed or removed since. Files of a "
            "local run lie where its code puts them, and no copy is kept."
        )
    descriptor, temporary = tempfile.mkstemp(prefix=".det-", dir=target.parent)
    os.close(descriptor)
    try:
        shutil.copyfile(file.location, temporary)
        Path(temporary).replace(target)
    finally:
        Path(temporary).unlink(missing_ok=True)
