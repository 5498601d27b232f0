"""A program, and its values, with other paths in the stead of absolute ones that they name. Pure.

``open("/data/big.csv")``, ``os.path.join("/data", "big.csv")``, and ``DATA = "/data"`` with ``f"{DATA}/big.csv"`` in
another cell name the same file. What only the running code knows may follow: ``f"/data/images/{name}"``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from det_native.capture.path_texts import Names, constant_names, known_text

__all__ = ["constant_names", "place_of", "put_places"]

#: What stands in the place of an expression: for what begins with one path, the same with another; else what it is.
_PLACED = (
    "(lambda path: path.__class__({place!r} + f'{{path}}'[{length}:]) "
    "if f'{{path}}'.startswith({text!r}) and not f'{{path}}'.startswith({place!r}) else path)"
)


def put_places(tree: ast.AST, names: Names, places: Mapping[str, str]) -> None:
    """Have a piece of a program use other paths for those that are, or begin with, one of `places`.

    Parameters
    ----------
    tree : ast.AST
        It is changed.
    names : mapping
        See :func:`~det_native.capture.path_texts.constant_names`; of the program as it was.
    places : mapping of str to str
        Paths as the program writes them, and where they are instead.
    """
    _Placing(names, places).visit(tree)


def place_of(text: str, places: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the longest of `places` that a path begins with, and where that is instead; None if there is none."""
    starts = [path for path in places if text == path or text.startswith(f"{path.rstrip('/')}/")]
    path = max(starts, key=len, default=None)
    return None if path is None else (path.rstrip("/"), places[path].rstrip("/"))


class _Placing(ast.NodeTransformer):
    def __init__(self, names: Names, places: Mapping[str, str]) -> None:
        self._names, self._places = names, places

    def visit(self, node: ast.AST) -> ast.AST:
        text = known_text(node, self._names)
        if text is None or isinstance(node, ast.Name):  # a name is what it was bound to
            return self.generic_visit(node)
        found = place_of(text, self._places)
        if found is None:
            return node
        start, place = found
        if place == start:  # it stays, in a folder that has another place: a name in it may be bound to that
            outer = place_of(start.rpartition("/")[0], self._places)
            if outer is None or isinstance(node, ast.Constant):
                return node
            start = outer[1] + place[len(outer[0]) :]
        return _placed(node, text, start, place)


def _placed(node: ast.AST, text: str, start: str, place: str) -> ast.expr:
    if isinstance(node, ast.Constant):
        return ast.copy_location(ast.Constant(place + text[len(start) :]), node)
    # A name in it may be bound to a path that has its place already.
    source = _PLACED.format(place=place, length=len(start), text=start)
    function = ast.parse(source, mode="eval").body
    assert isinstance(node, ast.expr)
    call = ast.Call(function, [node], [])
    for part in (call, *ast.walk(function)):
        if isinstance(part, ast.expr | ast.arg):
            ast.copy_location(part, node)
    return call
