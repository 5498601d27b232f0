"""Which texts of a program come to code that may open them. Pure.

Python tells of each file that it opens. A text matters where one is opened out of its sight (by a library in C, in
another process), is only asked for (``exists()``), or is opened later, by a function that has not run yet. No library
has to be known for that: the text, or a name that it was given, is handed to a call. ``label = "other.csv"`` with
``print(label)`` hands it to nobody, as of Python's own functions none but ``open`` uses a file by its name.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Collection, Iterable
from enum import IntEnum
from typing import NamedTuple

#: What Python itself has that uses no file by its name, and calls nothing that it is given.
_HARMLESS = frozenset(dir(builtins)) - {"open", "exec", "eval", "__import__", "map", "filter", "getattr"}
#: Those of them that give on what they are given.
_PASSING = frozenset({"dict", "enumerate", "format", "frozenset", "iter", "list", "max", "min", "next", "repr"})
_PASSING |= {"reversed", "set", "sorted", "str", "tuple", "zip"}
_Targets = frozenset[str]
_NOBODY: _Targets = frozenset()


class Handed(IntEnum):
    """To which calls a text comes."""

    NOWHERE = 0
    #: To calls of Python's own, that have been made already: what these open is seen.
    PYTHON = 1
    ANYWHERE = 2


class _Place(NamedTuple):
    """Where a part of a program stands: what it is handed to, bound to, and in which function."""

    handed: Handed = Handed.NOWHERE
    targets: _Targets = _NOBODY
    function: _Targets = _NOBODY


class Way(NamedTuple):
    """A name, or what is in it by keys and attributes that are written out: ``cfg["data"].path``."""

    name: str
    steps: tuple[tuple[str, str | int], ...] = ()

    @property
    def names(self) -> list[str]:
        """The name and the attributes."""
        return [self.name, *(str(step) for kind, step in self.steps if kind == "attribute")]


class Flow:
    """Follows texts through pieces of a program that share their names, and whose own lines have run.

    Parameters
    ----------
    trees : iterable of ast.Module
    is_pythons : callable
        Says of a name whether a call of it, or of something in it, is one of Python's own.

    Attributes
    ----------
    names : dict of str to Handed
        Names and attributes that come to a call, or what is bound to them does.
    """

    def __init__(self, trees: Iterable[ast.Module], is_pythons: Callable[[str], bool] = lambda name: False) -> None:
        self.names: dict[str, Handed] = {}
        self._is_pythons = is_pythons
        self._handed: dict[int, Handed] = {}
        self._bound: dict[int, _Targets] = {}
        self._made_of: dict[str, set[str]] = {}
        self._ways: dict[Way, Handed] = {}
        self._whole: dict[str, Handed] = {}  # names of which not only a part is handed on
        for tree in trees:
            self._visit(tree, _Place())
        self._add_origins(self.names, ())

    def values_of(self, live: Collection[str]) -> set[Way]:
        """Return what values come to calls that may use a file out of sight, or later.

        Parameters
        ----------
        live : collection of str
            Names that have a value: what that was made of need not be looked at.
        """
        names = dict(self._whole)
        self._add_origins(names, live)
        ways = {**{Way(name): handed for name, handed in names.items()}, **self._ways}
        return {way for way, handed in ways.items() if handed is Handed.ANYWHERE}

    def _add_origins(self, names: dict[str, Handed], live: Collection[str]) -> None:
        """Add to names that are handed on those that they were made of, except through `live` ones."""
        waiting = [name for name in names if name not in live]
        while waiting:
            name = waiting.pop()
            for part in self._made_of.get(name, ()):
                if names.get(part, Handed.NOWHERE) < names[name]:
                    names[part] = names[name]
                    waiting.extend([part] if part not in live else [])

    def handed(self, node: ast.AST) -> Handed:
        """Return to which calls a text of these pieces comes: the parts of it, if it is put together."""
        found = [self._handed.get(id(part), Handed.NOWHERE) for part in ast.walk(node)]
        names = {name for part in ast.walk(node) for name in self._bound.get(id(part), _NOBODY)}
        return max([*found, *(self.names.get(name, Handed.NOWHERE) for name in names)])

    def _visit(self, node: ast.AST, place: _Place) -> None:
        match node:
            case ast.Constant(value=str()):
                self._handed[id(node)] = place.handed
                self._bound[id(node)] = place.targets
            case ast.Subscript() | ast.Attribute() if way := _way(node):
                for name in way.names:
                    self._use(name, place)
                self._ways[way] = max(place.handed, self._ways.get(way, Handed.NOWHERE))
                return
            case ast.Name(id=name) | ast.Attribute(attr=name):
                self._use(name, place)
                self._whole[name] = max(place.handed, self._whole.get(name, Handed.NOWHERE))
            case ast.Call():
                place = self._in_call(node.func, place)
            case ast.Subscript():  # a key names nothing but its value
                self._visit(node.slice, _Place(function=place.function))
                self._visit(node.value, place)
                return
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                place = place._replace(function=frozenset({name}))
        place = place._replace(targets=_targets(node, place))
        for child in ast.iter_child_nodes(node):
            self._visit(child, place._replace(targets=_NOBODY) if isinstance(child, ast.stmt) else place)

    def _use(self, name: str, place: _Place) -> None:
        if place.handed:
            self.names[name] = max(place.handed, self.names.get(name, Handed.NOWHERE))
        for target in place.targets:
            self._made_of.setdefault(target, set()).add(name)

    def _in_call(self, function: ast.expr, place: _Place) -> _Place:
        """Return the place of what a call is given."""
        if isinstance(function, ast.Name) and function.id in _HARMLESS:
            return place if function.id in _PASSING else place._replace(targets=_NOBODY)
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Constant | ast.JoinedStr):
            return place
        root: ast.AST = function
        while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
            root = root.func if isinstance(root, ast.Call) else root.value
        name = root.id if isinstance(root, ast.Name) else ""
        seen = not place.function and bool(name) and (hasattr(builtins, name) or self._is_pythons(name))
        return place._replace(handed=max(place.handed, Handed.PYTHON if seen else Handed.ANYWHERE))


def _way(node: ast.AST) -> Way | None:
    """Return the way to what an expression stands for, None of one that is put together otherwise."""
    steps: list[tuple[str, str | int]] = []
    while not isinstance(node, ast.Name):
        match node:
            case ast.Subscript(slice=ast.Constant(value=str() | int() as key)):
                steps.append(("key", key))
            case ast.Attribute(attr=name):
                steps.append(("attribute", name))
            case _:
                return None
        node = node.value
    return Way(node.id, tuple(reversed(steps)))


def _targets(node: ast.AST, place: _Place) -> _Targets:
    """Return what the value of a part is bound to."""
    match node:
        case ast.Assign(targets=targets):
            return frozenset(name for target in targets for name in _names(target))
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.For(target=target):
            return frozenset(_names(target))
        case ast.AsyncFor(target=target) | ast.withitem(optional_vars=ast.expr() as target):
            return frozenset(_names(target))
        case ast.NamedExpr(target=target) | ast.comprehension(target=target):
            return place.targets | frozenset(_names(target))
        case ast.arguments():
            return frozenset(argument.arg for argument in (*node.posonlyargs, *node.args, *node.kwonlyargs))
        case ast.Return() | ast.Yield() | ast.YieldFrom():
            return place.function
        case ast.Compare():
            return _NOBODY
    return place.targets


def _names(target: ast.expr) -> Iterable[str]:
    """Return the names and attributes that a target of an assignment has, ``d`` of ``d["path"]``."""
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
