"""Values that the text of a document alone tells, and what may be done with them; pure, nothing of the user's runs."""

from __future__ import annotations

import ast
import copy
import json
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from det_native.schema import helpers

_LONGEST = 10_000
_LARGEST_EXPONENT = 512


@dataclass(frozen=True, eq=False)
class Unknown:
    """A value that is known only once the code has run: its expression, and where that stands."""

    why: str
    cell: int
    line: int


@dataclass(frozen=True)
class Symbol:
    """Something imported, by its full dotted path."""

    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, eq=False)
class Opened:
    """A file that the code opens for reading."""

    path: Path


@dataclass(frozen=True, eq=False)
class Context:
    """What a call of ``init()`` gives; `call` is its :class:`FoundCall`."""

    call: Any


@dataclass(frozen=True, eq=False)
class Wrapped:
    """A model that a context wraps."""

    context: Context


@dataclass(frozen=True, eq=False)
class Class:
    """A class defined in a cell, with the paths of its bases as far as they are imported."""

    name: str
    bases: tuple[Any, ...]
    node: ast.ClassDef

    @property
    def roots(self) -> Iterator[str]:
        """Paths of the imported classes that it derives from."""
        for base in self.bases:
            if isinstance(base, Class):
                yield from base.roots
            elif isinstance(base, Symbol):
                yield str(base)


@dataclass(frozen=True, eq=False)
class Function:
    """A function defined in a cell; `scope` is where it looks names up, `defaults` are those of its last parameters."""

    node: ast.FunctionDef
    cell: int
    scope: Any
    defaults: tuple[Any, ...] = ()
    keyword_defaults: Mapping[str, Any] = field(default_factory=dict)


PLAIN = (int, float, complex, str, bytes, bool, type(None), list, tuple, dict, set, frozenset, range, Path)
CONTAINERS = (list, dict, set)


def is_plain(value: Any) -> bool:
    """Whether a value is data of Python itself; what it holds may still be unknown."""
    return isinstance(value, PLAIN)


def parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (dotted path, value) of everything in a value that is no container."""
    pending: list[tuple[str, Any]] = [("", value)]
    while pending:
        path, one = pending.pop()
        if isinstance(one, dict):
            pending.extend((f"{path}.{key}" if path else str(key), entry) for key, entry in reversed(one.items()))
        elif isinstance(one, list | tuple | set | frozenset):
            pending.extend((f"{path}[{index}]", entry) for index, entry in enumerate(one))
        else:
            yield path, one


def holds_unknown(value: Any) -> bool:
    """Whether a part of a value is not plain data."""
    return any(not is_plain(one) for _, one in parts(value))


# Operators ------------------------------------------------------------------------------------------------------------

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}


class TooLargeError(ValueError):
    """A result that is not worth computing in order to read a document."""


def binary(kind: ast.operator, left: Any, right: Any) -> Any:
    """Apply an operator to plain values.

    Raises
    ------
    TooLargeError, TypeError, ValueError, ArithmeticError, KeyError
    """
    apply = _BINARY.get(type(kind))
    if apply is None:
        raise TypeError(type(kind).__name__)
    if isinstance(kind, ast.Pow) and not _is_small_power(left, right):
        raise TooLargeError
    if isinstance(left, str) and holds_unknown(right):
        raise TypeError("the text is not known")
    if isinstance(kind, ast.Mult):
        for one, other in ((left, right), (right, left)):
            if hasattr(one, "__len__") and isinstance(other, int) and len(one) * other > _LONGEST:
                raise TooLargeError
    return apply(left, right)


def _is_small_power(left: Any, right: Any) -> bool:
    numbers = all(isinstance(value, int | float) and abs(value) <= 1 << 64 for value in (left, right))
    return numbers and abs(right) <= _LARGEST_EXPONENT


def compare(kind: ast.cmpop, left: Any, right: Any) -> Any:
    """Compare plain values.

    Raises
    ------
    TypeError
        If they hold what is not known.
    """
    if holds_unknown(left) or holds_unknown(right):
        raise TypeError("the values are not known")
    return _COMPARISONS[type(kind)](left, right)


def unary(kind: ast.unaryop, value: Any) -> Any:
    """Apply a unary operator to a plain value."""
    return _UNARY[type(kind)](value)


# Functions and methods ------------------------------------------------------------------------------------------------


def _range(*arguments: int) -> range:
    made = range(*arguments)
    if len(made) > _LONGEST:
        raise TooLargeError
    return made


def _path(*segments: Any) -> Path:
    return Path(*segments)


#: Functions by their full path that are applied to plain values.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        f"builtins.{function.__name__}": function
        for function in (
            *(abs, all, any, bool, dict, divmod, enumerate, float, frozenset, int, len, list, max, min, round),
            *(reversed, set, sorted, str, sum, tuple, zip),
        )
    },
    "builtins.range": _range,
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pathlib.Path": _path,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.sqrt": math.sqrt,
    "math.log": math.log,
    "math.log10": math.log10,
    "math.log2": math.log2,
    **{
        f"{module}.{name}": getattr(helpers, name)
        for name in helpers.__all__
        for module in ("det_native", "det_native.schema.helpers")
    },
}

#: Functions that change nothing of what they are given and whose result nobody needs to know.
ONLY_LOOKING = frozenset(
    {
        *(f"builtins.{name}" for name in ("print", "repr", "type", "id", "isinstance", "hash", "vars", "help", "str")),
        *("pprint.pprint", "pprint.pp", "json.dumps", "json.dump", "yaml.dump", "yaml.safe_dump", "copy.deepcopy"),
        *("IPython.display.display", "builtins.display", "builtins.len", "builtins.sorted", "builtins.dict"),
    }
)

_TEXT = frozenset(
    {
        *("capitalize", "casefold", "count", "endswith", "find", "format", "index", "isdigit", "join", "lower"),
        *("lstrip", "partition", "removeprefix", "removesuffix", "replace", "rpartition", "rsplit", "rstrip", "split"),
        *("splitlines", "startswith", "strip", "title", "upper", "zfill"),
    }
)
_METHODS: dict[type, frozenset[str]] = {
    str: _TEXT,
    dict: frozenset({"copy", "get", "items", "keys", "values"}),
    list: frozenset({"copy", "count", "index"}),
    tuple: frozenset({"count", "index"}),
    set: frozenset({"copy", "union", "intersection", "difference"}),
}
_CHANGING: dict[type, frozenset[str]] = {
    dict: frozenset({"clear", "pop", "popitem", "setdefault", "update"}),
    list: frozenset({"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"}),
    set: frozenset({"add", "clear", "discard", "remove", "update"}),
}
_PATH_METHODS = frozenset({"joinpath", "with_suffix", "with_name", "as_posix"})


def looks(value: Any, method: str) -> bool:
    """Whether a method of a plain value only looks at it, and may be called to read a document."""
    if isinstance(value, Path):
        return method in _PATH_METHODS
    return method in _METHODS.get(type(value), frozenset())


def changes(value: Any, method: str) -> bool:
    """Whether a method changes a plain value in a known way."""
    return method in _CHANGING.get(type(value), frozenset())


def load_file(path: str, opened: Path) -> Any:
    """Return what ``yaml.safe_load`` or ``json.load`` gives for a file or its text.

    Raises
    ------
    OSError, ValueError
        If it cannot be read.
    """
    return load_text(path, opened.read_text(encoding="utf-8-sig"))


def load_text(path: str, text: str) -> Any:
    """Return what a loader, by its full path, gives for a text.

    Raises
    ------
    ValueError
        If it is not YAML or JSON.
    """
    if path.startswith("json."):
        return json.loads(text)
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


LOADERS = frozenset({"yaml.safe_load", "yaml.load", "yaml.full_load", "json.load", "json.loads"})
