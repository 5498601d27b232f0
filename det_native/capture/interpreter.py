"""Which Python and which packages a bundle is made with."""

from __future__ import annotations

import os
import platform
import re
import sys

from det_native.schema.manifests import Interpreter

_ENDS = (".dist-info", ".egg-info")
_PYTHON_TAG = re.compile(r"-py\d+(\.\d+)?$")

_last: tuple[tuple[object, ...], Interpreter] | None = None


def current_interpreter() -> Interpreter:
    """Return this process's Python and the installed packages, by normalised name.

    Names and versions are read from the names of the metadata folders, as installers write them: parsing the metadata
    of 200 packages would take a quarter of a second. The answer is kept until a folder of ``sys.path`` changes, as it
    does when something is installed.
    """
    global _last
    folders = [(path or os.getcwd()) for path in sys.path]
    key = (sys.executable, *((folder, _mtime(folder)) for folder in folders))
    if _last is None or _last[0] != key:
        packages: dict[str, str] = {}
        for folder in folders:
            for name, version in _packages_in(folder):
                packages.setdefault(name, version)
        interpreter = Interpreter(
            python=platform.python_version(), executable=sys.executable, packages=dict(sorted(packages.items()))
        )
        _last = (key, interpreter)
    return _last[1]


def _mtime(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _packages_in(folder: str) -> list[tuple[str, str]]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(_ENDS))
    except OSError:  # a zip file, or a folder that is not there
        return []
    found = []
    for name in names:
        stem, _, end = name.rpartition(".")
        package, separator, version = (_PYTHON_TAG.sub("", stem) if end == "egg-info" else stem).partition("-")
        if separator and not package.startswith("~"):  # pip's mark for a package that it was removing
            found.append((re.sub(r"[-_.]+", "-", package).lower(), version))
    return found
