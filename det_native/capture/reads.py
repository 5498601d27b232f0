"""Which names a cell may read before it has bound them, which it binds, and which its functions look up. Pure."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from det_native.capture.bindings import bound_by, catches, imports_in, root_of
from det_native.capture.named_by_text import names_in_text
from det_native.capture.syntax import tree_of

_NAME_ERRORS = frozenset({"NameError", "Exception", "BaseException"})
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass
class Reads:
    """What one piece of code does with names.

    Attributes
    ----------
    reads : dict of str to int
        Names that it may read before it has bound them for certain, each with the first line. One with ``*`` is a
        pattern, of a name that is put together: ``globals()[f"make_{kind}"]``.
    certain : set of str
        Those of them that are read whenever it runs, and that nothing above in it may have bound.
    guarded : set of str
        Those of `reads` that it can do without: it asks for them in ``try`` with a handler of ``NameError``.
    known : dict of str to frozenset of str
        For names of `reads`: those that it has bound for certain whenever it reads the name.
    bound, surely, deleted : set of str
        Names that it may bind, those that it has bound for certain once it has run, and those that it deletes.
    late_bound : set of str
        Names that functions of it bind when they are called: ``global count``.
    functions : dict of str to frozenset of str
        Functions and classes that it defines, with the names that they look up.
    stored_into : set of str
        Names of which it sets an attribute or an item, or which it updates in place (``+=``).
    called : set of str
        Names that it gives to a call or of which it calls a method.
    texts : set of str
        Texts in it that could be names.
    """

    reads: dict[str, int] = field(default_factory=dict)
    certain: set[str] = field(default_factory=set)
    guarded: set[str] = field(default_factory=set)
    known: dict[str, frozenset[str]] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    surely: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    late_bound: set[str] = field(default_factory=set)
    functions: dict[str, frozenset[str]] = field(default_factory=dict)
    stars: list[tuple[str, int]] = field(default_factory=list)
    stored_into: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)


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
        reader.note(statement)
    return reader.result()


@dataclass
class _Class:
    """A class whose body is read: the names that it has bound, and those that its methods look up."""

    names: set[str] = field(default_factory=set)
    late: set[str] = field(default_factory=set)


class _Reader(ast.NodeVisitor):
    """Goes through statements and expressions in the order in which they run."""

    def __init__(self) -> None:
        self.found = Reads()
        self._sure: set[str] = set()
        self._optional = 0  # inside what may not run
        self._guarded = 0  # inside what does without the name
        self._unguarded: set[str] = set()
        self._classes: list[_Class] = []  # around
        self._followed: set[str] = set()  # functions that one read has led to: they may call each other

    def result(self) -> Reads:
        self.found.surely = self._sure
        self.found.guarded -= self._unguarded
        return self.found

    # Names.

    def _read(self, name: str, line: int, *, late: bool = False, guarded: bool = False) -> None:
        guarded = guarded or bool(self._guarded)
        if name in self._sure or any(name in one.names for one in self._classes):
            if name in self.found.functions and name in self._sure and name not in self._followed:
                outermost = not self._followed
                self._followed.add(name)
                for used in sorted(self.found.functions[name]):
                    self._read(used, line, late=True, guarded=guarded)
                if outermost:
                    self._followed.clear()
            return
        self.found.reads.setdefault(name, line)
        self.found.known[name] = self.found.known.get(name, frozenset(self._sure)) & self._sure
        (self.found.guarded if guarded else self._unguarded).add(name)
        if not (guarded or late or self._optional or name in self.found.bound):
            self.found.certain.add(name)

    def _bind(self, *names: str) -> None:
        if self._classes:
            self._classes[-1].names.update(names)
            return
        self.found.bound.update(names)
        self._sure.update(names)
        for name in names:
            self.found.functions.pop(name, None)

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

    def _ways(self, ways: Iterable[Sequence[ast.AST]], *ends: set[str]) -> None:
        """Of several ways one is gone: what each binds is bound, but for those that do not go on after them."""
        for way in ways:
            with self._perhaps():
                self._visit_all(way)
                if not (way and isinstance(way[-1], ast.Raise | ast.Return | ast.Continue | ast.Break)):
                    ends = (*ends, self._sure)
        self._sure = set.intersection(*ends) if ends else self._sure

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Store):
            self._read(node.id, node.lineno)
        else:
            self._bind(node.id)
        if isinstance(node.ctx, ast.Del) and not self._classes:
            self.found.deleted.add(node.id)
            self._sure.discard(node.id)

    # Statements.

    def visit_Assign(self, node: ast.Assign | ast.NamedExpr) -> None:
        self._visit_all([node.value, *(node.targets if isinstance(node, ast.Assign) else [node.target])])

    visit_NamedExpr = visit_Assign  # noqa: N815 (ast's name)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        if node.value is not None:
            self._visit_all([node.value, node.target])

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self._read(node.target.id, node.lineno)
        self.visit(node.target)

    def visit_For(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        self.visit(node.test if isinstance(node, ast.While) else node.iter)
        with self._perhaps():
            self._visit_all([*([] if isinstance(node, ast.While) else [node.target]), *node.body])
        self._visit_all(node.orelse)

    visit_AsyncFor = visit_While = visit_For  # noqa: N815 (ast's names)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._ways([node.body, node.orelse])

    def visit_Try(self, node: ast.Try) -> None:
        guarded = any(catches(handler, _NAME_ERRORS) for handler in node.handlers)
        before = set(self._sure)
        self._guarded += guarded
        self._visit_all(node.body)
        self._guarded -= guarded
        self._visit_all(node.orelse)
        after, self._sure = self._sure, before
        self._ways([[*_header(one), *one.body] for one in node.handlers], after)
        self._visit_all(node.finalbody)

    def visit_TryStar(self, node: ast.TryStar) -> None:
        self.visit_Try(node)  # type: ignore[arg-type]

    def visit_match_case(self, node: ast.match_case) -> None:
        with self._perhaps():
            self.visit(node.pattern)
            self._bind(*(name for inner in ast.walk(node.pattern) for name in bound_by(inner)))
            self._visit_all([node.guard, *node.body])

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for one in imports_in(node):
            if one.name == "*":
                self.found.stars.append((one.module, one.level))
            else:
                self._bind(one.name)

    visit_ImportFrom = visit_Import  # noqa: N815 (ast's name)

    # Code that runs later.

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._visit_all([*node.decorator_list, node.args])
        self._annotation(node.returns)
        self.found.late_bound |= {
            name for inner in ast.walk(node) if isinstance(inner, ast.Global) for name in inner.names
        }
        self._define(node.name, node.lineno, _looked_up(node), now=bool(node.decorator_list))

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 (ast's name)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        before = [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
        self._visit_all(before)
        self._classes.append(_Class())
        self._visit_all(node.body)
        late = frozenset(self._classes.pop().late)
        self._define(node.name, node.lineno, late, now=bool(before))

    def _define(self, name: str, line: int, late: frozenset[str], *, now: bool) -> None:
        """Bind a function or class; `now`: what it looks up may be looked up when it is defined."""
        self._bind(name)
        if self._classes:
            self._classes[-1].late |= late
        else:
            self.found.functions[name] = late
        for used in sorted(late - {name}) if now and not self._classes else ():
            self._read(used, line, late=True)

    # Expressions.

    def visit_BoolOp(self, node: ast.BoolOp | ast.IfExp) -> None:
        first, *others = node.values if isinstance(node, ast.BoolOp) else (node.test, node.body, node.orelse)
        self.visit(first)
        with self._perhaps():
            self._visit_all(others)

    visit_IfExp = visit_BoolOp  # noqa: N815 (ast's name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        for name in sorted(_looked_up(node)):
            self._read(name, node.lineno, late=True)

    def visit_arg(self, node: ast.arg) -> None:
        self._annotation(node.annotation)

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        """What a comprehension looks up, it looks up now; a walrus in it binds outside of it."""
        self.visit(node.generators[0].iter)
        inner = list(ast.walk(node))
        bound = [one.target.id for one in inner if isinstance(one, ast.NamedExpr)]
        for name in sorted(_looked_up(node).difference(bound)):
            self._read(name, node.lineno)
        for name in (name for one in inner for name in names_in_text(one)):
            self._read(name, node.lineno, guarded=True)
        self._bind(*bound)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # noqa: N815 (ast's names)

    def generic_visit(self, node: ast.AST) -> None:
        """Read the names that a call makes of texts, then what is in a node."""
        for name in names_in_text(node):
            self._read(name, getattr(node, "lineno", 0), guarded=True)
        super().generic_visit(node)

    # What order does not matter for.

    def note(self, statement: ast.stmt) -> None:
        """Note what a statement does with names, whatever it has bound by then."""
        waiting: list[ast.AST] = [statement]
        found = self.found
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                found.stored_into.add(node.target.id)
            elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
                found.stored_into.update(root_of(node))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                found.texts.add(node.value)
            elif isinstance(node, ast.Call):
                found.called.update(one.id for one in ast.walk(node) if isinstance(one, ast.Name))
            if not isinstance(node, _LATER):
                waiting.extend(ast.iter_child_nodes(node))
            else:
                waiting.extend([node.args, *getattr(node, "decorator_list", ())])


def _header(handler: ast.ExceptHandler) -> list[ast.AST]:
    """Return what a handler waits for; its name is bound."""
    name = [] if handler.name is None else [ast.Name(handler.name, ast.Store())]
    return [*([] if handler.type is None else [handler.type]), *name]


def _looked_up(node: ast.AST) -> frozenset[str]:
    """Return the global names that the scopes in a function, lambda or comprehension look up."""
    try:
        table = symtable.symtable(ast.unparse(node), "<cell>", "exec")
    except SyntaxError:  # its ``nonlocal`` names are those of a function around it
        return frozenset(one.id for one in ast.walk(node) if isinstance(one, ast.Name))
    found: set[str] = set()
    waiting = [*table.get_children()]
    for scope in waiting:
        symbols = (one for one in scope.get_symbols() if one.is_global() and (one.is_referenced() or one.is_assigned()))
        found.update(symbol.get_name() for symbol in symbols)
        waiting.extend(scope.get_children())
    return frozenset(found - {"__class__"})  # of ``super()``
