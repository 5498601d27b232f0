"""Which Python and which packages a bundle is made with."""

from __future__ import annotations

import os
import platform
import sys

from det_native.schema.manifests import Interpreter
from det_native.schema.packages import distributions_in, stamp

_last: tuple[tuple[object, ...], Interpreter] | None = None


def current_interpreter() -> Interpreter:
    """Return this process's Python and the installed packages, by normalised name.

    Names and versions are read from the names of the metadata folders, as installers write them: parsing the metadata
    of 200 packages would take a quarter of a second. The answer is kept until a folder of ``sys.path`` changes, as it
    does when something is installed.
    """
    global _last
    folders = [(path or os.getcwd()) for path in sys.path]
    key = (sys.executable, *stamp(folders))
    if _last is None or _last[0] != key:
        packages: dict[str, str] = {}
        for folder in folders:
            for name, version, _ in distributions_in(folder):
                packages.setdefault(name, version)
        interpreter = Interpreter(
            python=platform.python_version(), executable=sys.executable, packages=dict(sorted(packages.items()))
        )
        _last = (key, interpreter)
    return _last[1]
