"""The packages that a program imports, whether it can do without them, and which ones this Python has."""

from __future__ import annotations

import math
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence

from det_native.capture.bindings import imports_in
from det_native.capture.modules import is_local
from det_native.capture.syntax import tree_of
from det_native.schema.manifests import Interpreter
from det_native.schema.packages import distributions_in, stamp
from det_native.schema.worker_environment import PackageUse

_OWN = frozenset({"det_native", "det_harness", "determined"})


def packages_of(
    sources: Sequence[tuple[str, str]],
    others: Iterable[tuple[str, str]] = (),
    optional: Mapping[str, int] | None = None,
) -> list[PackageUse]:
    """Return the modules of installed packages that pieces of source import, each once.

    Parameters
    ----------
    sources : sequence of (source, label)
        Cells and modules of the program.
    others : iterable of (module, label)
        Modules that are needed though no source imports them: values are made of what is in them.
    optional : mapping of str to int
        Labels of cells that may fail, and from which line on: the program can do without what they import there.
    """
    found: dict[str, PackageUse] = {}
    optional = optional or {}
    uses = [
        PackageUse(one.module.partition(".")[0], label, one.required and one.line < optional.get(label, math.inf))
        for source, label in sources
        for one in imports_in(tree_of(source))
        if one.module and not one.level
    ]
    for use in [*uses, *(PackageUse(module.partition(".")[0], label) for module, label in others)]:
        known = found.get(use.module)
        if known is None or (use.required and not known.required):
            found[use.module] = use
    return [use for use in found.values() if not _is_left_out(use.module)]


def _is_left_out(module: str) -> bool:
    return module in sys.stdlib_module_names or module in _OWN or is_local(module) or not module.isidentifier()


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
