"""An entrypoint that cannot be imported here, since the packages are on the workers only: its text says what it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from det_native.capture.bindings import imports_in
from det_native.frameworks import Description, known_frameworks

_PACKAGE = "det_native"
#: Code that was written for Determined names the same classes by this package.
_OLD = "determined"
_MOST_FILES = 20


def framework_in_text(entrypoint: str, folder: Path) -> Description | None:
    """Return the framework whose trial class an entrypoint derives from; nothing is imported.

    Parameters
    ----------
    entrypoint : str
        ``"module:Class"``.
    folder : Path
        Where the module lies.

    Returns
    -------
    Description or None
        None where the text does not say it.
    """
    module, _, name = entrypoint.partition(":")
    waiting, seen = [f"{module}.{name}"], set[str]()
    while waiting and len(seen) < _MOST_FILES:
        dotted = waiting.pop(0)
        if dotted in seen:
            continue
        seen.add(dotted)
        found = _framework_of(dotted)
        if found is not None:
            return found
        waiting += _bases(dotted, folder)
    return None


def _framework_of(dotted: str) -> Description | None:
    first, _, rest = dotted.partition(".")
    known = f"{_PACKAGE}.{rest}" if first == _OLD else dotted
    for one in known_frameworks():
        reference_module, _, name = one.trial_class.partition(":")
        if name and known in (f"{one.api}.{name}", f"{reference_module}.{name}"):
            return one
    return None


def _bases(dotted: str, folder: Path) -> Iterator[str]:
    """Give the classes that a class derives from, or what a name of a module stands for, with their modules."""
    module, _, name = dotted.rpartition(".")
    found = _parsed(module, folder)
    if found is None:
        return
    tree, package = found
    imported = {one.name: one.path(package) for one in imports_in(tree)}
    own = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    if name in own:
        for base in own[name].bases:
            written = ast.unparse(base)
            first, point, rest = written.partition(".")
            if first in imported:
                yield f"{imported[first]}{point}{rest}"
            elif first in own:
                yield f"{module}.{written}"
    elif name in imported:
        yield imported[name]


def _parsed(module: str, folder: Path) -> tuple[ast.Module, str] | None:
    """Return a module's text, and the package that relative imports in it begin at."""
    names = module.split(".")
    path = folder.joinpath(*names)
    for file, package in ((path.with_suffix(".py"), names[:-1]), (path / "__init__.py", names)):
        try:
            return ast.parse(file.read_bytes()), ".".join(package)
        except (OSError, SyntaxError, ValueError):
            continue
    return None
