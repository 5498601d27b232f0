"""Which names a cell may read before it has bound them, which it binds, and which its functions look up. Pure."""

from __future__ import annotations

import ast
import builtins
import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

#: Code that is in a text: what is called with it looks names up.
_RUNS_TEXT = frozenset({"eval", "exec", "globals", "locals", "vars", "query", "getattr"})
_ANY = "*"
_PATTERN = re.compile(r"[\w*]+")
_NAME_IN_TEXT = re.compile(r"@([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Import:
    """What an import binds a name to."""

    module: str
    attribute: str = ""
    level: int = 0


@dataclass
class Reads:
    """What one piece of code does with names.

    Attributes
    ----------
    reads : dict of str to int
        Names that it may read before it has bound them for certain, each with the first line. One with ``*`` is a
        pattern, of a name that is put together: ``globals()[f"make_{kind}"]``.
    certain : set of str
        Those of them that are read whenever it runs.
    loaded : set of str
        All names that it reads, its own among them.
    wanted : set of str
        Those that its own lines read and cannot do without: not in ``try`` with a handler of ``NameError``.
    bound : set of str
        Names that it may bind.
    surely : set of str
        Those that it has bound for certain, once it has run.
    deleted : set of str
    imports : dict of str to Import
        Names of it that are bound by nothing but an import.
    stars : list of (module, level)
    functions : dict of str to frozenset of str
        Functions and classes that it defines, with the names that they look up.
    loops : set of str
        Names that a loop binds.
    stored_into : set of str
        Names of which it sets an attribute or an item, or which it updates in place (``+=``).
    called : set of str
        Names that it gives to a call or of which it calls a method.
    runs_text : bool
        It calls what runs code in a text.
    for_effect : set of str
        Names of which something is called for nothing but its effect: ``np.random.seed(1)``.
    given : set of str
        Names that such a call is given: ``setattr(np, "bool", bool)``.
    texts : set of str
        Texts in it that could be names.
    chained : set of str
        Those of `for_effect` of which what a call returns is called: ``json.loads(text).get("a")``.
    setters : set of str
        Functions that it defines which set attributes of a module, or call something of one for its effect.
    """

    reads: dict[str, int] = field(default_factory=dict)
    certain: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)
    wanted: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    surely: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    imports: dict[str, Import] = field(default_factory=dict)
    stars: list[tuple[str, int]] = field(default_factory=list)
    functions: dict[str, frozenset[str]] = field(default_factory=dict)
    loops: set[str] = field(default_factory=set)
    stored_into: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    runs_text: bool = False
    for_effect: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    chained: set[str] = field(default_factory=set)
    setters: set[str] = field(default_factory=set)


_BUILT_IN = frozenset(dir(builtins))


@lru_cache(maxsize=4096)
def reads_of(source: str, first: int = 1, last: int | None = None, without: frozenset[int] = frozenset()) -> Reads:
    """Read a cell.

    Parameters
    ----------
    source : str
        Python, see ``transform``.
    first, last : int, optional
        Statements of the top level that begin in these lines count.
    without : frozenset of int
        Statements in which one of these lines is are left out.

    Raises
    ------
    SyntaxError
    """
    reader = _Reader()
    for statement in ast.parse(source).body:
        end = statement.end_lineno or statement.lineno
        if statement.lineno < first or (last is not None and statement.lineno > last):
            continue
        if any(statement.lineno <= line <= end for line in without):
            continue
        reader.visit(statement)
    return reader.result()


class _Reader(ast.NodeVisitor):
    """Goes through statements in their order."""

    def __init__(self) -> None:
        self.found = Reads()
        self._sure: set[str] = set()
        self._optional = 0  # inside what may not run
        self._guarded = 0  # inside what does without the name
        self._hidden: list[set[str]] = []  # names of comprehensions and classes around
        self._other: set[str] = set()  # names bound by something else than an import

    def result(self) -> Reads:
        self.found.surely = self._sure
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
            if name in self.found.functions and name in self._sure:
                for used in sorted(self.found.functions[name]):
                    self._read(used, line, late=True) if used != name else None
            return
        self.found.reads.setdefault(name, line)
        if self._guarded or late:
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
            if not _ends_here(way):
                ends.append(self._sure)
        self._optional -= 1
        self._sure = set.intersection(*ends) if ends else before

    # Statements.

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._target(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._guarded += 1
        self.visit(node.annotation)
        self._guarded -= 1
        if node.value is not None:
            self.visit(node.value)
            self._target(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self._read(node.target.id, node.lineno)
            self.found.stored_into.add(node.target.id)
            self._bind(node.target.id)
        else:
            self._target(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        hidden, self._hidden = self._hidden, [h for h in self._hidden if not isinstance(h, _Comprehension)]
        self._bind(node.target.id)
        self._hidden = hidden

    def _target(self, target: ast.AST) -> None:
        root = target
        while isinstance(root, ast.Attribute | ast.Subscript | ast.Starred | ast.Call):
            root = root.func if isinstance(root, ast.Call) else root.value
        if root is not target and isinstance(root, ast.Name) and not isinstance(target, ast.Starred):
            self.found.stored_into.add(root.id)
        self.visit(target)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self.found.loops |= {name.id for name in ast.walk(node.target) if isinstance(name, ast.Name)}
        with self._perhaps():
            self._target(node.target)
            for one in node.body:
                self.visit(one)
        for one in node.orelse:
            self.visit(one)

    visit_AsyncFor = visit_For  # noqa: N815 (ast's name)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        with self._perhaps():
            for one in node.body:
                self.visit(one)
        for one in node.orelse:
            self.visit(one)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._ways([node.body, node.orelse])

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

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self._target(item.optional_vars)
        for one in node.body:
            self.visit(one)

    visit_AsyncWith = visit_With  # noqa: N815 (ast's name)

    def visit_Try(self, node: ast.Try) -> None:
        guarded = any(_catches_name_error(handler) for handler in node.handlers)
        before = set(self._sure)
        self._guarded += guarded
        for one in node.body:
            self.visit(one)
        self._guarded -= guarded
        for one in node.orelse:
            self.visit(one)
        ends = [self._sure]
        self._optional += 1
        for handler in node.handlers:
            self._sure = set(before)
            if handler.type is not None:
                self.visit(handler.type)
            if handler.name is not None:
                self._bind(handler.name)
            for one in handler.body:
                self.visit(one)
            if handler.name is not None:
                self._sure.discard(handler.name)
            if not _ends_here(handler.body):
                ends.append(self._sure)
        self._optional -= 1
        self._sure = set.intersection(*ends)
        for one in node.finalbody:
            self.visit(one)

    def visit_TryStar(self, node: ast.TryStar) -> None:
        self.visit_Try(node)  # type: ignore[arg-type]

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        for case in node.cases:
            with self._perhaps():
                for inner in ast.walk(case.pattern):
                    if isinstance(inner, ast.MatchAs | ast.MatchStar) and inner.name is not None:
                        self._bind(inner.name)
                    elif isinstance(inner, ast.MatchMapping) and inner.rest is not None:
                        self._bind(inner.rest)
                    elif isinstance(inner, ast.MatchValue):
                        self.visit(inner.value)
                    elif isinstance(inner, ast.MatchClass):
                        self.visit(inner.cls)
                if case.guard is not None:
                    self.visit(case.guard)
                for one in case.body:
                    self.visit(one)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.split(".")[0]
            self._imported(name, Import(alias.name if alias.asname else name))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name == "*":
                self.found.stars.append((node.module or "", node.level))
            else:
                self._imported(alias.asname or alias.name, Import(node.module or "", alias.name, node.level))

    def _imported(self, name: str, what: Import) -> None:
        if not self._hidden:
            if self.found.imports.get(name, what) != what or self._optional or name in self.found.bound - {name}:
                self._other.add(name)
            self.found.imports[name] = what
        self._bind(name, imported=True)

    def visit_Expr(self, node: ast.Expr) -> None:
        root: ast.expr = node.value
        calls = 0
        while isinstance(root, ast.Call | ast.Attribute | ast.Subscript):
            calls += isinstance(root, ast.Call)
            root = root.func if isinstance(root, ast.Call) else root.value
        if isinstance(node.value, ast.Call) and isinstance(root, ast.Name):
            self.found.for_effect.add(root.id)
            if calls > 1:
                self.found.chained.add(root.id)
            self.found.given |= {one.id for one in node.value.args if isinstance(one, ast.Name)}
        self.visit(node.value)

    # Code that runs later.

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for one in node.decorator_list:
            self.visit(one)
        self._signature(node.args)
        self._guarded += 1
        for annotation in _annotations(node):
            self.visit(annotation)
        self._guarded -= 1
        late = _late_names(node)
        self._bind(node.name)
        if self._hidden:
            self._later(late)
            return
        self.found.functions[node.name] = late
        body = _Reader()
        for statement in node.body:
            body.visit(statement)
        inside = body.result()
        used = (late | inside.imports.keys()) - _BUILT_IN
        if not used.isdisjoint(inside.stored_into | inside.for_effect | inside.given):
            self.found.setters.add(node.name)
        if node.decorator_list:
            self._use_now(node.name, node.lineno)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 (ast's name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._signature(node.args)
        for name in sorted(_late_names(node)):
            self._read(name, node.lineno, late=True)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for before in [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]:
            self.visit(before)
        late: set[str] = set()
        self._hidden.append(set())
        for one in node.body:
            if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                self.visit(one)
                continue
            late |= _late_names(one)
            for decorator in one.decorator_list:
                self.visit(decorator)
            self._signature(one.args)
            self._hidden[-1].add(one.name)
        self._hidden.pop()
        self._bind(node.name)
        if self._hidden:
            self._later(frozenset(late))
            return
        self.found.functions[node.name] = frozenset(late)
        if node.decorator_list or node.keywords or node.bases:
            self._use_now(node.name, node.lineno)

    def _later(self, names: frozenset[str]) -> None:
        for name in sorted(names):
            self._read(name, 0, late=True)

    def _use_now(self, name: str, line: int) -> None:
        for used in sorted(self.found.functions[name] - {name}):
            self._read(used, line, late=True)

    def _signature(self, arguments: ast.arguments) -> None:
        for one in [*arguments.defaults, *(default for default in arguments.kw_defaults if default is not None)]:
            self.visit(one)

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
        if called in ("eval", "exec", "globals", "locals"):
            self.found.runs_text = True
        for one in [node.func, *node.args, *(keyword.value for keyword in node.keywords)]:
            for name in ast.walk(one):
                if isinstance(name, ast.Name):
                    self.found.called.add(name.id)
        if called in _RUNS_TEXT or (isinstance(node.func, ast.Attribute) and _is_namespace(node.func.value)):
            self._texts(node)
        keyed = isinstance(node.func, ast.Attribute) and _is_namespace(node.func.value)
        if node.args and ((keyed and called in ("get", "pop", "__getitem__")) or called == "eval"):
            self._computed(node.args[0])
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if _is_namespace(node.value):
            self._texts(node)
            if isinstance(node.ctx, ast.Load):
                self._computed(node.slice)
        self.generic_visit(node)

    def _computed(self, key: ast.expr) -> None:
        """A name that is put together when the code runs: what is known of it is read as a pattern."""
        pattern = _pattern(key)
        if _ANY in pattern and _PATTERN.fullmatch(pattern):
            self._guarded += 1
            self._read(pattern, key.lineno)
            self._guarded -= 1

    def _texts(self, node: ast.AST) -> None:
        """Names in texts: ``eval('rate * 2')``, ``frame.query('a > @limit')``, ``globals()['rate']``."""
        for constant in ast.walk(node):
            if isinstance(constant, ast.Constant) and isinstance(constant.value, str) and len(constant.value) < 10_000:
                for name in {*_names_of(constant.value), *_NAME_IN_TEXT.findall(constant.value)}:
                    self._guarded += 1
                    self._read(name, constant.lineno)
                    self._guarded -= 1


def matching(pattern: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the names that a pattern may mean; a key of which nothing is known gives none."""
    if pattern != _ANY:
        yield from (name for name in names if fnmatch.fnmatchcase(name, pattern))


def _pattern(key: ast.expr) -> str:
    match key:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(_pattern, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _pattern(left) + _pattern(right)
        case _:
            return _ANY


class _Comprehension(set[str]):
    """Names of a comprehension: a walrus inside binds outside of it."""


def _is_namespace(node: ast.expr) -> bool:
    """Whether an expression is ``globals()`` or the like, of which names are items."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id in ("globals", "locals", "vars")


def _names_of(text: str) -> set[str]:
    try:
        tree = ast.parse(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _late_names(node: ast.AST) -> frozenset[str]:
    """Return the global names that a function looks up when it is called."""
    import symtable
    import textwrap

    if isinstance(node, ast.Lambda):
        source = ast.unparse(ast.Expr(node))
    else:
        bare = ast.parse(ast.unparse(node)).body[0]
        source = textwrap.dedent(ast.unparse(bare))
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


def _annotations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    yield from (one.annotation for one in every if one is not None and one.annotation is not None)
    if node.returns is not None:
        yield node.returns


def _catches_name_error(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
    return bool(names & {"NameError", "Exception", "BaseException"})


def _ends_here(way: Sequence[ast.AST]) -> bool:
    return bool(way) and isinstance(way[-1], ast.Raise | ast.Return | ast.Continue | ast.Break)
