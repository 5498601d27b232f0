"""Which names a cell may read before it has bound them, which it binds, and which its functions look up. Pure."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

from det_native.capture.bindings import bound_by, catches, imports_in, root_of
from det_native.capture.named_by_text import RUNS_TEXT, is_namespace, names_in_text, pattern_of
from det_native.capture.reads_record import Import, Reads
from det_native.capture.syntax import tree_of

_NAME_ERRORS = frozenset({"NameError", "Exception", "BaseException"})


@lru_cache(maxsize=4096)
def reads_of(source: str, last: int | None = None) -> Reads:
    """Read a cell.

    Parameters
    ----------
    source : str
        Python, see ``transform``.
    last : int, optional
        Statements of the top level that begin below this line do not count.

    Raises
    ------
    SyntaxError
    """
    return reads_in(one for one in tree_of(source).body if last is None or one.lineno <= last)


def reads_in(statements: Iterable[ast.stmt]) -> Reads:
    """Read statements that follow each other."""
    reader = _Reader()
    for statement in statements:
        reader.visit(statement)
    return reader.result()


class _Comprehension(set[str]):
    """Names of a comprehension: a walrus inside binds outside of it."""


class _Reader(ast.NodeVisitor):
    """Goes through statements and expressions in their order."""

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

    def _read(self, name: str, line: int, *, late: bool = False, guarded: bool = False) -> None:
        self.found.loaded.add(name)
        guarded = guarded or bool(self._guarded)
        if name in self._sure or any(name in hidden for hidden in self._hidden):
            if name in self.found.functions and name in self._sure and name not in self._followed:
                outermost = not self._followed
                self._followed.add(name)
                for used in sorted(self.found.functions[name]):
                    self._read(used, line, late=True, guarded=guarded)
                if outermost:
                    self._followed.clear()
            return
        self.found.reads.setdefault(name, line)
        before = self.found.known.get(name)
        self.found.known[name] = frozenset(self._sure) if before is None else before & self._sure
        (self.found.guarded if guarded else self._unguarded).add(name)
        if guarded or late or name in self.found.bound:  # it has been bound, as far as anybody can tell
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

    def _visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def _annotation(self, node: ast.expr | None) -> None:
        """Code does without the names of its annotations: it may have them as texts."""
        self._guarded += 1
        self._visit_all([node])
        self._guarded -= 1

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
            self._visit_all(way)
            if not _ends_here(way):
                ends.append(self._sure)
        self._optional -= 1
        self._sure = set.intersection(*ends) if ends else before

    # Statements.

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        self._visit_all(node.targets)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        if node.value is not None:
            self._visit_all([node.value, node.target])

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self._read(node.target.id, node.lineno)
            self.found.stored_into.add(node.target.id)
            self._bind(node.target.id)
        else:
            self.visit(node.target)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._loop([node.target, *node.body], node.orelse)

    visit_AsyncFor = visit_For  # noqa: N815 (ast's name)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._loop(node.body, node.orelse)

    def _loop(self, body: Sequence[ast.AST], after: Sequence[ast.AST]) -> None:
        with self._perhaps():
            self._visit_all(body)
        self._visit_all(after)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._ways([node.body, node.orelse])

    def visit_Try(self, node: ast.Try) -> None:
        guarded = any(catches(handler, _NAME_ERRORS) for handler in node.handlers)
        before = set(self._sure)
        self._guarded += guarded
        self._visit_all(node.body)
        self._guarded -= guarded
        if guarded:  # a name that was asked for is there, or a handler makes it
            asked = (one.value for one in node.body if isinstance(one, ast.Expr | ast.Assign))
            self._sure = self._sure.union(*map(root_of, asked))
        self._visit_all(node.orelse)
        ends = [self._sure]
        self._optional += 1
        for handler in node.handlers:
            self._sure = set(before)
            self._visit_all([handler.type])
            if handler.name is not None:
                self._bind(handler.name)
            self._visit_all(handler.body)
            if handler.name is not None:
                self._sure.discard(handler.name)
            if not _ends_here(handler.body):
                ends.append(self._sure)
        self._optional -= 1
        self._sure = set.intersection(*ends)
        self._visit_all(node.finalbody)

    def visit_TryStar(self, node: ast.TryStar) -> None:
        self.visit_Try(node)  # type: ignore[arg-type]

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        for case in node.cases:
            with self._perhaps():
                self.visit(case.pattern)
                for name in (name for inner in ast.walk(case.pattern) for name in bound_by(inner)):
                    self._bind(name)
                self._visit_all([case.guard, *case.body])

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for one in imports_in(node):
            if one.name == "*":
                self.found.stars.append((one.module, one.level))
            else:
                module = one.module if one.attribute or one.renamed else one.name
                self._imported(one.name, Import(module, one.attribute, one.level))

    visit_ImportFrom = visit_Import  # noqa: N815 (ast's name)

    def _imported(self, name: str, what: Import) -> None:
        if not self._hidden:
            if self.found.imports.get(name, what) != what or self._optional or name in self.found.bound - {name}:
                self._other.add(name)
            self.found.imports[name] = what
        self._bind(name, imported=True)

    # Code that runs later.

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._visit_all([*node.decorator_list, node.args])
        self._annotation(node.returns)
        self.found.late_bound |= _set_outside(node)
        self._define(node.name, node.lineno, _late_names(node), now=bool(node.decorator_list))

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 (ast's name)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        before = [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
        self._visit_all(before)
        late: set[str] = set()
        self._hidden.append(set())
        for one in node.body:
            if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                self.visit(one)
                continue
            late |= _late_names(one)
            self.found.late_bound |= _set_outside(one)
            self._visit_all([*one.decorator_list, one.args])
            self._annotation(one.returns)
            self._hidden[-1].add(one.name)
        self._hidden.pop()
        self._define(node.name, node.lineno, frozenset(late), now=bool(before))

    def _define(self, name: str, line: int, late: frozenset[str], *, now: bool) -> None:
        """Bind a function or class; `now`: what it looks up may be looked up when it is defined."""
        self._bind(name)
        if not self._hidden:
            self.found.functions[name] = late
        if self._hidden or now:
            for used in sorted(late - {name}):
                self._read(used, line, late=True)

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
            self._visit_all(node.values[1:])

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        hidden, self._hidden = self._hidden, [h for h in self._hidden if not isinstance(h, _Comprehension)]
        self._bind(node.target.id)
        self._hidden = hidden

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        for name in sorted(_late_names(node)):
            self._read(name, node.lineno, late=True)

    def visit_arg(self, node: ast.arg) -> None:
        self._annotation(node.annotation)

    def _comprehension(self, node: ast.AST, parts: Sequence[ast.AST]) -> None:
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        self.visit(generators[0].iter)
        own = _Comprehension(
            name.id for each in generators for name in ast.walk(each.target) if isinstance(name, ast.Name)
        )
        self._hidden.append(own)
        for position, each in enumerate(generators):
            if position:
                self.visit(each.iter)
            self._visit_all(each.ifs)
        self._visit_all(parts)
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
        for part in [node.func, *node.args, *(keyword.value for keyword in node.keywords)]:
            for name in ast.walk(part):
                if isinstance(name, ast.Name):
                    self.found.called.add(name.id)
        keyed = isinstance(node.func, ast.Attribute) and is_namespace(node.func.value)
        if called in RUNS_TEXT or keyed:
            self._texts(node)
        if node.args and ((keyed and called in ("get", "pop", "__getitem__")) or called == "eval"):
            self._computed(node.args[0])
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._stored(node)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._stored(node)
        if is_namespace(node.value):
            self._texts(node)
            if isinstance(node.ctx, ast.Load):
                self._computed(node.slice)
        self.generic_visit(node)

    def _stored(self, node: ast.Attribute | ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Store):
            self.found.stored_into.update(root_of(node))

    def _computed(self, key: ast.expr) -> None:
        """A name that is put together when the code runs: what is known of it is read as a pattern."""
        pattern = pattern_of(key)
        if pattern is not None:
            self._read(pattern, key.lineno, guarded=True)

    def _texts(self, node: ast.AST) -> None:
        """Names in texts: ``eval('rate * 2')``, ``frame.query('a > @limit')``, ``globals()['rate']``."""
        for constant in ast.walk(node):
            if isinstance(constant, ast.Constant) and isinstance(constant.value, str) and len(constant.value) < 10_000:
                for name in names_in_text(constant.value):
                    self._read(name, constant.lineno, guarded=True)


def _set_outside(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {name for inner in ast.walk(node) if isinstance(inner, ast.Global) for name in inner.names}


def _ends_here(way: Sequence[ast.AST]) -> bool:
    """Whether what stands behind these statements does not run after them."""
    return bool(way) and isinstance(way[-1], ast.Raise | ast.Return | ast.Continue | ast.Break)


def _late_names(node: ast.AST) -> frozenset[str]:
    """Return the global names that a function looks up when it is called."""
    source = ast.unparse(node)
    try:
        table = symtable.symtable(source, "<cell>", "exec")
    except SyntaxError:  # its ``nonlocal`` names are those of a function around it
        return frozenset(one.id for one in ast.walk(node) if isinstance(one, ast.Name))
    found: set[str] = set()
    for child in table.get_children():
        _globals_in(child, found)
    return frozenset(found - {"__class__"})  # of ``super()``


def _globals_in(table: object, found: set[str]) -> None:
    for symbol in table.get_symbols():  # type: ignore[attr-defined]
        if symbol.is_global() and (symbol.is_referenced() or symbol.is_assigned()):
            found.add(symbol.get_name())
    for child in table.get_children():  # type: ignore[attr-defined]
        _globals_in(child, found)
