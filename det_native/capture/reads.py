"""Which names a cell may read before it has bound them, which it binds, and which its functions look up. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from det_native.capture.bindings import bound_by, catches, imports_in, root_of
from det_native.capture.late_names import late_names
from det_native.capture.name_reader import NameReader, ends_here
from det_native.capture.reads_record import Import, Reads

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
    reader = _Reader()
    for statement in ast.parse(source).body:
        if last is None or statement.lineno <= last:
            reader.visit(statement)
    return reader.result()


class _Reader(NameReader, ast.NodeVisitor):
    """Goes through statements in their order."""

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

    def _target(self, target: ast.AST) -> None:
        root = target
        while isinstance(root, ast.Attribute | ast.Subscript | ast.Starred | ast.Call):
            root = root.func if isinstance(root, ast.Call) else root.value
        if root is not target and isinstance(root, ast.Name) and not isinstance(target, ast.Starred):
            self.found.stored_into.add(root.id)
        self.visit(target)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
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

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self._target(item.optional_vars)
        for one in node.body:
            self.visit(one)

    visit_AsyncWith = visit_With  # noqa: N815 (ast's name)

    def visit_Try(self, node: ast.Try) -> None:
        guarded = any(catches(handler, _NAME_ERRORS) for handler in node.handlers)
        before = set(self._sure)
        self._guarded += guarded
        for one in node.body:
            self.visit(one)
        self._guarded -= guarded
        if guarded:  # a name that was asked for is there, or a handler makes it
            asked = (one.value for one in node.body if isinstance(one, ast.Expr | ast.Assign))
            self._sure = self._sure.union(*map(root_of, asked))
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
            if not ends_here(handler.body):
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
                    for name in bound_by(inner):
                        self._bind(name)
                    if isinstance(inner, ast.MatchValue):
                        self.visit(inner.value)
                    elif isinstance(inner, ast.MatchClass):
                        self.visit(inner.cls)
                if case.guard is not None:
                    self.visit(case.guard)
                for one in case.body:
                    self.visit(one)

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
        for one in node.decorator_list:
            self.visit(one)
        self._signature(node.args)
        self._guarded += 1
        for annotation in _annotations(node):
            self.visit(annotation)
        self._guarded -= 1
        late = late_names(node)
        self.found.late_bound |= _set_outside(node)
        self._bind(node.name)
        if self._hidden:
            self._later(late)
            return
        self.found.functions[node.name] = late
        if node.decorator_list:
            self._use_now(node.name, node.lineno)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 (ast's name)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for before in [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]:
            self.visit(before)
        late: set[str] = set()
        self._hidden.append(set())
        for one in node.body:
            if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                self.visit(one)
                continue
            late |= late_names(one)
            self.found.late_bound |= _set_outside(one)
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


def _set_outside(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {name for inner in ast.walk(node) if isinstance(inner, ast.Global) for name in inner.names}


def _annotations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    yield from (one.annotation for one in every if one is not None and one.annotation is not None)
    if node.returns is not None:
        yield node.returns
