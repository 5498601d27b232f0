"""Reads arguments of calls where they are literals, or names that are bound once to literals and touched no more."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from det_native.capture.bindings import bound_by
from det_native.capture.document_calls import parents_of

_Around = ast.Dict | ast.List | ast.Tuple | ast.keyword


@dataclass(frozen=True, eq=False)
class Unread:
    """An argument that is no literal: why, and where that stands."""

    why: str
    cell: int
    line: int
    verb: str = "is"


@dataclass(frozen=True)
class _Place:
    cell: int
    node: ast.AST


class Literals:
    """What is literal in a document.

    Parameters
    ----------
    trees : mapping of int to ast.Module
        The cells as Python, as far as the call.
    calls : collection of ast.Call
        Calls that change nothing of what they are given.
    hidden : collection of str
        Names bound by what is not seen here.
    anything : Unread, optional
        What may bind any name.
    """

    def __init__(
        self,
        trees: Mapping[int, ast.Module],
        calls: Collection[ast.Call],
        hidden: Collection[str],
        anything: Unread | None = None,
    ) -> None:
        self._calls, self._hidden, self._anything = set(calls), hidden, anything
        self._parents: dict[ast.AST, ast.AST] = {}
        self._bound: dict[str, list[_Place]] = defaultdict(list)
        self._used: dict[str, list[_Place]] = defaultdict(list)
        for cell, tree in trees.items():
            self._parents |= parents_of(tree)
            for node in ast.walk(tree):
                for name in bound_by(node):
                    self._bound[name].append(_Place(cell, node))
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    self._used[node.id].append(_Place(cell, node))

    def read(self, node: ast.expr, cell: int, inside: frozenset[str] = frozenset()) -> Any:
        """Return the value of an expression; :class:`Unread` in place of it, or of its parts, that are no literals."""
        if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            return dict(zip(keys, (self.read(value, cell, inside) for value in node.values), strict=True))
        if isinstance(node, ast.List | ast.Tuple) and not any(isinstance(one, ast.Starred) for one in node.elts):
            elements = [self.read(one, cell, inside) for one in node.elts]
            return elements if isinstance(node, ast.List) else tuple(elements)
        if isinstance(node, ast.Name):
            return self._named(node, cell, inside)
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return Unread(ast.unparse(node), cell, node.lineno)

    def _named(self, node: ast.Name, cell: int, inside: frozenset[str]) -> Any:
        name = node.id
        places = self._bound[name]
        if self._anything is not None:
            return self._anything
        if not places or name in inside or name in self._hidden:
            return Unread(name, cell, node.lineno)
        value = self._assigned(places[0].node)
        if value is None or len(places) > 1:
            return self._depends(places[-1])
        found = self.read(value, places[0].cell, inside | {name})
        mutable = any(isinstance(one, list | dict) for one in _within(found))
        other = self._elsewhere(name, frozenset()) if mutable else None
        return found if other is None else self._depends(other)

    def _assigned(self, node: ast.AST) -> ast.expr | None:
        """The value of ``name = value`` at the top level of a cell."""
        statement = self._parents[node]
        if not isinstance(self._parents.get(statement), ast.Module):
            return None
        if isinstance(statement, ast.Assign) and statement.targets == [node]:
            return statement.value
        return statement.value if isinstance(statement, ast.AnnAssign) else None

    def _elsewhere(self, name: str, seen: frozenset[str]) -> _Place | None:
        """Return a place that might change what a name holds, None if there is none."""
        for place in self._used[name]:
            node, around = place.node, self._parents[place.node]
            while isinstance(around, _Around):
                node, around = around, self._parents[around]
            if isinstance(around, ast.Expr) or (isinstance(around, ast.Call) and around in self._calls):
                continue
            if isinstance(around, ast.Assign | ast.AnnAssign) and around.value is node:
                targets = around.targets if isinstance(around, ast.Assign) else [around.target]
                [target] = targets if len(targets) == 1 else [None]
                if isinstance(target, ast.Name) and target.id not in seen and len(self._bound[target.id]) == 1:
                    found = self._elsewhere(target.id, seen | {name})
                    if found is None:
                        continue
                    return found
            return place
        return None

    def _depends(self, place: _Place) -> Unread:
        node = place.node
        while not isinstance(node, ast.stmt):
            node = self._parents[node]
        return Unread(ast.unparse(node).splitlines()[0], place.cell, node.lineno, "depends on")


def _within(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, dict | list | tuple | set):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _within(one)


def unread_parts(value: Any, path: str = "") -> Iterator[tuple[str, Unread]]:
    """Yield (dotted path, part) of what is no literal in a value that was read."""
    if isinstance(value, Unread):
        yield path, value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from unread_parts(one, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, one in enumerate(value):
            yield from unread_parts(one, f"{path}[{index}]")


def read_parts(config: Any) -> dict[str, Any]:
    """Return a configuration without what is not read of it."""
    known = {}
    for name, value in config.items() if isinstance(config, dict) else ():
        kept = (read_parts(value) or None) if isinstance(value, dict) else value
        if kept is not None and not any(True for _ in unread_parts(kept)):
            known[name] = kept
    return known


def set_variable(name: str, trees: Mapping[int, ast.Module]) -> tuple[str | None, int | None]:
    """Return to what cells set a variable of the environment, and the cell where running them has to tell.

    It is literal where it is mentioned once, as ``os.environ["NAME"] = "text"`` at the top level of a cell.

    Parameters
    ----------
    name : str
    trees : mapping of int to ast.Module
        The cells as Python, as far as the call.
    """
    mentioned = [cell for cell, tree in trees.items() for node in ast.walk(tree) if _mentions(node, name)]
    if not mentioned:
        return None, None
    literal = [value for tree in trees.values() for node in tree.body if (value := _set_to(node, name)) is not None]
    return (literal[0], None) if len(literal) == len(mentioned) == 1 else (None, mentioned[-1])


def _mentions(node: ast.AST, name: str) -> bool:
    return (isinstance(node, ast.Constant) and node.value == name) or (
        isinstance(node, ast.keyword) and node.arg == name
    )


def _set_to(node: ast.stmt, name: str) -> str | None:
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.value, ast.Constant):
        return None
    target, value = node.targets[0], node.value.value
    is_item = isinstance(target, ast.Subscript) and _mentions(target.slice, name)
    of_environment = is_item and ast.unparse(target).partition("[")[0].rpartition(".")[2] == "environ"
    return value if of_environment and isinstance(value, str) else None
