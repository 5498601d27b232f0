"""The context directory as working directory of code that runs here, as it is on a worker."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class WorkingDirectory:
    """The process's working directory while it is a context directory, and the way back."""

    def __init__(self) -> None:
        self._entered: Path | None = None
        self._original: Path | None = None

    def enter(self, folder: Path) -> None:
        """Make `folder` the working directory and a place of imports."""
        self.leave()
        self._original, self._entered = Path.cwd(), folder
        os.chdir(folder)
        sys.path.insert(0, str(folder))

    def leave(self) -> None:
        """Go back; a directory that the user has changed to meanwhile stays."""
        original, entered = self._original, self._entered
        self._original = self._entered = None
        if original is None or entered is None:
            return
        if str(entered) in sys.path:
            sys.path.remove(str(entered))
        if Path.cwd() == entered and original.is_dir():
            os.chdir(original)

    @contextmanager
    def inside(self, folder: Path | None) -> Iterator[None]:
        """Make `folder`, if there is one, the working directory for the duration of the block."""
        if folder is None:
            yield
            return
        before = self._entered
        self.enter(folder)
        try:
            yield
        finally:
            self.leave()
            if before is not None:
                self.enter(before)


working_directory = WorkingDirectory()
