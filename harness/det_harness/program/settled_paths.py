"""Paths that become, before a cell runs, what they are in the notebook: what removed or replaced files does not run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from det_native.schema.manifests import FileEntry, SettledEntry
from det_native.storage.paths import check_relative


class SettledPaths:
    """Puts paths of the working directory right while a program runs.

    Parameters
    ----------
    settled : sequence of SettledEntry
    files : iterable of FileEntry
        What travels with the program.
    read_blob : callable
        Gives a blob's raw content by its hash, verified.
    directory : Path
    """

    def __init__(
        self,
        settled: Sequence[SettledEntry],
        files: Iterable[FileEntry],
        read_blob: Callable[[str], bytes],
        directory: Path,
    ) -> None:
        self._entries = settled
        self._files = {file.path: file for file in files} if settled else {}
        self._read_blob, self._directory = read_blob, directory

    def begin(self) -> None:
        """Take away what is not there until a later cell."""
        for entry in self._entries:
            if entry.awaited and (path := self._place(entry.path)) is not None:
                path.unlink(missing_ok=True)
                for folder in path.parents:
                    if folder == self._directory or not folder.is_dir() or any(folder.iterdir()):
                        break
                    folder.rmdir()

    def before_cell(self, index: int) -> None:
        """Put right what has to be so when a cell begins."""
        for entry in self._entries:
            if entry.before_cell != index or (path := self._place(entry.path)) is None:
                continue
            if (file := self._files.get(entry.path)) is None:
                self._remove(path)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._read_blob(file.sha256))
            path.chmod(file.mode)

    def _place(self, text: str) -> Path | None:
        """Return the place of a path; None if a link leads it out of the working directory."""
        check_relative(text)
        path = self._directory / text
        return path if path.parent.resolve().is_relative_to(self._directory.resolve()) else None

    def _remove(self, path: Path) -> None:
        """Remove what a path leads to, but for files of the bundle."""
        if path.relative_to(self._directory).as_posix() in self._files:
            return
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir():
            for inside in [*path.iterdir()]:
                self._remove(inside)
            if not any(path.iterdir()):
                path.rmdir()
