"""What a query means, as a small tree; and a tree as the text of a query."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from det_native.schema.query.fields import FIELDS, PREFIXES

KEYWORDS = frozenset({"and", "or", "not", "in", "contains"})
# What needs no quotes, in the place of a name and in that of a value.
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_/+%@-]*")
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_./+%@:-]+")


@dataclass(frozen=True, slots=True)
class Name:
    """What is compared.

    Attributes
    ----------
    kind : str
        ``metric``, ``hp`` or ``config``; ``field`` for a fact such as ``state``; ``bare`` for a name alone, which is a
        hyperparameter or a metric.
    parts : tuple of str
        The path; of a metric, a fact and a bare name one part.
    """

    kind: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A name, an operator and values: several for ``in`` only. `place` is where it begins in the text."""

    name: Name
    operator: str
    values: tuple[str, ...]
    place: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    part: Node


@dataclass(frozen=True, slots=True)
class And:
    """All of them."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of them."""

    parts: tuple[Node, ...]


Node = Comparison | Not | And | Or


def all_of(parts: list[Node]) -> Node | None:
    """Return what holds where all parts do; None, which holds everywhere, for no part."""
    return None if not parts else parts[0] if len(parts) == 1 else And(tuple(parts))


def names_of(node: Node | None) -> list[Name]:
    """Return all names in a tree, in order."""
    match node:
        case None:
            return []
        case Comparison():
            return [node.name]
        case Not():
            return names_of(node.part)
    return [name for part in node.parts for name in names_of(part)]


def text_of(node: Node) -> str:
    """Return the query of a tree: parsed again, it is an equal tree."""
    match node:
        case Comparison():
            return _comparison(node)
        case Not():
            return f"not {_inner(node.part, (Not, Comparison))}"
        case And():
            return " and ".join(_inner(part, (Not, Comparison)) for part in node.parts)
    return " or ".join(_inner(part, (Not, Comparison, And)) for part in node.parts)


def _inner(node: Node, without_brackets: tuple[type, ...]) -> str:
    text = text_of(node)
    return text if isinstance(node, without_brackets) else f"({text})"


def _comparison(node: Comparison) -> str:
    name, values = _name(node.name), [quoted_value(value) for value in node.values]
    if node.operator == "in":
        return f"{name} in ({', '.join(values)})"
    return f"{name}:{values[0]}" if node.operator == ":" else f"{name} {node.operator} {values[0]}"


def _name(name: Name) -> str:
    if name.kind == "field":
        return name.parts[0]
    parts = [part if _is_plain(part) else _quoted(part) for part in name.parts]
    if name.kind == "bare":
        taken = name.parts[0] in FIELDS or name.parts[0] in PREFIXES
        return _quoted(name.parts[0]) if taken else parts[0]
    return ".".join([name.kind, *parts])


def _is_plain(part: str) -> bool:
    return _PLAIN_NAME.fullmatch(part) is not None and part.lower() not in KEYWORDS


def quoted_value(value: str) -> str:
    """Return a value as it stands in a query: in quotes where it needs some."""
    plain = _PLAIN_VALUE.fullmatch(value) is not None and value.lower() not in KEYWORDS
    return value if plain else _quoted(value)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
