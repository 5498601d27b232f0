"""Whose code is running: the user's, a library's, Python's, or ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import FrameType

_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_PYTHON = os.path.dirname(os.__file__) + os.sep
#: Whose code files have, as far as that was asked for.
_owners: dict[str, str] = {}


def owners(frame: FrameType | None) -> Iterator[str]:
    """Yield whose code a frame runs, the one that called it, and so on."""
    while frame is not None:
        file = frame.f_code.co_filename
        yield _owners.get(file) or owner_of(file)
        frame = frame.f_back


def owner_of(file: str) -> str:
    """Return whose code a file has: ``ours``, ``user``, ``import``, ``library`` or ``python``."""
    if file.startswith(_OURS):
        owner = "ours"
    elif file.startswith("<frozen importlib"):
        owner = "import"
    elif "ipykernel_" in file or file.startswith("<ipython-input"):
        owner = "user"
    elif file.startswith(("<", _PYTHON)) and "site-packages" not in file:
        owner = "python"
    else:
        _owners[file] = "library"  # until it is known: what is imported here asks for it
        from det_native.heap.ownership import is_library_file

        owner = "library" if is_library_file(file) else "user"
    _owners[file] = owner
    return owner
