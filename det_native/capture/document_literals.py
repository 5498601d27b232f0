"""Reads arguments of calls where they are literals, or names that are bound once to literals and touched no more."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from det_native.capture.bindings import bound_by
from det_native.capture.document_calls import parents_of

_Around = ast.Dict | ast.List | ast.Tuple | ast.keyword


class NotLiteralError(Exception):
    """An argument is no literal: by which text, and where that stands."""

    def __init__(self, text: str, cell: int, line: int) -> None:
        super().__init__(text)
        self.text, self.cell, self.line = text, cell, line


class Literals:
    """What is literal in a document.

    Parameters
    ----------
    trees : mapping of int to ast.Module
        The cells as Python, as far as the call.
    calls : collection of ast.Call
        Calls that change nothing of what they are given.
    hidden : collection of str
        Names bound by what is not seen here.
    anything : NotLiteralError, optional
        What may bind any name.
    """

    def __init__(
        self,
        trees: Mapping[int, ast.Module],
        calls: Collection[ast.Call],
        hidden: Collection[str],
        anything: NotLiteralError | None = None,
    ) -> None:
        self._calls, self._hidden, self._anything = set(calls), hidden, anything
        self._parents: dict[ast.AST, ast.AST] = {}
        self._cells: dict[ast.AST, int] = {}
        self._bound: dict[str, list[ast.AST]] = defaultdict(list)
        self._used: dict[str, list[ast.AST]] = defaultdict(list)
        for cell, tree in trees.items():
            self._parents |= parents_of(tree)
            for node in ast.walk(tree):
                self._cells[node] = cell
                for name in bound_by(node):
                    self._bound[name].append(node)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    self._used[node.id].append(node)

    def read(self, node: ast.expr) -> Any:
        """Return the value of an expression.

        Raises
        ------
        NotLiteralError
            It is none, in the first part that is none.
        """
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            return {self._key(key, node): self.read(value) for key, value in pairs}
        if isinstance(node, ast.List):
            return [self.read(one) for one in node.elts]
        if isinstance(node, ast.Tuple):
            return tuple(self.read(one) for one in node.elts)
        if isinstance(node, ast.Name):
            return self._named(node)
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            raise self._error(node) from None

    def _key(self, key: ast.expr | None, node: ast.Dict) -> Any:
        if isinstance(key, ast.Constant):
            return key.value
        raise self._error(node)

    def _named(self, node: ast.Name) -> Any:
        bound = self._bound[node.id]
        if self._anything is not None:
            raise self._anything
        if not bound or node.id in self._hidden:
            raise self._error(node)
        statement = self._parents[bound[0]]
        is_own_line = isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(
            self._parents[statement], ast.Module
        )
        targets = getattr(statement, "targets", [bound[0]])
        if not is_own_line or len(bound) > 1 or targets != [bound[0]] or statement.value is None:  # type: ignore[attr-defined]
            raise self._error(bound[-1], whole=True)
        value = self.read(statement.value)  # type: ignore[attr-defined]
        for use in self._used[node.id] if isinstance(value, list | dict | tuple) else ():
            if not self._only_reads(use):
                raise self._error(use, whole=True)
        return value

    def _only_reads(self, use: ast.AST) -> bool:
        """Whether a name is only shown there, or given to one of the calls."""
        around = self._parents[use]
        while isinstance(around, _Around):
            around = self._parents[around]
        return isinstance(around, ast.Expr) or around in self._calls

    def _error(self, node: ast.AST, *, whole: bool = False) -> NotLiteralError:
        """Return the error for an expression, or for the whole statement that it stands in."""
        while whole and not isinstance(node, ast.stmt):
            node = self._parents[node]
        return NotLiteralError(ast.unparse(node).splitlines()[0], self._cells[node], node.lineno)  # type: ignore[attr-defined]


def mentions(name: str, tree: ast.Module) -> bool:
    """Whether a cell has the name of a variable of the environment in it."""
    return any(
        (isinstance(node, ast.Constant) and node.value == name) or (isinstance(node, ast.keyword) and node.arg == name)
        for node in ast.walk(tree)
    )
