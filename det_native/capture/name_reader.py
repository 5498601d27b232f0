"""Goes through expressions in their order: which names are read before they are bound, and which are bound. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from det_native.capture.late_names import late_names
from det_native.capture.named_by_text import RUNS_TEXT, is_namespace, names_in_text, pattern_of
from det_native.capture.reads_record import Reads


class Comprehension(set[str]):
    """Names of a comprehension: a walrus inside binds outside of it."""


class NameReader(ast.NodeVisitor):
    """Goes through expressions in their order."""

    def __init__(self) -> None:
        self.found = Reads()
        self._sure: set[str] = set()
        self._optional = 0  # inside what may not run
        self._guarded = 0  # inside what does without the name
        self._hidden: list[set[str]] = []  # names of comprehensions and classes around
        self._unguarded: set[str] = set()
        self._other: set[str] = set()  # names bound by something else than an import
        self._followed: set[str] = set()  # functions that one read has led to: they may call each other

    def result(self) -> Reads:
        self.found.surely = self._sure
        self.found.guarded -= self._unguarded
        for name in self._other:
            self.found.imports.pop(name, None)
        return self.found

    # Names.

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._read(node.id, node.lineno)
        elif isinstance(node.ctx, ast.Store):
            self._bind(node.id)
        else:
            self._delete(node.id)

    def _read(self, name: str, line: int, late: bool = False) -> None:
        self.found.loaded.add(name)
        if name in self._sure or any(name in hidden for hidden in self._hidden):
            if name in self.found.functions and name in self._sure and name not in self._followed:
                outermost = not self._followed
                self._followed.add(name)
                for used in sorted(self.found.functions[name]):
                    self._read(used, line, late=True)
                if outermost:
                    self._followed.clear()
            return
        self.found.reads.setdefault(name, line)
        known = self.found.known.get(name)
        self.found.known[name] = frozenset(self._sure) if known is None else known & self._sure
        (self.found.guarded if self._guarded else self._unguarded).add(name)
        if self._guarded or late or name in self.found.bound:  # it has been bound, as far as anybody can tell
            return
        self.found.wanted.add(name)
        if not self._optional:
            self.found.certain.add(name)

    def _bind(self, name: str, imported: bool = False) -> None:
        if self._hidden:
            self._hidden[-1].add(name)
            return
        self.found.bound.add(name)
        if not imported:
            self._other.add(name)
        self.found.functions.pop(name, None)
        self._sure.add(name)

    def _delete(self, name: str) -> None:
        if self._hidden:
            return
        self._read(name, 0)
        self.found.deleted.add(name)
        self._sure.discard(name)

    @contextmanager
    def _perhaps(self) -> Iterator[None]:
        """What is in it may not run: nothing is bound for certain."""
        before, self._sure = self._sure, set(self._sure)
        self._optional += 1
        yield
        self._optional -= 1
        self._sure = before

    def _ways(self, ways: Iterable[Sequence[ast.AST]]) -> None:
        """Of several ways one is gone: what each binds is bound."""
        ends, before = [], self._sure
        self._optional += 1
        for way in ways:
            self._sure = set(before)
            for one in way:
                self.visit(one)
            if not ends_here(way):
                ends.append(self._sure)
        self._optional -= 1
        self._sure = set.intersection(*ends) if ends else before

    # Expressions.

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        with self._perhaps():
            self.visit(node.body)
        with self._perhaps():
            self.visit(node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.visit(node.values[0])
        with self._perhaps():
            for one in node.values[1:]:
                self.visit(one)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        hidden, self._hidden = self._hidden, [h for h in self._hidden if not isinstance(h, Comprehension)]
        self._bind(node.target.id)
        self._hidden = hidden

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._signature(node.args)
        for name in sorted(late_names(node)):
            self._read(name, node.lineno, late=True)

    def _signature(self, arguments: ast.arguments) -> None:
        for one in [*arguments.defaults, *(default for default in arguments.kw_defaults if default is not None)]:
            self.visit(one)

    def _comprehension(self, node: ast.AST, parts: Sequence[ast.AST]) -> None:
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        self.visit(generators[0].iter)
        own = Comprehension(
            name.id for each in generators for name in ast.walk(each.target) if isinstance(name, ast.Name)
        )
        self._hidden.append(own)
        for position, each in enumerate(generators):
            if position:
                self.visit(each.iter)
            for test in each.ifs:
                self.visit(test)
        for part in parts:
            self.visit(part)
        self._hidden.pop()

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> None:
        self._comprehension(node, [node.elt])

    visit_SetComp = visit_ListComp  # noqa: N815 (ast's name)
    visit_GeneratorExp = visit_ListComp  # noqa: N815 (ast's name)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node, [node.key, node.value])

    # Calls.

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and node.value.isidentifier():
            self.found.texts.add(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if isinstance(node.func, ast.Name) and called in ("exec", "globals", "locals"):
            self.found.runs_text = True
        for one in [node.func, *node.args, *(keyword.value for keyword in node.keywords)]:
            for name in ast.walk(one):
                if isinstance(name, ast.Name):
                    self.found.called.add(name.id)
        if called in RUNS_TEXT or (isinstance(node.func, ast.Attribute) and is_namespace(node.func.value)):
            self._texts(node)
        keyed = isinstance(node.func, ast.Attribute) and is_namespace(node.func.value)
        if node.args and ((keyed and called in ("get", "pop", "__getitem__")) or called == "eval"):
            self._computed(node.args[0])
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if is_namespace(node.value):
            self._texts(node)
            if isinstance(node.ctx, ast.Load):
                self._computed(node.slice)
        self.generic_visit(node)

    def _computed(self, key: ast.expr) -> None:
        """A name that is put together when the code runs: what is known of it is read as a pattern."""
        pattern = pattern_of(key)
        if pattern is not None:
            self._guarded += 1
            self._read(pattern, key.lineno)
            self._guarded -= 1

    def _texts(self, node: ast.AST) -> None:
        """Names in texts: ``eval('rate * 2')``, ``frame.query('a > @limit')``, ``globals()['rate']``."""
        for constant in ast.walk(node):
            if isinstance(constant, ast.Constant) and isinstance(constant.value, str) and len(constant.value) < 10_000:
                for name in names_in_text(constant.value):
                    self._guarded += 1
                    self._read(name, constant.lineno)
                    self._guarded -= 1


def ends_here(way: Sequence[ast.AST]) -> bool:
    """Whether what stands behind these statements does not run after them."""
    return bool(way) and isinstance(way[-1], ast.Raise | ast.Return | ast.Continue | ast.Break)
