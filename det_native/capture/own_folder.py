"""Absolute paths that lie in the folder of the user's files: the workers have them in the working directory.

``ModelCheckpoint("/home/me/notebook/out/best.keras")`` must not write into the notebook's folder from several trials at
once, nor fail on another machine: the program is compiled there with its own working directory instead
(``docs/decisions/0036-files-by-absolute-paths.md``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from det_native.capture.missing_files import program_texts
from det_native.capture.model import OwnPath
from det_native.capture.path_texts import HOLE, LONGEST, RESULTS, only_written
from det_native.schema.manifests import PlaceEntry

#: The place of the folder itself, relative to the working directory of a worker.
HERE = "."
_UNKNOWN = re.compile(rf"[*?{HOLE}]")


def own_paths(sources: Sequence[tuple[str, str]], arguments: Iterable[str], root: Path) -> Iterator[OwnPath]:
    """Yield the absolute paths in the folder of the user's files that a program names.

    Parameters
    ----------
    sources : sequence of (source, label)
        Cells and modules of the program.
    arguments : iterable of str
        The words that it is started with.
    root : Path
        The folder; it is the working directory on the workers.
    """
    words = (word.partition("=")[2] if word.startswith("-") else word for word in arguments)
    named = [text for text, _ in program_texts(sources)]
    written = only_written(named)
    texts = [(path.text, path.role in RESULTS or path.text in written) for path in named]
    folders: dict[str, str | None] = {}
    for text, is_written in (*((word, False) for word in words), *texts):
        beginning = _beginning(text)
        if beginning and beginning not in folders:
            folders[beginning] = _written_as(beginning, root)
        if beginning and (folder := folders[beginning]) is not None:
            yield OwnPath(beginning, folder, is_written)


def own_places(
    paths: Iterable[OwnPath], contents: Iterable[bytes], root: Path, travels: Callable[[Path], bool]
) -> list[PlaceEntry]:
    """Return where the workers have the folder of the user's files.

    A file that exists there, that the program may read and that does not travel is read at its own place, if a worker
    can see it.

    Parameters
    ----------
    contents : iterable of bytes
        Those of the values that travel.
    travels : callable
        Says whether the workers have a file or folder, by its path in the folder.
    """
    paths = list(paths)
    folders = {path.folder for path in paths}
    if any(os.fsencode(root) in content for content in contents):
        folders.add(str(root))
    stays: set[str] = set()
    for named in paths:
        path = Path(os.path.abspath(os.path.expanduser(named.text)))
        relative = os.path.relpath(path, os.path.abspath(os.path.expanduser(named.folder)))
        if not named.is_written and relative != HERE and path.exists() and not travels(Path(relative)):
            stays.add(named.text.rstrip("/"))
    return [
        *(PlaceEntry(text=text, target=text) for text in sorted(stays)),
        *(PlaceEntry(text=folder, target=HERE) for folder in sorted(folders)),
    ]


def _beginning(text: str) -> str:
    """Return an absolute path as far as it is known; empty if a text is none."""
    if not text.startswith(("/", "~/")) or "\n" in text or len(text) > LONGEST:
        return ""
    beginning = _UNKNOWN.split(text)[0]
    return beginning.rpartition("/")[0] if beginning != text else beginning.rstrip("/")


def _written_as(text: str, root: Path) -> str | None:
    """Return how a path calls the folder that it lies in; None if it does not lie there."""
    while text.strip("/"):
        try:
            if os.path.samefile(os.path.expanduser(text), root):
                return text
        except (OSError, ValueError):
            pass
        text = text.rpartition("/")[0]
    return None
