"""Absolute paths that a program names, and the same program with other paths in their stead. Pure.

``open("/data/big.csv")``, ``os.path.join("/data", "big.csv")``, and ``DATA = "/data"`` with ``f"{DATA}/big.csv"`` in
another cell name the same file. What only the running code knows may follow: ``f"/data/images/{name}"``.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from det_native.capture.bindings import bound_by
from det_native.capture.path_texts import HOLE, Names, known_text

_LONGEST = 400


def constant_names(trees: Sequence[ast.AST]) -> Names:
    """Return the names that pieces of a program bind once, to an expression that is a text, with that expression."""
    bound: Counter[str] = Counter()
    found: dict[str, ast.expr] = {}
    for tree in trees:
        for node in ast.walk(tree):
            bound.update(bound_by(node))
        for statement in getattr(tree, "body", ()):
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target = statement.targets[0]
                if isinstance(target, ast.Name) and known_text(statement.value, {}) is not None:
                    found[target.id] = statement.value
    return {name: value for name, value in found.items() if bound[name] == 1}


def absolute_paths(tree: ast.AST, names: Names) -> Iterator[tuple[str, int]]:
    """Yield the absolute paths in a piece of a program with their lines; of one with an open end, its folder."""
    for node, text in _texts(tree, names):
        start, hole, _ = text.partition(HOLE)
        path = start.rpartition("/")[0] if hole else start
        if path.startswith(("/", "~/")) and path.strip("/") and len(path) <= _LONGEST and "\n" not in path:
            yield path, getattr(node, "lineno", 0)


def put_places(tree: ast.AST, names: Names, places: Mapping[str, str]) -> None:
    """Have a piece of a program use other paths for those that are, or begin with, one of `places`.

    Parameters
    ----------
    tree : ast.AST
        It is changed.
    names : mapping
        See :func:`constant_names`; of the program as it was.
    places : mapping of str to str
        Paths as the program writes them, and where they are instead.
    """
    _Placing(names, places).visit(tree)


def _texts(tree: ast.AST, names: Names) -> Iterator[tuple[ast.expr, str]]:
    """Yield the outermost expressions that are texts, with these."""
    pending = [tree]
    while pending:
        node = pending.pop()
        text = known_text(node, names) if isinstance(node, ast.expr) else None
        if text is not None and isinstance(node, ast.expr):
            yield node, text
        else:
            pending.extend(ast.iter_child_nodes(node))


class _Placing(ast.NodeTransformer):
    def __init__(self, names: Names, places: Mapping[str, str]) -> None:
        self._names, self._places = names, places

    def visit(self, node: ast.AST) -> ast.AST:
        text = known_text(node, self._names) if isinstance(node, ast.expr) else None
        if text is None or isinstance(node, ast.Name):  # a name is what it was bound to
            return self.generic_visit(node)
        assert isinstance(node, ast.expr)
        instead = self._instead(text)
        return node if instead is None else _begun_with(node, self._names, text, instead)

    def _instead(self, text: str) -> str | None:
        for path, place in self._places.items():
            if text == path or text.startswith(f"{path.rstrip('/')}/"):
                return place + text[len(path.rstrip("/")) :] if text != path else place
        return None


def _begun_with(node: ast.expr, names: Names, text: str, instead: str) -> ast.expr:
    """Return an expression for `text` with its first part changed, so that it stands for `instead`."""
    first = _first(node, names)
    rest = text[len(first) :]
    if not text.startswith(first) or not instead.endswith(rest):
        return node
    return _with_first(node, names, instead[: len(instead) - len(rest)])


def _first(node: ast.expr, names: Names) -> str:
    part = _part(node, names)
    return str(node.value) if isinstance(node, ast.Constant) else "" if part is None else _first(part, names)


def _part(node: ast.expr, names: Names) -> ast.expr | None:
    """Return the expression with which the text of another one begins."""
    match node:
        case ast.Name():
            return names.get(node.id)
        case ast.JoinedStr(values=[first, *_]):
            return first
        case ast.FormattedValue():
            return node.value
        case ast.BinOp():
            return node.left
        case ast.Call(func=ast.Attribute(attr="format", value=template)):
            return template
        case ast.Call(args=[first, *_]):
            return first
    return None


def _with_first(node: ast.expr, names: Names, first: str) -> ast.expr:
    if isinstance(node, ast.Constant):
        return ast.copy_location(ast.Constant(first), node)
    if isinstance(node, ast.Name):
        return _relocated(_with_first(copy.deepcopy(names[node.id]), names, first), node)
    part = _part(node, names)
    assert part is not None
    new = _with_first(part, names, first)
    if isinstance(node, ast.JoinedStr):
        node.values[0] = new
    elif isinstance(node, ast.FormattedValue):
        node.value = new
    elif isinstance(node, ast.BinOp):
        node.left = new
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        node.func.value = new
    elif isinstance(node, ast.Call):
        node.args[0] = new
    return node


def _relocated(node: ast.expr, place: ast.expr) -> ast.expr:
    for part in ast.walk(node):
        if isinstance(part, ast.expr):
            ast.copy_location(part, place)
    return node
