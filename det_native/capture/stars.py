"""Which names ``from module import *`` binds: of a loaded module as they are, else by its source."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from det_native.capture.nesting import NOT_PYTHON
from det_native.capture.reads import reads_of

#: Its public names are read without a look at its source.
OURS = "det_native"


def star_names(module: str, *, load: bool = False) -> frozenset[str] | None:
    """Return the names that ``from module import *`` binds; None if that cannot be told.

    Parameters
    ----------
    module : str
    load : bool
        Import it, if it is not loaded; else its source is read.
    """
    if load or module == OURS:
        with suppress(ImportError):
            importlib.import_module(module)
    loaded = sys.modules.get(module)
    if loaded is not None:
        return _public(vars(loaded), getattr(loaded, "__all__", None))
    file = None if load else _source_of(module)
    if file is None:
        return None
    try:
        source = file.read_text(encoding="utf-8")
        code = reads_of(source)
        if code.stars:
            return None
        if code.bound & {"__all__", "__getattr__"}:
            return _exported(ast.parse(source))
        return _public(code.bound, None)
    except (OSError, *NOT_PYTHON):
        return None


def _public(names: Iterable[str], exported: Iterable[str] | None) -> frozenset[str]:
    return frozenset(name for name in names if not name.startswith("_")) if exported is None else frozenset(exported)


def _source_of(module: str) -> Path | None:
    """The source of a module, found without importing the packages that it is in."""
    from det_native.capture.modules import module_file  # it loads half of capture

    top, _, rest = module.partition(".")
    file = module_file(top)
    if file is None or not rest:
        return file
    base = file.parent.joinpath(*rest.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _exported(tree: ast.Module) -> frozenset[str] | None:
    """The names in ``__all__``, if it is one list of literals."""
    values = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)
        and any(isinstance(name, ast.Name) and name.id == "__all__" for name in ast.walk(node))
    ]
    if len(values) != 1 or values[0] is None:
        return None
    try:
        return frozenset(ast.literal_eval(values[0]))
    except (ValueError, TypeError):
        return None
