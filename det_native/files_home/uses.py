"""Paths that code uses: those that stand in its text, in the values that it names, and in the functions that it calls.

Nothing of the code is run. Libraries in C and C++ open files out of Python's sight, so what the code says has to do.
"""

from __future__ import annotations

import ast
import copy
import inspect
import linecache
import os
import re
import textwrap
import types
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from det_native.capture.bindings import bound_by
from det_native.capture.observation.kinds import is_own
from det_native.capture.path_flow import HARMLESS
from det_native.capture.path_texts import (
    HOLE,
    PathText,
    Role,
    call_name,
    known_text,
    only_reads,
    only_writes,
    path_texts,
    template_text,
)
from det_native.capture.syntax import tree_of
from det_native.capture.value_paths import may_be_path
from det_native.files_home.commands import paths_of_command
from det_native.files_home.patterns import pattern_of
from det_native.files_home.values import is_plain_object, static_value, texts_in

Lookup = Callable[[str], Any]

#: Functions with this attribute read no file whose path they are given.
READS_NO_FILES = "_det_reads_no_files"
#: Of Python's own: it makes a folder, or finds it there, and reads nothing.
_MAKES_FOLDERS = re.compile(r"(make|mk)dirs?")
#: Functions of the user's that are looked into for one piece of code.
_MOST_FUNCTIONS = 200
#: Without an argument they list the working directory.
_LISTING = (os.listdir, os.scandir)
_DATA = (str, os.PathLike, list, tuple, dict, set)


@dataclass(frozen=True)
class PathUse:
    """A path that a piece of code uses.

    Attributes
    ----------
    pattern : str
        See ``patterns``.
    text : str
        As the code has it.
    call : str
        The text of the innermost call that is given it; empty where that is none.
    role : Role
        READ or WRITTEN where the name of the call says it, else NAMED.
    given : bool
        It goes into an object that a training is given, which uses it there.
    """

    pattern: str
    text: str
    call: str = ""
    role: Role = Role.NAMED
    given: bool = False


class PathReader:
    """Collects the paths that pieces of code use.

    Parameters
    ----------
    folder : str
        The working directory.
    given : collection of type
        Classes of objects that trainings are given (callbacks): a path that one is made with is used by a training.
    trainers : collection of code
        Of functions that contain a training call: a path that one is given is used by that training.
    owners : iterable of (object, str)
        Objects that read a folder by themselves, with the folder: code that names one uses it.

    Attributes
    ----------
    uses : list of PathUse
    calls : set of str
        The texts of all calls.
    trains : bool
        A function is called that contains a training call.
    """

    def __init__(
        self,
        folder: str,
        given: Collection[type] = (),
        trainers: Collection[types.CodeType] = (),
        owners: Iterable[tuple[Any, str]] = (),
    ) -> None:
        self._folder = folder
        self._owners = list(owners)
        self._given = frozenset(given)
        self._trainers = frozenset(trainers)
        self._functions: set[int] = set()
        self._kept: list[Any] = []
        self.uses: list[PathUse] = []
        self.calls: set[str] = set()
        self.trains = False

    def read(self, statements: Sequence[ast.stmt], lookup: Lookup) -> None:
        """Take in statements that follow each other.

        Parameters
        ----------
        statements : sequence of ast.stmt
        lookup : callable
            Gives the value of a name; None of what is not there.
        """
        tree, names, values = _resolved(statements, lookup)
        parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        names = {**names, **_bound_texts(tree, names)}
        for text in path_texts(tree, names):
            self._take_text(text, parents, values)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in values and isinstance(node.ctx, ast.Load):
                self._take_texts((path for owner, path in self._owners if owner is values[node.id]), "")
                self._take_value(node, values[node.id], parents, values)
            if isinstance(node, ast.Call):
                self._take_call(node, values)

    def read_command(self, command: str, lookup: Lookup) -> None:
        """Take in the words of a command of a shell, or of a magic."""
        self._take_texts(paths_of_command(command, lookup), "")

    def read_function(self, function: Any, call: str = "") -> None:
        """Take in a function of the user's, and the paths that its parameters are by default."""
        with suppress(Exception):  # objects may raise whatever they are asked
            function = inspect.unwrap(function)
        if not isinstance(function, types.FunctionType) or id(function) in self._functions:
            return
        if len(self._functions) >= _MOST_FUNCTIONS or not _is_users(function.__module__):
            return
        self._functions.add(id(function))
        self._kept.append(function)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._take_texts(texts_in(default, self._given), call)
        body = _body_of(function)
        if body is None:
            self._take_texts(_constants(function.__code__), call)
        else:
            self.read(body, _in_function(function))

    def read_class(self, kind: type) -> None:
        """Take in the methods of a class of the user's."""
        for base in kind.__mro__:
            if _is_users(base.__module__):
                for member in vars(base).values():
                    member = getattr(member, "__func__", getattr(member, "fget", member))
                    self.read_function(member)

    def read_value(self, value: Any) -> None:
        """Take in the paths that an object of the user's holds."""
        self._take_texts(texts_in(value, self._given), "")

    def read_text(self, text: str) -> None:
        """Take in a path; ``{epoch:02d}`` or ``%d`` in it stands for what only the running code knows."""
        self._take_texts([template_text(text)], "")

    # Parts of a piece.

    def _take_text(self, text: PathText, parents: dict[int, ast.AST], values: dict[str, Any]) -> None:
        if text.role in (Role.BOUND, Role.ENTERED) or (isinstance(text.node, ast.Name) and text.node.id in values):
            return
        if _is_key(text.node, parents):
            return
        calls = list(_calls_around(text.node, parents))
        self._add(_prefix(text.node, parents) + text.text, calls, text.role, values)
        if calls and " " in text.text:  # a command, perhaps: `os.system("cat best.txt")`
            for word in text.text.split():
                if may_be_path(word := word.strip("'\"(),;:<>")):
                    self._add(word, calls, text.role, values)

    def _take_value(self, node: ast.Name, value: Any, parents: dict[int, ast.AST], values: dict[str, Any]) -> None:
        calls = list(_calls_around(node, parents))
        parent = parents[id(node)]
        is_gone_through = isinstance(parent, ast.For | ast.comprehension) and parent.iter is node
        if not (calls or is_gone_through) or callable(value) or isinstance(value, types.ModuleType):
            return
        for text in texts_in(value, self._given):
            self._add(text, calls, Role.NAMED, values)

    def _take_call(self, call: ast.Call, values: dict[str, Any]) -> None:
        function = static_value(call.func, values.get)
        self.calls.add(ast.unparse(call))
        self.trains |= self._is_trainer(function)
        if not call.args and any(function is listing for listing in _LISTING):  # users' objects compare as they like
            self.uses.append(PathUse(self._folder, ".", ast.unparse(call), Role.READ))
        if isinstance(function, types.MethodType):
            function = function.__func__
        if isinstance(function, type):
            if _is_users(function.__module__) and not self._is_given(function):
                self.read_class(function)
        elif function is not None:
            self.read_function(function, ast.unparse(call))
        owner = static_value(call.func.value, values.get) if isinstance(call.func, ast.Attribute) else None
        if owner is not None and is_plain_object(owner) and not self._is_given(type(owner)):
            self.read_class(type(owner))
            self._take_texts(texts_in(owner, self._given), ast.unparse(call))

    def _add(self, text: str, calls: Sequence[ast.Call], role: Role, values: dict[str, Any]) -> None:
        serious = [call for call in calls if not _is_harmless(call)]
        if calls and not serious:
            return
        functions = [static_value(call.func, values.get) for call in serious]
        if any(
            isinstance(function, types.FunctionType) and hasattr(function, READS_NO_FILES) for function in functions
        ):
            return
        given = any(self._is_given(function) or self._is_trainer(function) for function in functions)
        # What a method is called of that another call has returned (`open(...).write(...)`) is no path any more.
        paths = [call for call in serious if call is serious[0] or not _is_within(serious[0], call.func)]
        if serious and only_reads(serious[0]):  # `save(load("best.pt")["model"], ...)` reads it
            role = Role.READ
        elif any(only_writes(call) or _MAKES_FOLDERS.fullmatch(call_name(call)) for call in paths):
            role = Role.WRITTEN
        elif role is Role.WRITTEN:  # it adds to what is there
            role = Role.NAMED
        pattern = pattern_of(template_text(text), self._folder)
        if pattern is not None:
            call = ast.unparse(serious[0]) if serious else ""
            self.uses.append(PathUse(pattern, text.replace(HOLE, "*"), call, role, given))

    def _take_texts(self, texts: Iterable[str], call: str) -> None:
        for text in texts:
            pattern = pattern_of(text, self._folder)
            if pattern is not None:
                self.uses.append(PathUse(pattern, text, call))

    def _is_given(self, kind: Any) -> bool:
        return isinstance(kind, type) and not self._given.isdisjoint(kind.__mro__[:-1])

    def _is_trainer(self, function: Any) -> bool:
        return isinstance(function, types.FunctionType) and function.__code__ in self._trainers


def _bound_texts(tree: ast.Module, names: dict[str, str]) -> dict[str, str]:
    """Return the names that a piece binds once, in functions too, to an expression that is a text, with that text."""
    several = Counter(name for node in ast.walk(tree) for name in bound_by(node))
    lines = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)]
    found: dict[str, str] = {}
    for line in sorted(lines, key=lambda line: line.lineno):
        name = line.targets[0].id  # type: ignore[attr-defined]
        text = known_text(line.value, {**names, **found})
        if text is not None and several[name] == 1 and len(line.targets) == 1:
            found[name] = text
    return found


def _prefix(node: ast.AST, parents: dict[int, ast.AST]) -> str:
    """Return what stands for a folder that is not known, where a text is a path in it: ``folder / "best.pt"``."""
    parent = parents.get(id(node))
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div) and parent.right is node:
        return f"{HOLE}/"
    if isinstance(parent, ast.Call) and call_name(parent) in ("join", "joinpath"):
        is_joined = node in parent.args[1:] or (call_name(parent) == "joinpath" and node in parent.args)
        return f"{HOLE}/" if is_joined else ""
    return ""


def _calls_around(node: ast.AST, parents: dict[int, ast.AST]) -> Iterator[ast.Call]:
    """Yield the calls that an expression is given to, or that are made on it, the innermost first."""
    child, parent = node, parents.get(id(node))
    while parent is not None and not isinstance(parent, ast.stmt | ast.Lambda):
        if isinstance(parent, ast.Call) and not (child is parent.func and _is_text_method(parent.func)):
            yield parent
        child, parent = parent, parents.get(id(parent))


def _is_key(node: ast.AST, parents: dict[int, ast.AST]) -> bool:
    """Whether an expression is (part of) a key, which names what is in a container."""
    child, parent = node, parents.get(id(node))
    while isinstance(parent, ast.expr) and not isinstance(parent, ast.Call):
        if isinstance(parent, ast.Subscript) and child is parent.slice:
            return True
        child, parent = parent, parents.get(id(parent))
    return False


def _is_within(node: ast.AST, outer: ast.AST) -> bool:
    return any(part is node for part in ast.walk(outer))


def _is_text_method(function: ast.expr) -> bool:
    """Whether a method of a text is called, which uses no file."""
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Constant | ast.JoinedStr)


def _is_harmless(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in HARMLESS


def _is_users(module: str | None) -> bool:
    if module is None or module.partition(".")[0] in ("det_native", "det_harness"):
        return False
    return module == "__main__" or is_own(module)


def _body_of(function: types.FunctionType) -> list[ast.stmt] | None:
    """Return the statements of a function; None if its text cannot be had."""
    if function.__name__ == "<lambda>":
        return _body_of_lambda(function.__code__)
    try:
        source = textwrap.dedent(inspect.getsource(function))
        first = tree_of(source).body[0]
    except (OSError, TypeError, SyntaxError, IndexError, ValueError):
        return None
    return first.body if isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef) else None


def _body_of_lambda(code: types.CodeType) -> list[ast.stmt] | None:
    """Return what a lambda evaluates; None if another one begins in the line where it does."""
    try:
        tree = tree_of("".join(linecache.getlines(code.co_filename)))
    except (SyntaxError, ValueError):
        return None
    several = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno]
    return [ast.Expr(several[0].body, lineno=1, col_offset=0)] if len(several) == 1 else None


def _constants(code: types.CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield from texts_in(constant, ())
        elif isinstance(constant, types.CodeType):
            yield from _constants(constant)


def _in_function(function: types.FunctionType) -> Lookup:
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))

    def lookup(name: str) -> Any:
        if name in cells:
            try:
                return cells[name].cell_contents
            except ValueError:  # not bound yet
                return None
        return function.__globals__.get(name)

    return lookup


def _resolved(statements: Sequence[ast.stmt], lookup: Lookup) -> tuple[ast.Module, dict[str, str], dict[str, Any]]:
    """Return statements in which what leads to a value is a name, with the texts and other values of these names."""
    tree = ast.Module([*statements], [])
    bound = {name for node in ast.walk(tree) for name in bound_by(node)}
    naming = _Naming(lookup, bound)
    tree = ast.Module([naming.visit(_copy(statement)) for statement in statements], [])
    paths = (str, os.PathLike)
    texts = {name: os.fspath(value) for name, value in naming.values.items() if issubclass(type(value), paths)}
    others = {name: value for name, value in naming.values.items() if name not in texts}
    return tree, {name: text for name, text in texts.items() if isinstance(text, str)}, others


def _copy(statement: ast.stmt) -> ast.stmt:
    return copy.deepcopy(statement)


class _Naming(ast.NodeTransformer):
    """Turns ``cfg.paths["best"]`` into a name, and keeps what it stands for."""

    def __init__(self, lookup: Lookup, bound: Collection[str]) -> None:
        self.values: dict[str, Any] = {}
        self._lookup = lookup
        self._bound = bound

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id not in self._bound:
            value = self._lookup(node.id)
            if value is not None:
                self.values[node.id] = value
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self._named(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return self._named(node)

    def _named(self, node: ast.Attribute | ast.Subscript) -> ast.AST:
        if isinstance(node.ctx, ast.Load):
            value = static_value(node, lambda name: None if name in self._bound else self._lookup(name))
            if issubclass(type(value), _DATA) or is_plain_object(value):
                name = ast.unparse(node)
                self.values[name] = value
                return ast.copy_location(ast.Name(name, ast.Load()), node)
        return self.generic_visit(node)
