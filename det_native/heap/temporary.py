"""Temporary folders that the program holds: what a training writes there does not come home."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePath
from typing import Any

from det_native.heap.edges import NamedKind
from det_native.heap.names import ENVIRONMENT
from det_native.heap.snapshot import Snapshot

_MOST_FILES = 5_000
_PATHS = frozenset({str, type(PurePath()), type(Path())})


class TemporaryFolders:
    """The temporary folders that a snapshot's names and attributes lead to, as they are when this is made."""

    def __init__(self, snapshot: Snapshot) -> None:
        #: How the user writes a folder, and what was in it, by its path.
        self._folders: dict[str, tuple[str, Any]] = {}
        beginning, here = os.path.join(tempfile.gettempdir(), ""), os.path.join(os.getcwd(), "")
        named = {kind for kind in {*snapshot.kinds} if isinstance(kind, NamedKind) and kind is not ENVIRONMENT}
        for number, (kind, children) in enumerate(zip(snapshot.kinds, snapshot.children, strict=True)):
            if kind not in named or _PATHS.isdisjoint(map(type, children)):
                continue
            for place, child in enumerate(children):
                if type(child) not in _PATHS:
                    continue
                path = os.path.join(child, "")
                is_passed_over = path in self._folders or here.startswith(path) or path.startswith(here)
                if not is_passed_over and path.startswith(beginning) and path != beginning and os.path.isdir(path):
                    step = kind.step(kind.labels(snapshot.objects[number], (), snapshot.facts[number])[place])
                    way = f"{snapshot.path(number)}{step}" if number >= snapshot.first else step.lstrip(".")
                    self._folders[path] = way, _files_in(path)

    def sentences(self) -> list[str]:
        """Return a sentence for each folder in which files have changed since."""
        return [
            f"`{way}` is a temporary folder: files that the training wrote there stayed on the worker. "
            "Write them into the working folder."
            for path, (way, before) in self._folders.items()
            if _files_in(path) != before
        ]


def _files_in(path: str) -> dict[str, float]:
    files: dict[str, float] = {}
    entries = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
    for entry in islice(entries, _MOST_FILES):
        with suppress(OSError):  # deleted just now
            files[entry] = os.lstat(entry).st_mtime
    return files
