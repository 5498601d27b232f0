"""Which names belong to a scope of Python code."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of a scope, without those of the scopes inside it (their definitions themselves are included)."""
    for node in body:
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from own_nodes(node.decorator_list)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            yield from (inner for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr))
        elif not isinstance(node, ast.Lambda):
            yield from own_nodes(ast.iter_child_nodes(node))


def bound_names(body: Sequence[ast.AST]) -> set[str]:
    """Return the names that the statements of a scope bind, ``global`` ones included."""
    names: set[str] = set()
    for node in own_nodes(body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            names.add(node.id)
        elif isinstance(node, ast.NamedExpr):
            names.add(node.target.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name is not None:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest is not None:
            names.add(node.rest)
    outer = {name for node in own_nodes(body) if isinstance(node, ast.Nonlocal) for name in node.names}
    return names - outer
