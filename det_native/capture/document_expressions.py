"""Reads the expressions of a document: literals and what is made of them have values, all else is unknown."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from det_native.capture.document_calls import MODES, FoundCall, containers, snapshot
from det_native.capture.document_values import (
    CONTAINERS,
    Symbol,
    TooLargeError,
    Unknown,
    binary,
    compare,
    is_plain,
    unary,
)
from det_native.schema.manifests import CallKind

_SHOWN = 60
_ROUNDS = 10_000

#: What computing with plain values may raise: then the value is unknown, and running the code says why.
FAILURES = (TooLargeError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, OSError)


class Scope:
    """Names and their values; functions look further out."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self.names: dict[str, Any] = {}
        self.outer: set[str] = set()

    def find(self, name: str) -> Any:
        """Return the value of a name.

        Raises
        ------
        KeyError
        """
        if name in self.names:
            return self.names[name]
        if self.parent is None:
            raise KeyError(name)
        return self.parent.find(name)

    def bind(self, name: str, value: Any) -> None:
        """Bind a name, where ``global`` says so further out."""
        (self.top if name in self.outer else self).names[name] = value

    @property
    def top(self) -> Scope:
        """The outermost scope."""
        return self if self.parent is None else self.parent.top


class ExpressionReader:
    """Values of expressions. How calls are read is in ``document_applying``, statements are in ``document_reading``.

    Parameters
    ----------
    folder : Path
        The notebook's folder, from which relative paths are seen.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scope = Scope()
        self.cell = 0
        self.running = 0
        self.running_line = 1
        self.doubts: list[str] = []
        self.loops: list[int] = []
        self.calls: list[FoundCall] = []
        self.tainted: dict[int, tuple[object, Unknown]] = {}
        self._readers: dict[type[ast.expr], Callable[[Any], Any]] = {
            ast.Constant: lambda node: node.value,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Call: self.call,
            ast.List: lambda node: self._elements(node.elts, node),
            ast.Tuple: lambda node: self._collection(node, tuple),
            ast.Set: lambda node: self._collection(node, set),
            ast.Dict: self._dict,
            ast.BinOp: lambda node: self._apply(node, binary, node.op, node.left, node.right),
            ast.UnaryOp: lambda node: self._apply(node, unary, node.op, node.operand),
            ast.Compare: self._compare,
            ast.BoolOp: self._bool_op,
            ast.IfExp: self._if_expression,
            ast.Subscript: self._subscript,
            ast.JoinedStr: self._joined,
            ast.ListComp: lambda node: self._comprehension(node, list),
            ast.SetComp: lambda node: self._comprehension(node, set),
            ast.GeneratorExp: lambda node: self._comprehension(node, list),
            ast.DictComp: lambda node: self._comprehension(node, dict),
            ast.NamedExpr: self._named,
            ast.Lambda: self.unknown,
        }

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression, :class:`Unknown` where the text does not tell it."""
        reader = self._readers.get(type(node))
        if reader is not None:
            return reader(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return self.unknown(node)

    def call(self, node: ast.Call) -> Any:
        """Return the value of a call, and note it if it is one of ours."""
        raise AssertionError("the reader of statements says how")

    def unknown(self, node: ast.AST, why: str = "") -> Unknown:
        """Return an unknown value: what the source says, and where."""
        text = why or " ".join(ast.unparse(node).split())
        shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
        return Unknown(shown, self.cell, getattr(node, "lineno", self.running_line))

    @property
    def certain(self) -> bool:
        """Whether what is being read certainly runs, and once."""
        return not self.doubts and not self.loops

    @contextmanager
    def doubting(self, reason: str) -> Iterator[None]:
        """Read what may not run."""
        self.doubts.append(reason)
        try:
            yield
        finally:
            self.doubts.pop()

    @contextmanager
    def looping(self, line: int) -> Iterator[None]:
        """Read what may run any number of times."""
        self.loops.append(line)
        try:
            yield
        finally:
            self.loops.pop()

    def taint(self, value: Any, node: ast.AST) -> None:
        """Code that is out of sight may change a value: its containers are unknown from now on."""
        for container in containers(value):
            self.tainted.setdefault(id(container), (container, self.unknown(node)))

    def note(
        self, kind: CallKind, node: ast.Call, positional: Sequence[Any], keywords: Mapping[str, Any], **more: Any
    ) -> FoundCall:
        """Note a call of ours."""
        where = self.cell, node.lineno
        same = [
            call
            for call in self.calls
            if (call.kind, call.owner, call.running) == (kind, self.cell, self.running) and call.node is node
        ]
        call = FoundCall(
            kind,
            node,
            self.cell,
            self.running,
            self.running_line,
            tuple(snapshot(one, self.tainted, where) for one in positional),
            {name: snapshot(one, self.tainted, where) for name, one in keywords.items()},
            doubt=self.doubts[0] if self.doubts else "",
            loop=self.loops[0] if self.loops else None,
            occurrence=len(same) + 1,
            **more,
        )
        self.calls.append(call)
        return call

    # Names and parts.

    def _name(self, node: ast.Name) -> Any:
        try:
            value = self.scope.find(node.id)
        except KeyError:
            return Symbol(("builtins", node.id)) if hasattr(builtins, node.id) else self.unknown(node)
        return self.tainted[id(value)][1] if id(value) in self.tainted else value

    def _attribute(self, node: ast.Attribute) -> Any:
        return self.attribute(self.value(node.value), node)

    def attribute(self, owner: Any, node: ast.Attribute) -> Any:
        """Return an attribute of a value."""
        if isinstance(owner, Symbol):
            path = (*owner.path, node.attr)
            return MODES.get(".".join(path), Symbol(path))
        if isinstance(owner, Path) and node.attr in {"name", "parent", "stem", "suffix"}:
            return getattr(owner, node.attr)
        return self.unknown(node)

    def _subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.slice, ast.Slice):
            owner = self.value(node.value)
            bounds = [None if part is None else self.value(part) for part in _bounds(node.slice)]
            return self._computed(node, lambda value, *ends: value[slice(*ends)], owner, *bounds)
        found = self._apply(node, operator.getitem, node.value, node.slice)
        return self.tainted[id(found)][1] if id(found) in self.tainted else found

    def _named(self, node: ast.NamedExpr) -> Any:
        value = self.value(node.value)
        self.scope.bind(node.target.id, value)
        return value

    # Collections.

    def _elements(self, nodes: Sequence[ast.expr], whole: ast.AST) -> Any:
        found: list[Any] = []
        for node in nodes:
            value = self.value(node.value if isinstance(node, ast.Starred) else node)
            if not isinstance(node, ast.Starred):
                found.append(value)
            elif is_plain(value) and hasattr(value, "__iter__"):
                found.extend(value)
            else:
                return self.unknown(whole)
        return found

    def _collection(self, node: ast.Tuple | ast.Set, kind: Callable[[Any], Any]) -> Any:
        found = self._elements(node.elts, node)
        return found if isinstance(found, Unknown) else self._computed(node, kind, found)

    def _dict(self, node: ast.Dict) -> Any:
        found: dict[Any, Any] = {}
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            value = self.value(value_node)
            if key_node is None:
                if not isinstance(value, dict):
                    return self.unknown(node)
                found.update(value)
                continue
            key = self.value(key_node)
            if not is_plain(key) or isinstance(key, CONTAINERS):
                return self.unknown(node)
            found[key] = value
        return found

    def _joined(self, node: ast.JoinedStr) -> Any:
        text = ""
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.value(part.value)
                if part.conversion != -1 or part.format_spec is not None or not isinstance(value, str | int | float):
                    return self.unknown(node)
                text += str(value)
            else:
                text += str(self.value(part))
        return text

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, kind: Callable[[Any], Any]
    ) -> Any:
        rows: list[Any] = []
        outer, self.scope = self.scope, Scope(self.scope)
        try:
            with self.looping(node.lineno):
                known = self._rounds(node, 0, rows)
        finally:
            self.scope = outer
        return self._computed(node, kind, rows) if known else self.unknown(node)

    def _rounds(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, depth: int, rows: list[Any]
    ) -> bool:
        """Collect what a comprehension gives from its `depth`-th ``for`` on; False if that is unknown."""
        if depth == len(node.generators):
            if isinstance(node, ast.DictComp):
                rows.append((self.value(node.key), self.value(node.value)))
            else:
                rows.append(self.value(node.elt))
            return len(rows) <= _ROUNDS
        generator = node.generators[depth]
        each = self.value(generator.iter)
        known = is_plain(each) and hasattr(each, "__iter__")
        for value in each if known else (self.unknown(generator.iter),):
            self.assign(generator.target, value, generator.iter)
            tests = [self.value(test) for test in generator.ifs]
            if not all(is_plain(test) for test in tests):
                known = False
            elif not all(tests):
                continue
            if not self._rounds(node, depth + 1, rows) or not known:
                return False
        return known

    def assign(self, target: ast.expr, value: Any, source: ast.expr) -> None:
        """Bind the names of an assignment's target."""
        raise AssertionError("the reader of statements says how")

    # Operators.

    def _apply(
        self, node: ast.expr, function: Callable[..., Any], *parts: ast.operator | ast.unaryop | ast.expr
    ) -> Any:
        values = [self.value(part) if isinstance(part, ast.expr) else part for part in parts]
        return self._computed(node, function, *values)

    def _computed(self, node: ast.AST, function: Callable[..., Any], *values: Any) -> Any:
        if not all(is_plain(value) or isinstance(value, ast.AST) for value in values):
            return self.unknown(node)
        try:
            return function(*values)
        except FAILURES:
            return self.unknown(node)

    def _compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        for kind, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node)
            result = self._computed(node, compare, kind, left, right)
            if isinstance(result, Unknown) or not result:
                return result
            left = right
        return True

    def _bool_op(self, node: ast.BoolOp) -> Any:
        value: Any = None
        for part in node.values:
            value = self.value(part)
            if not is_plain(value):
                return self.unknown(node)
            if bool(value) is isinstance(node.op, ast.Or):
                return value
        return value

    def _if_expression(self, node: ast.IfExp) -> Any:
        test = self.value(node.test)
        if is_plain(test):
            return self.value(node.body if test else node.orelse)
        with self.doubting(f"`{self.unknown(node.test).why}`, in line {node.lineno}, decides whether it is made"):
            self.value(node.body)
            self.value(node.orelse)
        return self.unknown(node)


def _bounds(part: ast.Slice) -> tuple[ast.expr | None, ast.expr | None, ast.expr | None]:
    return part.lower, part.upper, part.step
