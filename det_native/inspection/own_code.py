"""Whose code a file is: the user's, or a library's."""

from __future__ import annotations

import functools
import sysconfig
from pathlib import Path


@functools.lru_cache(maxsize=1)
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    own = Path(__file__).resolve().parent.parent
    folders = {str(Path(paths[key]).resolve()) for key in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")}
    return (*sorted(folders), str(own))


@functools.lru_cache(maxsize=4096)
def is_library_file(path: str) -> bool:
    """Whether a file belongs to Python, an installed package (or its commands) or det_native, and not to the user."""
    if path.startswith("<") or "site-packages" in path or "dist-packages" in path:
        return True
    resolved = str(Path(path).resolve())
    return any(resolved.startswith(folder + "/") or resolved == folder for folder in _library_folders())
