"""Folders that have to be there when a program begins: without them, what it writes would fail."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from det_native.capture.folders import has_files, is_hidden
from det_native.capture.modules import is_installed
from det_native.capture.path_texts import HOLE, LONGEST
from det_native.capture.seen_files import SeenFiles

_UNKNOWN = re.compile(rf"[*?{HOLE}]")


class NeededFolders:
    """Takes note of the folders that a program names, or writes to, and that it does not make.

    Parameters
    ----------
    root : Path
        The folder of the user's files.
    bases : sequence of Path
        Where the code looks for relative paths.
    whole : bool
        All files of `root` travel but for those that the user leaves out.

    Attributes
    ----------
    needed : list of str
        Those that are there and have to be, relative to `root`.
    made : list of str
        Those that the program makes by lines that nobody saw run, and that must not be there.
    """

    def __init__(self, root: Path, bases: Sequence[Path], whole: bool, seen: SeenFiles) -> None:
        self.needed: list[str] = []
        self.made: list[str] = []
        self._root, self._bases, self._whole, self._seen = root, bases, whole, seen

    def add_made(self, text: str) -> None:
        """Take note of a folder that the program makes."""
        path = Path(os.path.abspath(self._root / os.path.expanduser(text))) if HOLE not in text else self._root
        if self._root in path.parents:
            self.made.append(path.relative_to(self._root).as_posix())

    def add(self, text: str, *, is_written: bool = False) -> None:
        """Take note of a folder that a path names, or leads into.

        One with files that do not travel is none, unless it is written to: code may ask whether the files are there.
        """
        beginning = _UNKNOWN.split(text)[0]
        if (
            not beginning.strip("./\\~")
            or len(beginning) > LONGEST
            or {"\n", "\0"} & {*beginning}
            or "://" in beginning
        ):
            return
        for base in self._bases:
            path = Path(os.path.abspath(base / os.path.expanduser(beginning)))
            leads_into = [path] if beginning != text else [] if beginning.endswith("/") else [path.parent]
            for folder in (path, *leads_into):
                if self._is_own(folder):
                    if is_written or (folder in leads_into and not self._whole) or not has_files(folder):
                        self._add(folder)
                    break

    def add_written(self) -> None:
        """Take note of the folders that runs were seen to write to."""
        for folder in sorted(self._seen.written):
            if self._is_own(Path(folder)):
                self._add(Path(folder))

    def _is_own(self, folder: Path) -> bool:
        if self._root not in folder.parents or is_hidden(folder.relative_to(self._root)):
            return False
        return (
            os.path.isdir(folder) and os.path.realpath(folder) == str(folder) and not is_installed(folder, self._root)
        )

    def _add(self, folder: Path) -> None:
        target = folder.relative_to(self._root).as_posix()
        made = any(target == one or target.startswith(f"{one}/") for one in self.made)
        if target not in self.needed and not made and not self._seen.makes_folder(folder):
            self.needed.append(target)
