"""Values whose order is that of a set of texts: it is another one in each process, as Python's hashes of texts are."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Any

_FEWEST = 5  # so many texts in the order of a set are no chance
_MOST = 100_000


def has_order_of_a_set(value: Any, source: str, namespace: Mapping[str, Any], reads: Collection[str]) -> bool:
    """Whether a value is plain and in an order that a set gave, most likely.

    Parameters
    ----------
    value : object
    source : str
        The cell that made it.
    namespace : mapping of str
        The live values.
    reads : collection of str
        What the cell reads.
    """
    if type(value) not in (list, tuple, dict) or not 2 <= len(value) <= _MOST:
        return False
    texts = list(value)
    if any(type(text) is not str for text in texts) or texts == sorted(texts) or len(set(texts)) < len(texts):
        return False
    if _is_written(texts, source):
        return False
    if len(texts) >= _FEWEST and any(list(set(one)) == texts for one in (texts, *_with_these(texts, namespace))):
        return True
    return _makes_a_set(source) or any(_is_set_of_texts(namespace.get(name)) for name in reads)


def _with_these(texts: list[str], namespace: Mapping[str, Any]) -> Iterator[Collection[str]]:
    """Yield what in the notebook has these texts: where two have the same place, it hangs on who came first."""
    wanted = set(texts)
    for value in list(namespace.values()):
        if type(value) in (list, tuple, dict) and len(texts) <= len(value) <= _MOST:
            first = next(iter(value))
            plain = type(first) is str and first in wanted and all(type(one) is str for one in value)
            if plain and set(value) == wanted:
                yield value


def _is_written(texts: list[str], source: str) -> bool:
    """Whether the texts stand in the cell in this very order, as one list, tuple or dictionary."""
    nodes = _nodes(source)
    written = [
        node.keys if isinstance(node, ast.Dict) else node.elts
        for node in nodes
        if isinstance(node, ast.Dict | ast.List | ast.Tuple)
    ]
    return any([getattr(one, "value", None) for one in each] == texts for each in written)


def _makes_a_set(source: str) -> bool:
    nodes = _nodes(source)
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return bool(called & {"set", "frozenset"}) or any(isinstance(node, ast.Set | ast.SetComp) for node in nodes)


def _nodes(source: str) -> list[ast.AST]:
    try:
        return list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return []


def _is_set_of_texts(value: Any) -> bool:
    return type(value) in (set, frozenset) and len(value) <= _MOST and any(type(one) is str for one in value)
