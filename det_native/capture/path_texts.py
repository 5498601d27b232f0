"""Strings of a piece of source that may be paths: whole ones, and those that are put together when the code runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from string import Formatter

from det_native.capture.path_flow import Flow, Handed
from det_native.capture.syntax import TREES, nodes_of, once

#: Stands in a text for a part that only the running code knows; no path has it.
HOLE = "\0"

#: What names of a program stand for.
Names = Mapping[str, ast.expr]
_NO_NAMES: Names = {}
_JOINING = frozenset({"os.path.join", "path.join", "join", "Path", "pathlib.Path", "PurePath"})
#: What functions are called that write to a path which they are given, first or after what they write.
_WRITING = re.compile(r"(to_|save|dump|write)\w*")
_PATH_KEYWORDS = frozenset({"buf", "excel_writer", "f", "file", "filename", "filepath", "fname", "path", "path_or_buf"})
_PERCENT = re.compile(r"%(?:%|(?:\(\w+\))?[-#0 +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[diouxXeEfFgGcrsa])")
_LONGEST = 400
_NAMES_A_FILE = re.compile(r"\.[A-Za-z]\w{0,9}$")


def path_literals(tree: ast.Module, flow: Flow | None = None) -> Iterator[str]:
    """Yield the strings of a piece of source that may be paths; parts that are joined count once, joined.

    Paths that the code only writes to, ``open("run.log", "w")``, are none of them; with `flow`, neither is what comes
    to no call.
    """
    for node, text in _literals(tree):
        if flow is None or flow.handed(node):
            yield text


@lru_cache(maxsize=TREES)
def _literals(tree: ast.Module) -> tuple[tuple[ast.expr, str], ...]:
    nodes = list(ast.walk(tree))
    found: list[tuple[ast.expr, str]] = []
    written = (path for path in _written_in(nodes) if joined_text(path) is not None)
    used = {id(part) for path in written for part in ast.walk(path)} | set(map(id, _globs_after_holes(nodes)))
    for node in nodes:
        if not isinstance(node, ast.Call | ast.BinOp) or id(node) in used:
            continue
        joined = joined_text(node)
        if joined is not None:
            used.update(id(part) for part in ast.walk(node))
            found.append((node, joined))
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in used:
            found.append((node, node.value))
    return tuple(found)


def path_patterns(tree: ast.Module, flow: Flow | None = None) -> Iterator[str]:
    """Yield the paths of a piece of source that have parts which only the running code knows, as patterns of a glob.

    ``f"data/part{i}.csv"`` gives ``data/part*.csv``, and so do the other ways to format and to join. Paths that the
    code only writes to, absolute ones, and texts that do not look like paths are none of them; with `flow`, neither is
    what comes to no call.
    """
    for node, pattern in _patterns(tree):
        if flow is None or flow.handed(node) >= Handed.ANYWHERE:
            yield pattern


@lru_cache(maxsize=TREES)
def _patterns(tree: ast.Module) -> tuple[tuple[ast.expr, str], ...]:
    nodes = list(ast.walk(tree))
    found: list[tuple[ast.expr, str]] = []
    used: set[int] = set()
    for path in _written_in(nodes):
        _text(path, used)
    for node in nodes:
        if not isinstance(node, ast.expr) or id(node) in used:
            continue
        text = _text(node, used)
        if text is None or len(text) > _LONGEST:
            continue
        for candidate in [text] if HOLE in text else [_with_fields(text), _with_percents(text)]:
            if candidate is not None and HOLE in candidate and _may_be_path(candidate):
                found.append((node, _as_glob(candidate)))
    return tuple(found)


@once
def changed_folders(source: str) -> Iterator[str]:
    """Yield the folders that a piece of source makes the working directory by ``os.chdir``, in order."""
    calls = [node for node in nodes_of(source) if isinstance(node, ast.Call) and call_name(node) == "chdir"]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        folder = joined_text(call.args[0]) if call.args else None
        if folder is not None:
            yield folder


def _globs_after_holes(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """Yield the ends of formatted strings that would be taken for a glob of their own: ``f"part{i}*.csv"``."""
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield from (part for part in node.values[1:] if isinstance(part, ast.Constant) and "*" in str(part.value))


@once
def written_texts(source: str) -> Iterator[str]:
    """Yield the paths that a piece of source writes to, as far as they are texts."""
    for path in _written_in(nodes_of(source)):
        text = joined_text(path)
        if text is not None:
            yield text


def names_a_file(text: str) -> bool:
    """Whether a text looks like the path of a file, by its ending."""
    return bool(_NAMES_A_FILE.search(text)) and "\n" not in text and len(text) <= _LONGEST


# Texts --------------------------------------------------------------------------------------------------------------


def joined_text(node: ast.expr) -> str | None:
    """Return the text that an expression stands for, its parts joined; None if only the running code knows it."""
    text = _text(node, set())
    return None if text is None or HOLE in text else text


def known_text(node: ast.expr, names: Names) -> str | None:
    """Return the text of an expression, with holes for what only the running code knows; None if it is none.

    Parameters
    ----------
    node : ast.expr
    names : mapping of str to ast.expr
        What names stand for.
    """
    return _text(node, set(), names)


def _text(node: ast.expr, used: set[int], names: Names = _NO_NAMES) -> str | None:
    """Return the text of an expression with holes in it, None if it is none; add what it is made of to `used`."""
    text = None
    if isinstance(node, ast.Constant):
        text = node.value if isinstance(node.value, str) else None
    elif isinstance(node, ast.JoinedStr):
        used.update(id(value.format_spec) for value in node.values if isinstance(value, ast.FormattedValue))
        text = "".join(_text(_formatted(value), used, names) or HOLE for value in node.values)
    elif isinstance(node, ast.BinOp):
        text = _text_of_operation(node, used, names)
    elif isinstance(node, ast.Call):
        text = _text_of_call(node, used, names)
    elif isinstance(node, ast.Name) and node.id in names:
        text = _text(names[node.id], set())
    if text is not None:
        used.add(id(node))
    return text


def _formatted(value: ast.expr) -> ast.expr:
    """Return a name that stands in a formatted string as it is."""
    plain = isinstance(value, ast.FormattedValue) and value.format_spec is None and value.conversion == -1
    return value.value if plain and isinstance(value.value, ast.Name) else value  # type: ignore[attr-defined]


def _text_of_operation(node: ast.BinOp, used: set[int], names: Names) -> str | None:
    left = _text(node.left, used, names)
    if isinstance(node.op, ast.Mod):
        return None if left is None else _with_percents(left)
    if isinstance(node.op, ast.Div):
        # What comes first says where to look; without it the rest says too little.
        return None if left is None else f"{left}/{_known(_text(node.right, used, names))}"
    if isinstance(node.op, ast.Add):
        right = _text(node.right, used, names)
        return None if left is None and right is None else _known(left) + _known(right)
    return None


def _text_of_call(call: ast.Call, used: set[int], names: Names) -> str | None:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "format":
        template = _text(call.func.value, used, names)
        return None if template is None else _with_fields(template)
    if not call.args or call.keywords or ast.unparse(call.func) not in _JOINING:
        return None
    first = _text(call.args[0], used, names)
    if first is None:
        return None
    parts = [first, *(_known(_text(argument, used, names)) for argument in call.args[1:])]
    return "/".join(part for part in parts if part)


def _known(text: str | None) -> str:
    return HOLE if text is None else text


def _with_fields(template: str) -> str | None:
    """Return what ``template.format(...)`` gives, None if it is no template."""
    try:
        fields = list(Formatter().parse(template))
    except ValueError:
        return None
    return "".join(text + ("" if name is None else HOLE) for text, name, _, _ in fields)


def _with_percents(template: str) -> str:
    """Return what ``template % (...)`` gives."""
    return _PERCENT.sub(lambda match: "%" if match[0] == "%%" else HOLE, template)


def _may_be_path(text: str) -> bool:
    """Whether a text with holes looks like the relative path of a file: by its ending, or by a folder with a name."""
    if text[0] in "/~\\" or "\n" in text or "://" in text:
        return False
    if _NAMES_A_FILE.search(text.rpartition("/")[2].rpartition(HOLE)[2]):
        return True
    return "/" in text and any(letter.isalpha() for letter in text)


def _as_glob(text: str) -> str:
    """Write holes as ``*``; what the code itself has of ``*`` and ``?`` may be meant for a glob, brackets are not."""
    return re.sub(rf"[*{HOLE}]*{HOLE}[*{HOLE}]*", "*", text.replace("[", "[[]"))


# Writing ------------------------------------------------------------------------------------------------------------


def _written_in(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.Call):
            yield from _written(node)


def _written(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the expressions of a call that may be paths which it writes to."""
    name = call_name(call)
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    if name == "open":
        own = receiver is not None and _text(receiver, set()) is not None
        named = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
        modes = [*call.args[0 if own else 1 :][:1], *named]
        if any(isinstance(mode, ast.Constant) and set("wax") & set(str(mode.value)) for mode in modes):
            yield from [receiver] if own and receiver is not None else [*call.args[:1], *_named_paths(call)]
    elif name in {"write_text", "write_bytes"} and receiver is not None:
        yield receiver
    elif _WRITING.match(name):
        yield from [*call.args[:2], *_named_paths(call)]


def _named_paths(call: ast.Call) -> list[ast.expr]:
    return [keyword.value for keyword in call.keywords if keyword.arg in _PATH_KEYWORDS]


def call_name(call: ast.Call) -> str:
    """Return the name of the function that is called, without what it belongs to."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
