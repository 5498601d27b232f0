"""Names in texts that code makes names of: ``eval("rate * 2")``, ``globals()[f"make_{kind}"]``. Pure."""

from __future__ import annotations

import ast
import fnmatch
import re
from collections.abc import Iterable, Iterator

#: Code that is in a text: what is called with it looks names up.
RUNS_TEXT = frozenset({"eval", "exec", "globals", "locals", "vars", "query", "getattr"})
_ANY = "*"
_PATTERN = re.compile(r"[\w*]+")
_NAME_IN_TEXT = re.compile(r"@([A-Za-z_]\w*)")


def matching(pattern: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the names that a pattern may mean; a key of which nothing is known gives none."""
    if pattern != _ANY:
        yield from (name for name in names if fnmatch.fnmatchcase(name, pattern))


def pattern_of(key: ast.expr) -> str | None:
    """Return what is known of a name that is put together when the code runs; None if it is not put together."""
    pattern = _text_of(key)
    return pattern if _ANY in pattern and _PATTERN.fullmatch(pattern) else None


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


def is_namespace(node: ast.expr) -> bool:
    """Whether an expression is ``globals()`` or the like, of which names are items."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id in ("globals", "locals", "vars")


def _names_of(text: str) -> set[str]:
    try:
        tree = ast.parse(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def names_in_text(text: str) -> set[str]:
    """Return the names in a text that may be code: ``rate * 2``, ``a > @limit``."""
    return {*_names_of(text), *_NAME_IN_TEXT.findall(text)}
