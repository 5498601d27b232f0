"""Which texts of a program come to code that may open them. Pure.

Python tells of each file that it opens. A text matters where one is opened out of its sight (by a library in C, in
another process), is only asked for (``exists()``), or is opened later, by a function that has not run yet. No library
has to be known for that: the text, or a name that it was given, is in a statement that calls something.
``label = "other.csv"`` with ``print(label)`` is not, as of Python's own functions none but ``open`` uses a file by its
name.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable
from enum import IntEnum

from det_native.capture.bindings import bound_by, root_of

#: What Python itself has that uses no file by its name, and calls nothing that it is given.
HARMLESS = frozenset(dir(builtins)) - {"open", "exec", "eval", "__import__", "map", "filter", "getattr"}
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Handed(IntEnum):
    """To which calls a text comes."""

    NOWHERE = 0
    #: To calls of Python's own, that have been made already: what these open is seen.
    PYTHON = 1
    ANYWHERE = 2


class Flow:
    """Says of each text, and of each name, what the statements do with it that have it: an assignment, or a call.

    Parameters
    ----------
    trees : iterable of ast.Module
        Pieces of a program that share their names, and whose own lines have run.
    is_pythons : callable
        Says of a name whether a call of it, or of something in it, is one of Python's own.

    Attributes
    ----------
    values : list of (str, ast.expr)
        What comes to calls that may use a file out of sight, or later: names, each with the expression of what is in
        it by keys and attributes that are written out, ``cfg["data"].path``.
    """

    def __init__(self, trees: Iterable[ast.Module], is_pythons: Callable[[str], bool] = lambda name: False) -> None:
        self._is_pythons = is_pythons
        self._texts: dict[int, tuple[Handed, set[str]]] = {}  # with the names and attributes that may be bound to it
        self._names: dict[str, Handed] = {}
        self.values: list[tuple[str, ast.expr]] = []
        for tree in trees:
            for statement in tree.body:
                self._take(statement)

    def handed(self, node: ast.AST) -> Handed:
        """Return to which calls a text of these pieces comes: the parts of it, if it is put together."""
        texts = [self._texts[id(part)] for part in ast.walk(node) if id(part) in self._texts]
        bound = [self._names.get(name, Handed.NOWHERE) for _, names in texts for name in names]
        return max([*bound, *(handed for handed, _ in texts)], default=Handed.NOWHERE)

    def _take(self, statement: ast.stmt) -> None:
        """Take in a statement, with those in it."""
        nodes = list(ast.walk(statement))
        is_later = any(isinstance(node, _LATER) for node in nodes)
        calls = [self._reach(node.func, is_later) for node in nodes if isinstance(node, ast.Call)]
        handed = max(calls, default=Handed.NOWHERE)
        bound = {name for node in nodes for name in bound_by(node)}
        parts: set[int] = set()  # of what is looked at whole: a key names nothing but its value
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                bound.add(node.attr)
            if isinstance(node, ast.Compare) and not any(isinstance(part, ast.Call) for part in ast.walk(node)):
                parts.update(map(id, ast.walk(node)))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
                self._texts[id(node)] = handed, bound
            if not isinstance(node, ast.expr) or isinstance(getattr(node, "ctx", None), ast.Store):
                continue
            if isinstance(node, ast.Name | ast.Attribute):
                name = node.id if isinstance(node, ast.Name) else node.attr
                self._names[name] = max(handed, self._names.get(name, Handed.NOWHERE))
            root = next(root_of(node), "") if _is_way(node) and id(node) not in parts else ""
            if root:
                parts.update(map(id, ast.walk(node)))
                if handed is Handed.ANYWHERE:
                    self.values.append((root, node))

    def _reach(self, function: ast.expr, is_later: bool) -> Handed:
        """Return what a call may do with what it is given."""
        if isinstance(function, ast.Name) and function.id in HARMLESS:
            return Handed.NOWHERE
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Constant | ast.JoinedStr):
            return Handed.NOWHERE
        name = next(root_of(function), "")
        is_seen = not is_later and bool(name) and (hasattr(builtins, name) or self._is_pythons(name))
        return Handed.PYTHON if is_seen else Handed.ANYWHERE


def _is_way(node: ast.expr) -> bool:
    """Whether an expression is a name, or what is in one by keys and attributes that are written out."""
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)):
        node = node.value
    return isinstance(node, ast.Name)
