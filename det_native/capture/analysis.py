"""Static analysis of one execution: the names it binds, uses and changes, in order, and the code that it defines."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from det_native.capture.events import Bind, Branch, Call, Code, Delete, Event, Origin, Star
from det_native.capture.expressions import (
    applied_twice_differs,
    catches_name_error,
    chain_of,
    dotted,
    makes_new,
    reads_itself,
    sharing_of,
)
from det_native.capture.scopes import Frame, annotations_of, bound_names, declared_global
from det_native.capture.vocabulary import ITERATING_METHODS
from det_native.capture.walker import ExpressionWalker


@dataclass(frozen=True)
class Statement:
    """A top-level statement: its first and last line, and what it does. `simple`: it does all of it or nothing.

    `codes` are functions that it defines without a name of the notebook: lambdas.
    """

    first: int
    last: int
    simple: bool
    events: tuple[Event, ...]
    codes: tuple[Code, ...] = ()


_SIMPLE = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Import | ast.ImportFrom | ast.Assert


@lru_cache(maxsize=4096)
def analyse(source: str) -> tuple[Statement, ...]:
    """Analyse Python source (see ``transform`` for what cells are made into), statement by statement.

    Raises
    ------
    SyntaxError
        If `source` does not parse.
    """
    walker = _Walker()
    statements = []
    for statement in ast.parse(source).body:
        walker.codes = []
        with walker.collecting() as events:
            walker.visit(statement)
        last = statement.end_lineno or statement.lineno
        simple = isinstance(statement, _SIMPLE)
        statements.append(Statement(statement.lineno, last, simple, tuple(events), tuple(walker.codes)))
    return tuple(statements)


class _Walker(ExpressionWalker, ast.NodeVisitor):
    """Turns statements into events."""

    def _branches(self, line: int, bodies: Iterable[Callable[[], None]]) -> None:
        alternatives = []
        self.conditional += 1
        for body in bodies:
            with self.collecting() as events:
                body()
            alternatives.append(tuple(events))
        self.conditional -= 1
        if any(alternatives):
            self.events.append(Branch(tuple(alternatives), line))

    def visit_Expr(self, node: ast.Expr) -> None:
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assign(node.targets, node.value, node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        with self._flags(optional=True):
            self.visit(node.annotation)
        if node.value is not None:
            self._assign([node.target], node.value, node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._assign([node.target], node.value, node)

    def _assign(self, targets: Sequence[ast.expr], value: ast.expr, node: ast.AST) -> None:
        before, names_before = len(self.codes), self.names
        self.names = []
        self.visit(value)
        names, self.names = frozenset(self.names), names_before + self.names
        codes = tuple(self.codes[before:])
        for target in targets:
            if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
                pairs = list(zip(target.elts, value.elts, strict=False))
                if len(pairs) == len(target.elts) and not any(isinstance(e, ast.Starred) for e, _ in pairs):
                    for element, part in pairs:
                        self._bind_target(element, part, names, codes)
                    continue
            self._bind_target(target, value, names, codes)

    def _bind_target(
        self,
        target: ast.expr,
        value: ast.expr,
        names: frozenset[str],
        codes: tuple[Code, ...],
        loop: bool = False,
        part: bool = False,
    ) -> None:
        if isinstance(target, ast.Name):
            self._bind_name(target, value, names, codes, loop, part)
        elif isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._bind_target(element, value, names, codes, loop, part=True)
        elif isinstance(target, ast.Starred):
            self._bind_target(target.value, value, names, codes, loop, part=True)
        else:
            how = "attribute" if isinstance(target, ast.Attribute) else "item"
            self._change(target, how, reads_itself(target, value))

    def _bind_name(
        self,
        target: ast.Name,
        value: ast.expr,
        names: frozenset[str],
        codes: tuple[Code, ...],
        loop: bool,
        part: bool,
    ) -> None:
        sharing = sharing_of(value, self._roots)
        frame = self._frame_of(target.id)
        if frame.local is not None:
            frame.stands_for(target.id, self._may_be(value), instead=not self.conditional and not loop)
            return
        origin = Origin("loop" if loop else "value")
        self.events.append(
            Bind(
                target.id,
                target.lineno,
                sources=names,
                aliases=frozenset(sharing.aliases),
                through=tuple(sharing.through),
                same=sharing.same and not loop,
                codes=codes,
                origin=origin,
                updates=not loop and applied_twice_differs(target.id, value),
                copies=frozenset(sharing.copies),
                whole=not (loop or part) and makes_new(value),
                entire=frozenset(sharing.entire),
            )
        )

    def _change(self, target: ast.expr, how: str, accumulates: bool) -> None:
        """Note that the place `target` (an attribute or an item) is assigned to or deleted."""
        assert isinstance(target, ast.Attribute | ast.Subscript)
        self.visit(target.value)
        if isinstance(target, ast.Subscript):
            self.visit(target.slice)
        start, chain = chain_of(target)
        if isinstance(start, ast.Name):
            self._changed(self._roots(start.id), target, how, chain, accumulates)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            self._change(node.target, "item" if isinstance(node.target, ast.Subscript) else "attribute", True)
            return
        name = node.target.id
        self._read(name, node.target)
        self._changed(self._roots(name), node.target, "augmented", accumulates=True)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.visit(node.value)
            # What local names stand for is left out: they may be made from it only.
            roots = sharing_of(node.value, lambda name: frozenset({name}) if self._is_global(name) else frozenset())
            frame = self.frames[-1]
            frame.returned |= roots.aliases
            frame.given_back |= sharing_of(node.value, self._roots).entire.intersection(frame.parameters)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                if self._is_global(target.id):
                    self.events.append(Delete(target.id, target.lineno))
            elif isinstance(target, ast.Attribute | ast.Subscript):
                self._change(target, "item", True)

    def visit_For(self, node: ast.For) -> None:
        self._loop(node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
        self._loop(node)

    def _loop(self, node: ast.For | ast.AsyncFor) -> None:
        names_before, self.names = self.names, []
        with self._flags(called=True):
            self.visit(node.iter)
            self._accessed(node.iter, *ITERATING_METHODS)
        names, self.names = frozenset(self.names), names_before

        def body() -> None:
            self._bind_target(node.target, node.iter, names, (), loop=True)
            self._block(node.body)
            self._block(node.orelse)

        self._branches(node.lineno, [body, lambda: self._block(node.orelse)])

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._branches(node.lineno, [lambda: self._block([*node.body, *node.orelse]), lambda: self._block(node.orelse)])

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._branches(node.lineno, [lambda: self._block(node.body), lambda: self._block(node.orelse)])

    def visit_With(self, node: ast.With) -> None:
        self._with(node)

    def visit_AsyncWith(self, node: ast.AsyncWith) -> None:
        self._with(node)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            before, names_before, self.names = len(self.codes), self.names, []
            with self._flags(called=True):
                self.visit(item.context_expr)
                self._accessed(item.context_expr, "__enter__", "__exit__", "__aenter__", "__aexit__")
            names, self.names = frozenset(self.names), names_before
            if item.optional_vars is not None:
                self._bind_target(item.optional_vars, item.context_expr, names, tuple(self.codes[before:]))
        self._block(node.body)

    def visit_Try(self, node: ast.Try) -> None:
        optional = self.optional or catches_name_error(node.handlers)
        self.conditional += 1
        with self._flags(optional=optional), self.collecting() as tried:
            self._block(node.body)
        with self.collecting() as then:
            self._block(node.orelse)
        ways: list[tuple[Event, ...]] = [(*tried, *then)]
        for handler in node.handlers:
            with self.collecting() as handled:
                self._handler(handler)
            ways.append((Branch((tuple(tried), ()), node.lineno), *handled))
        self.conditional -= 1
        self.events.append(Branch(tuple(ways), node.lineno))
        self._block(node.finalbody)

    def visit_TryStar(self, node: ast.TryStar) -> None:
        self.visit_Try(node)  # type: ignore[arg-type]

    def _handler(self, handler: ast.ExceptHandler) -> None:
        if handler.type is not None:
            self.visit(handler.type)
        name = handler.name if handler.name is not None and self._is_global(handler.name) else None
        if name is not None:
            self.events.append(Bind(name, handler.lineno))
        self._block(handler.body)
        if name is not None:
            self.events.append(Delete(name, handler.lineno))

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)

        def case(matched: ast.match_case) -> Callable[[], None]:
            def body() -> None:
                self._pattern(matched.pattern, node.subject)
                if matched.guard is not None:
                    self.visit(matched.guard)
                self._block(matched.body)

            return body

        self._branches(node.lineno, [*(case(matched) for matched in node.cases), lambda: None])

    def _pattern(self, pattern: ast.pattern, subject: ast.expr) -> None:
        for node in ast.walk(pattern):
            if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name is not None:
                target = ast.copy_location(ast.Name(node.name, ast.Store()), node)
                self._bind_target(target, subject, frozenset(), ())
            elif isinstance(node, ast.MatchMapping) and node.rest is not None:
                target = ast.copy_location(ast.Name(node.rest, ast.Store()), node)
                self._bind_target(target, subject, frozenset(), ())
            elif isinstance(node, ast.MatchValue | ast.MatchClass):
                self.visit(node.value if isinstance(node, ast.MatchValue) else node.cls)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.split(".")[0]
            module = alias.name if alias.asname else name
            if self._is_global(name):
                self.events.append(Bind(name, node.lineno, origin=Origin("import", module)))
            else:
                self._frame_of(name).imports[name] = tuple(module.split("."))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        for alias in node.names:
            if alias.name == "*":
                self.events.append(Star(module, node.level, node.lineno))
            elif self._is_global(alias.asname or alias.name):
                origin = Origin("import", module, alias.name, node.level)
                self.events.append(Bind(alias.asname or alias.name, node.lineno, origin=origin))
            else:
                name = alias.asname or alias.name
                self._frame_of(name).imports[name] = (*module.split("."), alias.name)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._decorators(node.decorator_list)
        before, self.names = len(self.codes), []
        self._defaults(node.args)
        with self._flags(optional=True):
            for annotation in annotations_of(node):
                self.visit(annotation)
        sources = frozenset(self.names) | _roots_of(node.decorator_list)
        code = replace(self._code(node, node.name), decorators=_last_names(node.decorator_list))
        codes = (*self.codes[before:], code)
        if self._is_global(node.name):
            self.events.append(Bind(node.name, node.lineno, sources, codes=codes, origin=Origin("def")))
        else:
            self.codes.extend(codes)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._decorators(node.decorator_list)
        before, self.names = len(self.codes), []
        with self._flags(called=True):
            for base in [*node.bases, *(keyword.value for keyword in node.keywords)]:
                self.visit(base)
        sources = frozenset(self.names) | _roots_of(node.decorator_list)
        self.frames.append(Frame(bound_names(node.body), is_class=True, declared=declared_global(node.body)))
        codes_before, self.codes = self.codes, []
        self._block(node.body)
        self.frames.pop()
        collected, self.codes = self.codes, codes_before
        codes = (*self.codes[before:], *(replace(code, name=f"{node.name}.{code.name}") for code in collected))
        if self._is_global(node.name):
            self.events.append(Bind(node.name, node.lineno, sources, codes=codes, origin=Origin("class")))
        else:
            self.codes.extend(codes)

    def _decorators(self, decorators: Sequence[ast.expr]) -> None:
        with self._flags(called=True):
            for decorator in decorators:
                self.visit(decorator)
                path = dotted(decorator)
                if path and self._is_global(path[0]):
                    self.events.append(Call(path, decorator.lineno))
                    method = path[-1] if len(path) > 1 else ""
                    self._changed(self._roots(path[0]), decorator, "call", (("call", method),))


def _roots_of(nodes: Iterable[ast.expr]) -> frozenset[str]:
    return frozenset(start.id for node in nodes if isinstance(start := chain_of(node)[0], ast.Name))


def _last_names(decorators: Iterable[ast.expr]) -> frozenset[str]:
    paths = (dotted(one.func if isinstance(one, ast.Call) else one) for one in decorators)
    return frozenset(path[-1] for path in paths if path)
