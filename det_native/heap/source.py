"""Functions by the syntax tree of their source: the same whatever compiled them, and wherever.

Bytecode would not do: CPython 3.11 and later emit other code for ``torch.relu()`` where the same compilation imports
``torch``, and each version of Python emits its own.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import linecache
import types
from dataclasses import dataclass, field

_Definition = ast.FunctionDef | ast.AsyncFunctionDef
_Span = tuple[tuple[int, int], tuple[int, int]]


@functools.lru_cache(maxsize=4096)
def source_digest(code: types.CodeType) -> str | None:
    """Return the digest of the syntax tree that a code object was compiled from; None where its source is unknown.

    Positions, docstrings and annotations do not count.

    Parameters
    ----------
    code : types.CodeType
        Of a function or a lambda.
    """
    lines = linecache.getlines(code.co_filename)
    node = _index("".join(lines)).node_of(code) if lines else None
    return None if node is None else _digest(_normalised(node))


def signature_digest(code: types.CodeType) -> str:
    """Return the digest of the name and the parameters of a code object, which it has with or without its source."""
    return _digest(repr((code.co_name, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass
class _Index:
    """The functions of one source, by where they begin."""

    definitions: dict[tuple[str, int], _Definition] = field(default_factory=dict)
    lambdas: list[ast.Lambda] = field(default_factory=list)

    def node_of(self, code: types.CodeType) -> _Definition | ast.Lambda | None:
        """Return the node that a code object was compiled from; None if it is not of this source."""
        if code.co_name != "<lambda>":
            return self.definitions.get((code.co_name, code.co_firstlineno))
        span = _span_of(code)
        on_line = [node for node in self.lambdas if node.lineno == code.co_firstlineno]
        if span is None:
            return on_line[0] if len(on_line) == 1 else None
        around = [node for node in self.lambdas if _contains(node.body, span)]
        return min(around, key=_size, default=None)


@functools.lru_cache(maxsize=256)
def _index(source: str) -> _Index:
    index = _Index()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return index
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            index.lambdas.append(node)
        elif isinstance(node, _Definition):
            # The first line of the code of a decorated function is that of its first decorator.
            for line in {node.lineno, *(decorator.lineno for decorator in node.decorator_list[:1])}:
                index.definitions.setdefault((node.name, line), node)
    return index


def _span_of(code: types.CodeType) -> _Span | None:
    """Return from where to where the instructions of a code object reach; None where columns are not kept."""
    # Instructions that set the function up stand at its first line with no width.
    places = [
        ((line, column), (end_line, end_column))
        for line, end_line, column, end_column in code.co_positions()
        if line is not None and end_line is not None and column is not None and end_column is not None
        if (line, column) != (end_line, end_column)
    ]
    if not places:
        return None
    return min(start for start, _ in places), max(end for _, end in places)


def _contains(node: ast.expr, span: _Span) -> bool:
    end = (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    return (node.lineno, node.col_offset) <= span[0] and span[1] <= end


def _size(node: ast.Lambda) -> tuple[int, int]:
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
    return end_line - node.lineno, end_column - node.col_offset


class _Normaliser(ast.NodeTransformer):
    """Takes away what has no part in what a function computes."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._definition(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._definition(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = _without_docstring(node.body)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(arg=node.arg)

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        # Defaults are values, which are compared themselves.
        node.defaults = [ast.Constant(None) for _ in node.defaults]
        node.kw_defaults = [default and ast.Constant(None) for default in node.kw_defaults]
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        # In a class an annotation makes a field of a dataclass: which names have one counts.
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def _definition(self, node: _Definition) -> ast.AST:
        node.body, node.returns = _without_docstring(node.body), None
        if hasattr(node, "type_params"):
            node.type_params = []
        return self.generic_visit(node)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return body[1:] or [ast.Pass()]
    return body


def _normalised(node: _Definition | ast.Lambda) -> str:
    # A copy: the index keeps the node for other functions. Written out and read again, it has no positions either.
    copy: ast.AST = ast.parse(ast.unparse(node))
    return ast.dump(_Normaliser().visit(copy))
