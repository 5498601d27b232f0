"""The files in folders of the user's, without caches and what is hidden."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

#: Folders that no program reads.
SKIPPED = frozenset({"__pycache__", ".ipynb_checkpoints", ".git", "node_modules"})
#: Endings of code, which goes its own way.
CODE = frozenset({".ipynb", ".py", ".pyc"})


def files_in(folder: Path) -> list[Path]:
    """Return all files in a folder, but for caches and hidden ones; what goes away meanwhile is left out."""
    return sorted(path for _, files in _walk(folder) for path in files if path.is_file())


def has_files(path: Path) -> bool:
    """Whether a path is a file, or a folder with one in it that is not hidden."""
    return path.is_file() or any(file.is_file() for _, files in _walk(path) for file in files)


def links_in(folder: Path) -> list[Path]:
    """Return the links in a folder that lead to folders, but for hidden ones."""
    return sorted(path for folders, _ in _walk(folder) for path in folders if path.is_symlink())


def _walk(folder: Path) -> Iterator[tuple[list[Path], list[Path]]]:
    """Yield the folders and files of a folder and of those in it; unlike Path.rglob(), bear with some that vanish."""
    for inside, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not is_hidden(Path(name))]
        shown = [name for name in files if not is_hidden(Path(name))]
        yield [Path(inside, name) for name in folders], [Path(inside, name) for name in shown]


def files_of_pattern(base: Path, pattern: str, limit: int) -> list[Path]:
    """Return the files, and those in folders, that match in `base`; not all if they are more than `limit`."""
    try:
        matching = (path for path in base.glob(pattern) if not is_hidden(path.relative_to(base)))
        inside = (file for path in matching for file in ([path] if path.is_file() else files_in(path)))
        inside = (file for file in inside if file.suffix not in CODE)
        return sorted({file.resolve() for file in islice(inside, limit + 1)})
    except (OSError, ValueError, RuntimeError, NotImplementedError):
        return []  # Not a path that this system can have.


def is_hidden(relative: Path) -> bool:
    return any(part in SKIPPED or (part.startswith(".") and part != "..") for part in relative.parts)


def size_of_file(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:  # between the two
        return 0


def real_path(path: str) -> str:
    """Return an absolute path with that of its folder resolved: a link stays one."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
