"""Which names ``from module import *`` binds, by the source of the module: nothing is imported."""

from __future__ import annotations

import ast
from pathlib import Path

from det_native.capture.modules import module_file
from det_native.capture.nesting import NOT_PYTHON
from det_native.capture.scopes import bound_names


def star_names(module: str) -> frozenset[str] | None:
    """Return the names that ``from module import *`` binds, read from its source; None if that does not tell."""
    if module == "det_native":
        import det_native

        return frozenset(det_native.__all__)
    file = _source_of(module)
    if file is None:
        return None
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, *NOT_PYTHON):
        return None
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
        return None
    names = bound_names(tree.body)
    if "__all__" in names or "__getattr__" in names:
        return _exported(tree)
    return frozenset(name for name in names if not name.startswith("_"))


def _source_of(module: str) -> Path | None:
    """The source of a module, found without importing the packages that it is in."""
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
