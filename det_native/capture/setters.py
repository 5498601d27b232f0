"""Whether a function of the notebook sets something that is not its own: what it does with names of others. Pure."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator

_BUILT_IN = frozenset(dir(builtins))


def sets_by(function: ast.FunctionDef | ast.AsyncFunctionDef, late: Collection[str]) -> bool:
    """Whether a function sets a part of what it looks up or imports, or calls something of it for its effect.

    Parameters
    ----------
    function : ast.FunctionDef or ast.AsyncFunctionDef
        It, with what is defined inside of it.
    late : collection of str
        The global names that it looks up.
    """
    others = set(late) - _BUILT_IN
    touched: set[str] = set()
    for statement in function.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Import | ast.ImportFrom):
                others.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
            else:
                touched.update(_touched(node))
    return not others.isdisjoint(touched)


def _touched(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
            yield from root_of(node)
        case ast.AugAssign(target=ast.Name(id=name)):
            yield name
        case ast.Expr(value=ast.Call(args=arguments) as call):
            yield from root_of(call)
            yield from (one.id for one in arguments if isinstance(one, ast.Name))


def root_of(node: ast.expr) -> Iterator[str]:
    """Yield the name that an expression begins with: ``np`` of ``np.random.seed(1)``."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Name):
        yield node.id
