"""Which names of a program depend on what one of its lines has found out, by reading its statements in their order."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Line:
    """A line of one of the texts that are read, by the text's index."""

    text: int
    number: int


@dataclass(frozen=True)
class _Step:
    """A statement without others in it, or the head of one that has: what it reads, sets, and certainly replaces."""

    text: int
    first: int
    last: int
    reads: frozenset[str]
    sets: frozenset[str]
    replaces: frozenset[str] = frozenset()

    def has(self, line: Line) -> bool:
        return self.text == line.text and self.first <= line.number <= self.last


def decided_names(
    texts: Sequence[Sequence[ast.stmt]], decision: Line, call: Line, names: Mapping[str, Any]
) -> list[str]:
    """Return the names that were set by what a line decided, and that a later training call depends on.

    The configuration that a call of det_native is given does not count: it is not worked out again for a trial.

    Parameters
    ----------
    texts : sequence of sequence of ast.stmt
        The statements of the cells in their order, or of one file or function.
    decision : Line
        That of the decision.
    call : Line
        That of the training call.
    names : mapping
        What the names stand for where the call is made.
    """
    reader = _Reader(names)
    decided: dict[str, str] = {}  # by name, the one that was set by the decision itself
    for step in (step for index, body in enumerate(texts) for step in reader.steps(index, body, frozenset())):
        found = [decided[name] for name in sorted(step.reads) if name in decided]
        if step.has(call) and found:
            return list(dict.fromkeys(found))
        if step.has(decision):
            decided |= {name: name for name in step.sets}
        elif found:
            decided |= {name: name if found[0].startswith("?") else found[0] for name in step.sets - decided.keys()}
        else:
            decided = {name: origin for name, origin in decided.items() if name not in step.replaces}
    return []


class _Reader:
    """Takes statements apart; the conditions around a statement are read by it too."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def steps(self, text: int, body: Iterable[ast.stmt], around: frozenset[str]) -> Iterator[_Step]:
        """Yield the steps of some statements; those of a loop twice, as it goes round."""
        for node in body:
            match node:
                case ast.If():
                    inside = around | {f"?{node.lineno}"}
                    yield self._head(text, node.test, around, inside - around)
                    yield from self.steps(text, [*node.body, *node.orelse], inside)
                case ast.While():
                    inside = around | {f"?{node.lineno}"}
                    for _ in range(2):
                        yield self._head(text, node.test, around, inside - around)
                        yield from self.steps(text, node.body, inside)
                    yield from self.steps(text, node.orelse, around)
                case ast.For() | ast.AsyncFor():
                    for _ in range(2):
                        yield self._head(text, node.iter, around, self._set_by([node.target]))
                        yield from self.steps(text, node.body, around)
                    yield from self.steps(text, node.orelse, around)
                case ast.With() | ast.AsyncWith():
                    for item in node.items:
                        targets = [] if item.optional_vars is None else [item.optional_vars]
                        yield self._head(text, item.context_expr, around, self._set_by(targets))
                    yield from self.steps(text, node.body, around)
                case ast.Try() | ast.TryStar():
                    handlers = [each for handler in node.handlers for each in handler.body]
                    yield from self.steps(text, node.body, around)
                    yield from self.steps(text, handlers, around | {f"?{node.lineno}"})  # it may not run
                    yield from self.steps(text, [*node.orelse, *node.finalbody], around)
                case ast.Match():
                    inside = around | {f"?{node.lineno}"}
                    yield self._head(text, node.subject, around, inside - around)
                    yield from self.steps(text, [each for case in node.cases for each in case.body], inside)
                case _:
                    yield self._statement(text, node, around)

    def _head(self, text: int, node: ast.expr, around: frozenset[str], sets: frozenset[str]) -> _Step:
        last = node.end_lineno or node.lineno
        return _Step(text, node.lineno, last, self._read_by(node) | around, sets | self._set_by([node]))

    def _statement(self, text: int, node: ast.stmt, around: frozenset[str]) -> _Step:
        reads, last = self._read_by(node) | around, node.end_lineno or node.lineno
        if isinstance(node, _DEFINITIONS):
            own = frozenset({node.name})
            return _Step(text, node.lineno, last, reads, own, frozenset() if around else own)
        sets = self._set_by([node])
        if isinstance(node, ast.AugAssign):
            reads |= sets
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            sets |= self._changed_by(node.value)
        plain = isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets)
        )
        return _Step(text, node.lineno, last, reads, sets, sets if plain and not around else frozenset())

    def _read_by(self, node: ast.AST) -> frozenset[str]:
        found: set[str] = set()
        left = [node]
        while left:
            each = left.pop()
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
                found.add(each.id)
            configuration = self._configuration_of(each) if isinstance(each, ast.Call) else None
            left += [child for child in ast.iter_child_nodes(each) if child is not configuration]
        return frozenset(found)

    def _set_by(self, nodes: Iterable[ast.AST]) -> frozenset[str]:
        found: set[str] = set()
        left = list(nodes)
        while left:
            each = left.pop()
            if isinstance(each, _DEFINITIONS | ast.Lambda):
                continue
            if isinstance(each, ast.alias):
                found.add((each.asname or each.name).partition(".")[0])
            if isinstance(each, ast.Name | ast.Attribute | ast.Subscript) and not isinstance(each.ctx, ast.Load):
                found.update(_base(each))
            left += ast.iter_child_nodes(each)
        return frozenset(found)

    def _changed_by(self, call: ast.Call) -> frozenset[str]:
        """Return the object whose method is called for its effect; a module has functions."""
        if not isinstance(call.func, ast.Attribute):
            return frozenset()
        return frozenset(name for name in _base(call.func) if not isinstance(self._names.get(name), ModuleType))

    def _configuration_of(self, call: ast.Call) -> ast.AST | None:
        function = self._value(call.func)
        if not (getattr(function, "__module__", None) or "").startswith("det_native."):
            return None
        try:
            parameters = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            return None
        if "config" not in parameters:
            return None
        for keyword in call.keywords:
            if keyword.arg == "config":
                return keyword
        position = parameters.index("config")
        return call.args[position] if position < len(call.args) else None

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return self._names.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
        return None


def _base(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Starred):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Name):
        yield node.id
