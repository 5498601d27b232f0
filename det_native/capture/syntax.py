"""Syntax trees of pieces of source, and what is read off them: a submit asks many times for the same cells."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import lru_cache, wraps
from typing import TypeVar

_Item = TypeVar("_Item")

#: Trees that are kept; one takes a hundred times the memory of its text.
TREES = 512
_RESULTS = 4096


@lru_cache(maxsize=TREES)
def tree_of(source: str) -> ast.Module:
    """Return the syntax tree of a piece of source; nobody may change it."""
    return ast.parse(source)


@lru_cache(maxsize=TREES)
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """Return all nodes of the tree of a piece of source, as ``ast.walk`` gives them."""
    return tuple(ast.walk(tree_of(source)))


def once(function: Callable[[str], Iterable[_Item]]) -> Callable[[str], tuple[_Item, ...]]:
    """Have a function that yields something of a piece of source run once for each source."""

    @lru_cache(maxsize=_RESULTS)
    def remembered(source: str) -> tuple[_Item, ...]:
        return tuple(function(source))

    return wraps(function)(lambda source: remembered(source))
