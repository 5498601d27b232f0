"""Names in texts that code makes names of: ``eval("rate * 2")``, ``globals()[f"make_{kind}"]``. Pure."""

from __future__ import annotations

import ast
import fnmatch
import re
from collections.abc import Iterable, Iterator

#: Python's own that look up a name which is in a text.
_RUNS_TEXT = frozenset({"eval", "exec", "globals", "locals", "vars", "getattr"})
_NAMESPACES = frozenset({"globals", "locals", "vars"})
_ANY = "*"
_PATTERN = re.compile(r"[\w*]+")
_NAME_IN_TEXT = re.compile(r"@([A-Za-z_]\w*)")
_LONGEST = 10_000


def matching(pattern: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the names that a pattern may mean; a key of which nothing is known gives none."""
    if pattern != _ANY:
        yield from (name for name in names if fnmatch.fnmatchcase(name, pattern))


def names_in_text(node: ast.AST) -> Iterator[str]:
    """Yield the names, and patterns of names, that an expression makes of texts.

    ``frame.query("a > @limit")`` is the way of many libraries: of any text that a call is given, ``limit`` is a name.
    """
    if isinstance(node, ast.Call):
        called = _called(node.func)
        keyed = isinstance(node.func, ast.Attribute) and _called(node.func.value, call=True) in _NAMESPACES
        yield from _names(node, is_code=keyed or called in _RUNS_TEXT)
        if node.args and (keyed or called == "eval"):
            yield from _pattern_of(node.args[0])
    elif isinstance(node, ast.Subscript) and _called(node.value, call=True) in _NAMESPACES:
        yield from _names(node.slice, is_code=True)
        if isinstance(node.ctx, ast.Load):
            yield from _pattern_of(node.slice)


def _called(node: ast.expr, call: bool = False) -> str:
    """Return the name of a function, or, with `call`, of the one that is called by its name."""
    if call:
        return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _names(node: ast.AST, *, is_code: bool) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and len(one.value) < _LONGEST:
            yield from _NAME_IN_TEXT.findall(one.value)
            yield from _names_of(one.value) if is_code else ()


def _names_of(text: str) -> set[str]:
    try:
        tree = ast.parse(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _pattern_of(key: ast.expr) -> Iterator[str]:
    """Yield what is known of a name that is put together when the code runs."""
    pattern = _text_of(key)
    if _ANY in pattern and _PATTERN.fullmatch(pattern):
        yield pattern


def _text_of(key: ast.expr) -> str:
    match key:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(_text_of, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text_of(left) + _text_of(right)
        case _:
            return _ANY
