"""Where the event files of the trial that runs in this process go."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol


class Writer(Protocol):
    """What has event files open."""

    def flush(self) -> Any:
        """Write out what is buffered."""

    def close(self) -> Any:
        """Write out what is buffered, and close the files."""


_folder: Path | None = None
_writers: list[Writer] = []


def get_base_path(environment: Any = None) -> Path:
    """Return the folder for event files: the running trial's own, outside a run one in the temporary folder.

    Parameters
    ----------
    environment
        Has no effect; it is there for code that was written for Determined.
    """
    return _folder if _folder is not None else Path(tempfile.gettempdir()) / "tensorboard"


def opened(writer: Writer) -> None:
    """Note a writer, so that its files are complete at every checkpoint, and closed at the end of the run."""
    _writers.append(writer)


def flush() -> None:
    """Have every open writer write out what it has."""
    for writer in _writers:
        writer.flush()


@contextmanager
def writing_to(folder: Path | None) -> Iterator[None]:
    """Make `folder` the place of event files for the block; None leaves it where it is.

    What was opened inside is closed at the end.
    """
    global _folder, _writers
    before, writers_before = _folder, _writers
    _folder, _writers = folder or before, []
    try:
        yield
    finally:
        for writer in _writers:
            writer.close()
        _folder, _writers = before, writers_before
