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
    files : iterable of FileEntry
        What travels with the program.
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

    def before_cell(self, index: int) -> None:
        """Put right what has to be so when a cell begins; not where a link leads out of the working directory."""
        for entry in self._entries:
            check_relative(entry.path)
            path, root = self._directory / entry.path, self._directory.resolve()
            if entry.before_cell != index or not path.parent.resolve().is_relative_to(root):
                continue
            if entry.path not in self._files:
                self._remove(path)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._read_blob(self._files[entry.path].sha256))
            path.chmod(self._files[entry.path].mode)

    def _remove(self, path: Path) -> None:
        """Remove what is there, but for files of the bundle."""
        if path.is_dir() and not path.is_symlink():
            for inside in [*path.iterdir()]:
                self._remove(inside)
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(self._directory).as_posix() not in self._files:
            path.unlink(missing_ok=True)
