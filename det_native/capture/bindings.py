"""What the nodes of a syntax tree bind, and what they import: read in this place only."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import NamedTuple

_FORGIVEN = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


class Imported(NamedTuple):
    """What an import binds: a name, to a module or an attribute of one.

    `name` is ``*`` for all that a module has to offer. `required` is False for an import in a function, and for one
    whose failure is caught.
    """

    name: str
    module: str
    attribute: str = ""
    level: int = 0
    line: int = 0
    renamed: bool = False
    required: bool = True

    def source(self, package: str = "") -> str:
        """Return the module by its full name; `package` is the one of the code around it. Empty outside of one."""
        if not self.level:
            return self.module
        parts = package.split(".") if package else []
        return ".".join([*parts[: len(parts) - self.level + 1], *([self.module] if self.module else [])])

    def path(self, package: str = "") -> str:
        """Return what the name stands for: ``numpy``, ``os.path``."""
        source = self.source(package)
        if self.attribute:
            return f"{source}.{self.attribute}".lstrip(".")
        return source if self.renamed else self.name


def imports_in(node: ast.AST, required: bool = True) -> Iterator[Imported]:
    """Yield what all imports in a piece of code bind."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            yield Imported(name, alias.name, line=node.lineno, renamed=alias.asname is not None, required=required)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            name = alias.asname or alias.name
            yield Imported(name, node.module or "", alias.name, node.level, node.lineno, required=required)
    elif not isinstance(node, ast.expr):  # an expression has no statement in it
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or _is_forgiven(node):
            required = False
        for child in ast.iter_child_nodes(node):
            yield from imports_in(child, required)


def _is_forgiven(node: ast.AST) -> bool:
    """Whether an import that fails in it is caught."""
    return isinstance(node, ast.Try) and any(catches(handler, _FORGIVEN) for handler in node.handlers)


def catches(handler: ast.ExceptHandler, names: frozenset[str]) -> bool:
    """Whether a handler is for errors of one of these names, or for any."""
    if handler.type is None:
        return True
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(handler.type))


def bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node itself binds or deletes, in whatever scope it stands."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import() | ast.ImportFrom():
            yield from (one.name for one in imports_in(node))
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name


def root_of(node: ast.expr) -> Iterator[str]:
    """Yield the name that an expression begins with: ``np`` of ``np.random.seed(1)``."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Name):
        yield node.id


def star_names(module: str) -> frozenset[str] | None:
    """Return the names that ``from module import *`` binds; None if the module is not loaded: nothing is imported."""
    loaded = sys.modules.get(module)
    if loaded is None:
        return None
    return frozenset(getattr(loaded, "__all__", (name for name in vars(loaded) if not name.startswith("_"))))
