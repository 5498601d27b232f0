"""What expressions and function bodies do: the lower half of the analysis."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from det_native.capture.events import Access, Call, Change, Code, Event, Read, flat, name_of, result_of
from det_native.capture.expressions import chain_of, dotted, shared_names, sharing_of, target_names
from det_native.capture.scopes import Frame, bound_names, declared_global, own_nodes
from det_native.capture.vocabulary import (
    ACCUMULATING_METHODS,
    CONTAINER_CHANGES,
    DRAWING_METHODS,
    ITERATING_FUNCTIONS,
    ITERATING_METHODS,
)

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_AT_NAME = re.compile(r"(?<![\w@])@([A-Za-z_]\w*)")
_CHANGEABLE = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp | ast.Call


class ExpressionWalker(ast.NodeVisitor):
    """Turns expressions into events, appended to `events`; knows the scopes that it is in."""

    def __init__(self) -> None:
        self.frames = [Frame()]
        self.events: list[Event] = []
        self.codes: list[Code] = []
        self.called = False
        self.optional = False
        self.names: list[str] = []
        self.conditional = 0  # how many branches of the scope there are around

    @contextmanager
    def collecting(self) -> Iterator[list[Event]]:
        outer, self.events = self.events, []
        try:
            yield self.events
        finally:
            self.events = outer

    @contextmanager
    def _flags(self, *, called: bool | None = None, optional: bool | None = None) -> Iterator[None]:
        before = self.called, self.optional
        self.called = self.called if called is None else called
        self.optional = self.optional if optional is None else optional
        try:
            yield
        finally:
            self.called, self.optional = before

    def _frame_of(self, name: str) -> Frame:
        for position, frame in enumerate(reversed(self.frames)):
            if name in frame.declared or frame.local is None:
                return self.frames[0]
            if name in frame.local and (position == 0 or not frame.is_class):
                return frame
        return self.frames[0]

    def _is_global(self, name: str) -> bool:
        return self._frame_of(name) is self.frames[0]

    def _roots(self, name: str) -> frozenset[str]:
        """Names that a change of `name` is to be noted for: itself, or what a local name stands for."""
        frame = self._frame_of(name)
        return frozenset({name}) if frame.local is None else frame.roots(name)

    def _may_be(self, node: ast.expr) -> frozenset[str]:
        """Return the names that a value may share state with, and ``result_of`` those that were called for it."""
        sharing = sharing_of(node, self._roots)
        names = set(sharing.aliases)
        for path, given in sharing.through:
            called = {path[0]} & given if self._is_global(path[0]) else set()
            names |= (given - called).union(map(result_of, called))
        return frozenset(names)

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self.visit(statement)

    def _changed(
        self,
        names: Iterable[str],
        node: ast.expr,
        how: str,
        chain: tuple[tuple[str, str], ...] = (),
        accumulates: bool = False,
        in_place: bool = False,
    ) -> None:
        last = node.end_lineno or node.lineno
        for name in sorted(names):
            change = Change(name, node.lineno, last, how, chain, accumulates, in_place)  # type: ignore[arg-type]
            self.events.append(change)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._defaults(node.args)
        code = self._code(node, "a lambda")
        self.codes.append(code)
        if self.called:
            for name in sorted(code.reads):
                self.events.append(Read(name, node.lineno, called=True, optional=True))
            self.names.extend(code.reads)

    def _defaults(self, arguments: ast.arguments) -> None:
        for default in [*arguments.defaults, *arguments.kw_defaults]:
            if default is not None:
                self.visit(default)

    def _code(self, node: _Function, name: str) -> Code:
        """Analyse the body of a function: what it looks up and changes when it runs."""
        arguments = node.args
        positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        others = [argument.arg for argument in arguments.kwonlyargs]
        variadic = [argument.arg for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
        body = [ast.copy_location(ast.Expr(node.body), node.body)] if isinstance(node, ast.Lambda) else node.body
        declared = declared_global(body)
        local = {*positional, *others, *variadic, *(bound_names(body) - declared)}
        frame = Frame(local, declared=declared)
        frame.parameters = (*positional, *others, *variadic)
        codes_before, names_before, self.codes = self.codes, self.names, []
        conditional_before, self.conditional = self.conditional, 0
        self.frames.append(frame)
        with self.collecting() as events, self._flags(called=False, optional=False):
            self._block(body)
        self.frames.pop()
        self.conditional = conditional_before
        nested, self.codes, self.names = self.codes, codes_before, names_before
        reads = [event for event in flat(events) if isinstance(event, Read)]
        required = {read.name for read in reads if not read.optional}
        inner = [event for code in nested for event in code.events if name_of(event) not in code.parameters]
        inner_reads = {read for code in nested for read in code.reads if read not in local}
        return Code(
            name,
            node.lineno,
            frozenset({read.name for read in reads} | inner_reads),
            frozenset({read.name for read in reads} - required)
            | frozenset().union(*(code.optional for code in nested)) - required,
            frame.parameters,
            (*(event for event in events if not isinstance(event, Read)), *inner),
            _kept(arguments),
            frozenset(frame.returned.difference(local)),
            frozenset(frame.given_back),
            lasting=None if _goes_on(node) else tuple(inner),
            only_called=_only_called(events) - inner_reads,
        )

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._read(node.id, node)

    def _read(self, name: str, node: ast.expr) -> None:
        if self._is_global(name):
            self.names.append(name)
            self.events.append(Read(name, node.lineno, self.called, self.optional))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.visit(node.value)
        self._accessed(node.value, node.attr)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        self.visit(node.slice)
        self._accessed(node.value, "__getitem__")
        if _is_namespace(node.value):
            self._named_in(node.slice, node)

    def _accessed(self, node: ast.expr, *methods: str) -> None:
        """Note that methods of what `node` names may run without being called."""
        if isinstance(node, ast.Name):
            for name in sorted(self._roots(node.id)):
                self.events.extend(Access(name, node.lineno, method) for method in methods)

    def _named_in(self, text: ast.expr, node: ast.expr) -> None:
        """Note the names that a text is about, where the code has the text: ``globals()["x"]``."""
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            for name in sorted(_names_in(text.value)):
                self._read(name, node)

    def visit_Call(self, node: ast.Call) -> None:
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        with self._flags(called=True):
            self.visit(node.func.value if isinstance(node.func, ast.Attribute) else node.func)
            for argument in arguments:
                self.visit(argument)
        for argument in arguments:
            self._handed(argument)
        self._out_of_texts(node)
        path = dotted(node.func)
        if path and path[-1] in ITERATING_FUNCTIONS:
            for argument in node.args:
                self._accessed(argument, *ITERATING_METHODS)
        imported = self._frame_of(path[0]).imports.get(path[0]) if path else None
        if imported:
            self._call(node, (*imported, *path[1:]), imported=True)
        elif path and self._is_global(path[0]):
            self._call(node, path)
        elif not path and isinstance(node.func, ast.Attribute) and node.func.attr in DRAWING_METHODS:
            self._call(node, DRAWING_METHODS[node.func.attr], imported=True)
        start, chain = chain_of(node)
        if isinstance(start, ast.Name) and chain:
            in_place = any(keyword.arg == "inplace" and _is_true(keyword.value) for keyword in node.keywords)
            accumulates = chain[-1][1] in ACCUMULATING_METHODS
            self._changed(self._roots(start.id), node, "call", chain, accumulates, in_place)
        for keyword in node.keywords:
            if keyword.arg == "out":
                self._changed(shared_names(keyword.value, self._roots), node, "argument")

    def _handed(self, argument: ast.expr) -> None:
        """A method that changes its object, given to a call, may be called by it: ``map(found.append, texts)``."""
        if isinstance(argument, ast.Attribute) and argument.attr in CONTAINER_CHANGES:
            start, chain = chain_of(argument)
            if isinstance(start, ast.Name):
                self._changed(self._roots(start.id), argument, "call", (*chain[:-1], ("call", argument.attr)))

    def _out_of_texts(self, node: ast.Call) -> None:
        """Note names that stand in texts which calls look into: of tables, of builtins."""
        if not node.args:
            return
        first = node.args[0]
        if isinstance(node.func, ast.Attribute) and node.func.attr in {"query", "eval"}:
            parts = first.values if isinstance(first, ast.JoinedStr) else [first]
            texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            for name in sorted({name for text in texts for name in _AT_NAME.findall(text)}):
                self._read(name, node)
            return
        attribute = node.func if isinstance(node.func, ast.Attribute) else None
        got = attribute is not None and attribute.attr == "get" and _is_namespace(attribute.value)
        if got or dotted(node.func) == ("eval",):
            self._named_in(first, node)

    def _call(self, node: ast.Call, path: tuple[str, ...], imported: bool = False) -> None:
        arguments: list[tuple[int | str, frozenset[str]]] = []
        for position, argument in enumerate(node.args):
            arguments.append((position, self._may_be(argument)))
        for keyword in node.keywords:
            arguments.append((keyword.arg or "**", self._may_be(keyword.value)))
        keywords = frozenset(keyword.arg or "**" for keyword in node.keywords)
        self.events.append(Call(path, node.lineno, tuple(arguments), keywords, imported))

    def _comprehension(self, node: _Comprehension) -> None:
        local = {name for generator in node.generators for name in target_names(generator.target)}
        frame = Frame(local)
        with self._flags(called=True):
            self.visit(node.generators[0].iter)
            self._accessed(node.generators[0].iter, *ITERATING_METHODS)
            self.frames.append(frame)
            for position, generator in enumerate(node.generators):
                if position:
                    self.visit(generator.iter)
                shared = shared_names(generator.iter, self._roots)
                frame.aliases.update(dict.fromkeys(target_names(generator.target), shared))
                for condition in generator.ifs:
                    self.visit(condition)
            for part in [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]:
                self.visit(part)
            self.frames.pop()

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node)


def _goes_on(node: _Function) -> bool:
    """Whether the body of a function still runs when it has been called: a generator's, or one to be awaited."""
    if isinstance(node, ast.Lambda | ast.AsyncFunctionDef):
        return True
    return any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in own_nodes(node.body))


def _only_called(events: Iterable[Event]) -> frozenset[str]:
    """Return the names that are looked up for nothing but a call of them."""
    found = list(flat(events))
    reads = Counter(event.name for event in found if isinstance(event, Read))
    calls = Counter(event.callee[0] for event in found if isinstance(event, Call) and len(event.callee) == 1)
    return frozenset(name for name, times in reads.items() if calls[name] == times)


def _is_namespace(node: ast.expr) -> bool:
    """Whether an expression gives the names of the notebook."""
    return isinstance(node, ast.Call) and not node.args and dotted(node.func) in {("globals",), ("locals",), ("vars",)}


def _names_in(text: str) -> set[str]:
    """Return the names that an expression uses; none if the text is no expression."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _kept(arguments: ast.arguments) -> frozenset[str]:
    """Return the parameters whose default is made once and can be changed."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [*zip(reversed(positional), reversed(arguments.defaults), strict=False)]
    defaults += [
        (name, value) for name, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value
    ]
    return frozenset(parameter.arg for parameter, default in defaults if isinstance(default, _CHANGEABLE))


def _is_true(node: ast.expr) -> bool:
    return not (isinstance(node, ast.Constant) and not node.value)
