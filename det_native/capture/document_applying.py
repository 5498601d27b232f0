"""Reads the calls of a document: those of ours are noted, small functions of cells are followed, plain ones applied."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from det_native.capture.document_calls import (
    CONTEXT_CALLS,
    CREATES,
    FITS,
    MODE_CLASSES,
    framework_of_init,
    is_context_call,
)
from det_native.capture.document_expressions import FAILURES, ExpressionReader, Scope
from det_native.capture.document_values import (
    FUNCTIONS,
    LOADERS,
    ONLY_LOOKING,
    Class,
    Context,
    Function,
    Opened,
    Symbol,
    Unknown,
    Wrapped,
    changes,
    holds_unknown,
    is_plain,
    load_file,
    load_text,
    looks,
)
from det_native.capture.modules import is_local
from det_native.capture.vocabulary import (
    FRESH_METHODS,
    KEEPING_METHODS,
    LEARNING_METHODS,
    VIEW_METHODS,
    changes_argument,
)

_DEEPEST = 6
_HARMLESS_METHODS = FRESH_METHODS | VIEW_METHODS | KEEPING_METHODS | LEARNING_METHODS
_KEEPING_UNKNOWN = frozenset(
    {
        f"builtins.{name}"
        for name in ("dict", "enumerate", "frozenset", "len", "list", "reversed", "set", "tuple", "zip")
    }
    | {"copy.copy", "copy.deepcopy"}
)


@dataclass
class Given:
    """The arguments of a call; `complete` is False if ``*`` or ``**`` hides some."""

    positional: list[Any] = field(default_factory=list)
    keywords: dict[str, Any] = field(default_factory=dict)
    complete: bool = True

    @property
    def values(self) -> list[Any]:
        """All of them."""
        return [*self.positional, *self.keywords.values()]


class CallReader(ExpressionReader):
    """Values of expressions with calls in them."""

    def call(self, node: ast.Call) -> Any:
        """Return the value of a call, and note it if it is one of ours."""
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value)
            if not isinstance(owner, Symbol):
                return self._method(node, owner, node.func.attr, self._given(node))
            target = self.attribute(owner, node.func)
        else:
            target = self.value(node.func)
        given = self._given(node)
        if isinstance(target, Symbol):
            return self._imported(node, target, given)
        if isinstance(target, Function):
            return self._followed(node, target, given)
        if isinstance(target, Class):
            self._disturb(target.node, node)
        for value in given.values:
            self.taint(value, node)
            self._run_later(value, node)
        return self.unknown(node)

    def _given(self, node: ast.Call) -> Given:
        given = Given()
        for argument in node.args:
            value = self.value(argument.value if isinstance(argument, ast.Starred) else argument)
            if not isinstance(argument, ast.Starred):
                given.positional.append(value)
            elif isinstance(value, list | tuple):
                given.positional.extend(value)
            else:
                given.complete = False
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is not None:
                given.keywords[keyword.arg] = value
            elif isinstance(value, dict) and all(isinstance(name, str) for name in value):
                given.keywords.update(value)
            else:
                given.complete = False
        return given

    # Imported functions.

    def _imported(self, node: ast.Call, target: Symbol, given: Given) -> Any:
        path = str(target)
        framework = framework_of_init(path)
        if framework is not None:
            more = {"complete": given.complete, "framework": framework}
            return Context(self.note("init", node, given.positional, given.keywords, **more))
        if path in CREATES:
            self.note("create", node, given.positional, given.keywords, complete=given.complete)
            return self.unknown(node)
        if path in FUNCTIONS or path in MODE_CLASSES:
            return self._applied(node, path, given)
        if target.path[-1] in FITS and len(target.path) > 2 and is_local(target.path[0]):
            return self._fit(node, target, given)
        if path in LOADERS or path in {"builtins.open", "os.path.join", "os.getcwd", "pathlib.Path.cwd"}:
            return self._of_files(node, path, given)
        for position, value in enumerate(given.positional):
            if path not in ONLY_LOOKING and (is_local(target.path[0]) or changes_argument(target.path, position)):
                self.taint(value, node)
        for value in given.values:
            self._run_later(value, node)
        return self.unknown(node)

    def _applied(self, node: ast.Call, path: str, given: Given) -> Any:
        known = given.complete and all(map(is_plain, given.values))
        if path not in _KEEPING_UNKNOWN and not path.startswith("det_native"):
            known = known and not any(map(holds_unknown, given.values))
        if not known:
            return self.unknown(node)
        try:
            if path in MODE_CLASSES:
                return str(given.positional[0]).lower()
            result = FUNCTIONS[path](*given.positional, **given.keywords)
        except FAILURES:
            return self.unknown(node)
        return result if is_plain(result) else list(result) if hasattr(result, "__next__") else self.unknown(node)

    def _of_files(self, node: ast.Call, path: str, given: Given) -> Any:
        if path in {"os.getcwd", "pathlib.Path.cwd"}:
            return self.folder if path.startswith("pathlib") else str(self.folder)
        if not given.positional or not given.complete:
            return self.unknown(node)
        first = given.positional[0]
        try:
            if path == "os.path.join" and all(isinstance(part, str | Path) for part in given.positional):
                return os.path.join(*given.positional)
            mode = given.keywords.get("mode", given.positional[1] if len(given.positional) > 1 else "r")
            if path == "builtins.open" and isinstance(first, str | Path) and mode in {"r", "rt", "rb"}:
                return Opened(self.folder / Path(first).expanduser())
            if path in LOADERS and isinstance(first, Opened):
                return load_file(path, first.path)
            if path in LOADERS and isinstance(first, str):
                return load_text(path, first)
        except FAILURES:
            return self.unknown(node)
        return self.unknown(node)

    # Methods.

    def _method(self, node: ast.Call, owner: Any, name: str, given: Given) -> Any:
        if isinstance(owner, Context) and name == "wrap_model" and given.values:
            wrapped = Wrapped(owner)
            self._replace(given.values[0], wrapped)
            return wrapped
        if isinstance(owner, Context) and is_context_call(owner.call.framework, name):
            more = {"complete": given.complete, "init": owner.call, "framework": owner.call.framework}
            self.note(CONTEXT_CALLS[name], node, given.positional, given.keywords, **more)
            return self.unknown(node)
        if name in FITS and (isinstance(owner, Wrapped) or not is_plain(owner)):
            return self._fit(node, owner, given)
        if isinstance(owner, Opened) and name == "read" and not given.values:
            return self._text(node, owner)
        if is_plain(owner) and (looks(owner, name) or changes(owner, name)):
            return self._plain_method(node, owner, name, given)
        if isinstance(owner, Path) and name in {"open", "read_text"} and not given.positional:
            opened = Opened(self.folder / owner.expanduser())
            return opened if name == "open" else self._text(node, opened)
        if name not in _HARMLESS_METHODS and not isinstance(owner, Context | Wrapped):
            for value in [owner, *given.values] if is_plain(owner) else given.values:
                self.taint(value, node)
                self._run_later(value, node)
        return self.unknown(node)

    def _fit(self, node: ast.Call, owner: Any, given: Given) -> Any:
        sure = isinstance(owner, Wrapped)
        init = owner.context.call if isinstance(owner, Wrapped) else None
        more = {"complete": given.complete, "sure": sure, "init": init}
        self.note("fit", node, given.positional, given.keywords, **more)
        return self.unknown(node)

    def _replace(self, model: Any, wrapped: Wrapped) -> None:
        """``wrap_model`` returns the very model that it is given: its names are of a wrapped model from now on."""
        scope: Scope | None = self.scope
        while scope is not None:
            for name, value in scope.names.items():
                if value is model:
                    scope.names[name] = wrapped
            scope = scope.parent

    def _text(self, node: ast.Call, opened: Opened) -> Any:
        try:
            return opened.path.read_text(encoding="utf-8-sig")
        except (OSError, ValueError):
            return self.unknown(node)

    def _plain_method(self, node: ast.Call, owner: Any, name: str, given: Given) -> Any:
        changing = changes(owner, name)
        known = given.complete and (
            all(map(is_plain, given.values)) or name in {"append", "insert", "setdefault", "get", "pop"}
        )
        if isinstance(owner, str) and any(map(holds_unknown, given.values)):
            known = False
        if changing and not (known and self.certain):
            self.taint(owner, node)
            return self.unknown(node)
        if not known:
            return self.unknown(node)
        try:
            result = getattr(owner, name)(*given.positional, **given.keywords)
        except FAILURES:
            return self.unknown(node)
        return list(result) if name in {"items", "keys", "values"} else result

    # Functions of cells.

    def _followed(self, node: ast.Call, function: Function, given: Given) -> Any:
        """Read the body of a function that is called."""
        scope = Scope(function.scope)
        if self.depth >= _DEEPEST or not given.complete or not _bind(scope, function, given, self.unknown(node)):
            self._disturb(function.node, node)
            for value in given.values:
                self.taint(value, node)
            return self.unknown(node)
        outer, cell = self.scope, self.cell
        self.scope, self.cell, self.depth = scope, function.cell, self.depth + 1
        try:
            result = self.body(function.node)
        finally:
            self.scope, self.cell, self.depth = outer, cell, self.depth - 1
        return self.unknown(node) if result is None else result[0]

    depth = 0

    def body(self, node: ast.FunctionDef) -> tuple[Any] | None:
        """Read the body of a function in the present scope; return what it gives, None if that is not known."""
        raise AssertionError("the reader of statements says how")

    def _run_later(self, value: Any, node: ast.AST) -> None:
        """A function that is given away may be called at any time."""
        if isinstance(value, Function):
            self._disturb(value.node, node)

    def _disturb(self, definition: ast.FunctionDef | ast.ClassDef, node: ast.AST) -> None:
        """Global values that code which is not followed changes are unknown from now on."""
        for name in _changed_names(definition):
            try:
                self.taint(self.scope.top.find(name), node)
            except KeyError:
                continue
            if name in _declared(definition):
                self.scope.top.names[name] = self.unknown(node)


def _bind(scope: Scope, function: Function, given: Given, unknown: Unknown) -> bool:
    """Bind the parameters of a function; False if the arguments do not fit."""
    arguments = function.node.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    keyword_only = [one.arg for one in arguments.kwonlyargs]
    extra = {name: value for name, value in given.keywords.items() if name not in {*names, *keyword_only}}
    if (len(given.positional) > len(names) and not arguments.vararg) or (extra and not arguments.kwarg):
        return False
    defaults = dict(zip(names[len(names) - len(function.defaults) :], function.defaults, strict=True))
    values = {**defaults, **function.keyword_defaults, **dict(zip(names, given.positional, strict=False))}
    values.update({name: value for name, value in given.keywords.items() if name not in extra})
    for name in (*names, *keyword_only):
        scope.names[name] = values.get(name, unknown)
    if arguments.vararg:
        scope.names[arguments.vararg.arg] = tuple(given.positional[len(names) :])
    if arguments.kwarg:
        scope.names[arguments.kwarg.arg] = extra
    return True


def _changed_names(definition: ast.AST) -> Iterator[str]:
    """Names whose value code may change, seen from outside of it."""
    for node in ast.walk(definition):
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield from _root(node)
        elif isinstance(node, ast.AugAssign):
            yield from _root(node.target)
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr not in _HARMLESS_METHODS:
                yield from _root(node.func)
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                yield from _root(argument)
    yield from _declared(definition)


def _declared(definition: ast.AST) -> list[str]:
    return [name for node in ast.walk(definition) if isinstance(node, ast.Global) for name in node.names]


def _root(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Starred):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
