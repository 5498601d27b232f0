"""Reads the cells of a document from top to bottom: which training calls they make, and with which arguments."""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from det_native.capture.document_applying import CallReader
from det_native.capture.document_calls import FoundCall
from det_native.capture.document_expressions import FAILURES
from det_native.capture.document_values import Class, Function, Symbol, Unknown, binary, is_plain
from det_native.capture.scopes import bound_names

#: ``determined`` and its parts are other names of ours (see ``det_native.compat``).
_ALIAS = "determined"


def read_calls(sources: Sequence[str | None], folder: Path) -> list[FoundCall]:
    """Return the calls of ``init()``, ``fit()`` and ``create()`` that a document makes, in order.

    Parameters
    ----------
    sources : sequence of str or None
        The cells as Python; None for those that are not.
    folder : Path
        The notebook's folder.
    """
    reader = _Reader(folder)
    reader.scope.names["__name__"] = "__main__"
    for index, source in enumerate(sources):
        if source is not None:
            reader.read_cell(index, source)
    return reader.calls


class _Reader(CallReader):
    """Statements. `_blocks` counts those around the present one that may not run, in the function being read."""

    returned: tuple[Any] | None = None
    ended = False
    _blocks = 0

    def read_cell(self, index: int, source: str) -> None:
        self.cell = self.running = index
        self.ended = False
        for statement in ast.parse(source).body:
            self.running_line = statement.lineno
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        read = getattr(self, f"_{type(node).__name__.lower()}", None)
        if read is not None:
            read(node)
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)

    def statements(self, nodes: Iterable[ast.stmt]) -> None:
        for node in nodes:
            if self.ended:
                return
            self.statement(node)

    # Functions.

    def body(self, node: ast.FunctionDef) -> tuple[Any] | None:
        before = self.returned, self.ended, self._blocks
        self.returned, self.ended, self._blocks = None, False, 0
        doubts = len(self.doubts)
        try:
            self.statements(node.body)
            if len(self.doubts) > doubts:  # it may have returned before its end
                return None
            return self.returned if self.ended else (None,)
        finally:
            del self.doubts[: len(self.doubts) - doubts]
            self.returned, self.ended, self._blocks = before

    def _return(self, node: ast.Return) -> None:
        value = self.value(node.value) if node.value is not None else None
        if not self._blocks:
            self.returned, self.ended = (value,), True
            return
        # What follows runs only if this has not returned.
        self.doubts.insert(0, f"the `return` in line {node.lineno} decides whether it is made")

    def _functiondef(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            self.value(decorator)
        defaults = tuple(self.value(default) for default in node.args.defaults)
        pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        keyword_defaults = {one.arg: self.value(default) for one, default in pairs if default is not None}
        plain = not node.decorator_list and not _yields(node)
        function = Function(node, self.cell, self.scope, defaults, keyword_defaults)
        self.scope.bind(node.name, function if plain else self.unknown(node, node.name))

    def _asyncfunctiondef(self, node: ast.AsyncFunctionDef) -> None:
        self.scope.bind(node.name, self.unknown(node, node.name))

    def _classdef(self, node: ast.ClassDef) -> None:
        bases = tuple(self.value(base) for base in node.bases)
        self.scope.bind(node.name, Class(node.name, bases, node))

    def _global(self, node: ast.Global) -> None:
        self.scope.outer.update(node.names)

    # Names.

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            path = tuple(alias.name.split("."))
            self.scope.bind(alias.asname or path[0], Symbol(_ours(path if alias.asname else path[:1])))

    def _importfrom(self, node: ast.ImportFrom) -> None:
        module = _ours(tuple((node.module or "").split(".")))
        for alias in node.names:
            if alias.name != "*":
                value = self.attribute(Symbol(module), _attribute(alias.name, node))
                self.scope.bind(alias.asname or alias.name, value)
            elif module == ("det_native",):
                import det_native

                for name in det_native.__all__:
                    self.scope.bind(name, self.attribute(Symbol(module), _attribute(name, node)))

    def _assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value, node.value)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value), node.value)

    def _augassign(self, node: ast.AugAssign) -> None:
        value = self.value(node.value)
        before = self.value(_loaded(node.target))
        if isinstance(before, list | dict | set):
            if not is_plain(value) or not self.certain:
                self.taint(before, node)
                return
            in_place = operator.iadd if isinstance(node.op, ast.Add) else operator.ior
            result = self._computed(node, in_place, before, value)
        else:
            result = self._computed(node, binary, node.op, before, value)
        self.assign(node.target, result, node.value)

    def assign(self, target: ast.expr, value: Any, source: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.scope.bind(target.id, value)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, self.unknown(source), source)
        elif isinstance(target, ast.Tuple | ast.List):
            simple = not any(isinstance(one, ast.Starred) for one in target.elts)
            known = isinstance(value, list | tuple) and len(value) == len(target.elts) and simple
            for position, one in enumerate(target.elts):
                self.assign(one, value[position] if known else self.unknown(source), source)
        elif isinstance(target, ast.Subscript):
            self._assign_item(target, value)
        elif isinstance(target, ast.Attribute):
            self.value(target.value)

    def _assign_item(self, target: ast.Subscript, value: Any) -> None:
        owner = self.value(target.value)
        if not isinstance(owner, dict | list):
            return
        key = None if isinstance(target.slice, ast.Slice) else self.value(target.slice)
        if key is None or not is_plain(key) or not self.certain:
            self.taint(owner, target)
            return
        try:
            owner[key] = value
        except FAILURES:
            self.taint(owner, target)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.scope.names.pop(target.id, None)
            elif isinstance(target, ast.Subscript):
                owner, key = self.value(target.value), self.value(target.slice)
                if isinstance(owner, dict) and is_plain(key) and key in owner and self.certain:
                    del owner[key]
                else:
                    self.taint(owner, target)

    # Blocks.

    def _if(self, node: ast.If) -> None:
        test = self.value(node.test)
        if is_plain(test):
            self.statements(node.body if test else node.orelse)
            return
        reason = f"`{self.unknown(node.test).why}`, in line {node.lineno}, decides whether it is made"
        for branch in (node.body, node.orelse):
            self._maybe(branch, reason)

    def _maybe(self, nodes: Sequence[ast.stmt], reason: str) -> None:
        """Read statements that may not run: the names that they bind are unknown afterwards."""
        self._blocks += 1
        before = self.returned, self.ended
        with self.doubting(reason):
            self.statements(nodes)
        self.returned, self.ended = before
        self._blocks -= 1
        self._forget(nodes)

    def _forget(self, nodes: Iterable[ast.stmt]) -> None:
        for node in nodes:
            for name in sorted(bound_names([node])):
                self.scope.bind(name, self.unknown(node, name))

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self.value(node.iter)
        self._forget(node.body)
        self.assign(node.target, self.unknown(node.iter), node.iter)
        self._loop(node)
        self.assign(node.target, self.unknown(node.iter), node.iter)

    _asyncfor = _for

    def _while(self, node: ast.While) -> None:
        self._forget(node.body)
        self.value(node.test)
        self._loop(node)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        with self.looping(node.lineno):
            self._maybe(node.body, f"the loop in line {node.lineno} decides whether it is made")
        self._maybe(node.orelse, f"the loop in line {node.lineno} decides whether it is made")

    def _try(self, node: ast.Try) -> None:
        self.statements(node.body)
        for handler in node.handlers:
            self._maybe(handler.body, f"the error that `except` in line {handler.lineno} waits for decides about it")
        self.statements(node.orelse)
        self.statements(node.finalbody)

    _trystar = _try

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            value = self.value(item.context_expr)
            if item.optional_vars is not None:
                known = not isinstance(value, Unknown | Symbol)
                self.assign(item.optional_vars, value if known else self.unknown(item.context_expr), item.context_expr)
        self.statements(node.body)

    _asyncwith = _with

    def _match(self, node: ast.Match) -> None:
        self.value(node.subject)
        for case in node.cases:
            self._maybe(case.body, f"`match` in line {node.lineno} decides whether it is made")


def _ours(path: tuple[str, ...]) -> tuple[str, ...]:
    return ("det_native", *path[1:]) if path[0] == _ALIAS else path


def _attribute(name: str, where: ast.stmt) -> ast.Attribute:
    return ast.copy_location(ast.Attribute(ast.Name("_"), name), where)


def _loaded(target: ast.expr) -> ast.expr:
    """The target of an augmented assignment as an expression."""
    return ast.copy_location(ast.parse(ast.unparse(target), mode="eval").body, target)


def _yields(node: ast.FunctionDef) -> bool:
    return any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node))
