"""Strings of a piece of source that may be paths: whole ones, and those that are put together when the code runs."""

from __future__ import annotations

import ast
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from string import Formatter
from typing import NamedTuple

from det_native.capture.bindings import bound_by
from det_native.capture.syntax import TREES

#: Stands in a text for a part that only the running code knows; no path has it.
HOLE = "\0"

#: What names of a program stand for.
Names = Mapping[str, str]
_NO_NAMES: Names = {}
_JOINING = frozenset({"os.path.join", "path.join", "join", "Path", "pathlib.Path", "PurePath"})
#: What functions are called that write to a path which they are given, first or after what they write.
_WRITING = re.compile(r"(to_|save|dump|write)\w*")
#: What functions are called that read a path which they are given first.
_READING = re.compile(r"(read|load|open|list)\w*")
_PATH_KEYWORDS = frozenset({"buf", "excel_writer", "f", "file", "filename", "filepath", "fname", "path", "path_or_buf"})
_PERCENT = re.compile(r"%(?:%|(?:\(\w+\))?[-#0 +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[diouxXeEfFgGcrsa])")
LONGEST = 400
_NAMES_A_FILE = re.compile(r"\.[A-Za-z]\w{0,9}$")


class Role(Enum):
    """What a piece of source does with a text."""

    NAMED = "named"
    BOUND = "bound"  # to a name that stands for it wherever it is used
    READ = "read"  # with no remedy at hand if that fails
    WRITTEN = "written"
    ENTERED = "entered"  # it becomes the working directory
    MADE = "made"  # a folder, which must not be there


#: What needs nothing to be there.
RESULTS = frozenset({Role.WRITTEN, Role.MADE})


class PathText(NamedTuple):
    """An expression that is a text, as it runs: what only the running code knows is a hole."""

    node: ast.expr
    text: str
    role: Role

    @property
    def literals(self) -> list[str]:
        """The text if it is known and not only written to; of one that goes on in a folder, the folder."""
        prefix = self.text.partition(HOLE)[0]
        is_whole = prefix == self.text or prefix.endswith("/")
        return [prefix] if is_whole and self.role not in RESULTS and not isinstance(self.node, ast.Name) else []

    @property
    def patterns(self) -> list[str]:
        """The patterns of a glob for a relative path with holes, ``data/part*.csv`` of ``f"data/part{i}.csv"``."""
        if self.role in RESULTS or isinstance(self.node, ast.Name) or len(self.text) > LONGEST:
            return []
        texts = [self.text] if HOLE in self.text else [_with_fields(self.text), _with_percents(self.text)]
        return [_as_glob(text) for text in texts if text is not None and HOLE in text and _may_be_path(text)]


def path_texts(tree: ast.Module, names: Names = _NO_NAMES) -> tuple[PathText, ...]:
    """Return the outermost expressions of a piece of source that are texts, parts that are joined as one."""
    return _texts(tree, tuple((name, names[name]) for name in sorted(_loaded(tree) & names.keys())))


@lru_cache(maxsize=TREES)
def _loaded(tree: ast.Module) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


@lru_cache(maxsize=TREES)
def _texts(tree: ast.Module, known: tuple[tuple[str, str], ...]) -> tuple[PathText, ...]:
    names = dict(known)
    roles = _roles(tree, names)
    used: set[int] = set()
    found: list[PathText] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or id(node) in used or isinstance(getattr(node, "ctx", None), ast.Store):
            continue
        text = _text(node, used, names)
        if text:
            found.append(PathText(node, text, roles.get(id(node), Role.NAMED)))
    return tuple(found)


def constant_names(trees: Sequence[ast.Module]) -> dict[str, str]:
    """Return the names that pieces of a program bind once, to an expression that is a text, with that text."""
    bindings = [_bindings(tree) for tree in trees]
    bound = Counter(name for names, _ in bindings for name in names)
    found: dict[str, str] = {}
    for _, assigned in bindings:
        for name, value in assigned:
            text = _text(value, set(), found)
            if text is not None and bound[name] == 1:
                found[name] = text
    return found


@lru_cache(maxsize=TREES)
def _bindings(tree: ast.Module) -> tuple[tuple[str, ...], tuple[tuple[str, ast.expr], ...]]:
    """Return the names that are bound anywhere, and what its own lines assign to single ones."""
    bound = tuple(name for node in ast.walk(tree) for name in bound_by(node))
    pairs = ((line.targets, line.value) for line in tree.body if isinstance(line, ast.Assign))
    return bound, tuple((targets[0].id, value) for targets, value in pairs if isinstance(targets[0], ast.Name))


def only_written(texts: Iterable[PathText]) -> set[str]:
    """Return the texts of a program that it only writes to, or makes, by whatever names it does."""
    roles: dict[str, set[Role]] = {}
    for one in texts:
        if one.role is not Role.BOUND:
            roles.setdefault(one.text, set()).add(one.role)
    return {text for text, uses in roles.items() if uses <= RESULTS}


def names_a_file(text: str) -> bool:
    """Whether a text looks like the path of a file, by its ending."""
    return bool(_NAMES_A_FILE.search(text)) and "\n" not in text and len(text) <= LONGEST


# Texts --------------------------------------------------------------------------------------------------------------


def known_text(node: ast.AST, names: Names = _NO_NAMES) -> str | None:
    """Return the text of an expression, with holes for what only the running code knows; None if it is none."""
    return _text(node, set(), names) if isinstance(node, ast.expr) else None


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
        text = names[node.id]
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
        return None if left is None else posixpath.join(left, _known(_text(node.right, used, names)))
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
    return posixpath.join(*parts)


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


# What is done with them -----------------------------------------------------------------------------------------------


def _roles(tree: ast.Module, names: Names) -> dict[int, Role]:
    """Return what is done with the expressions of a tree, by their identities."""
    nodes = list(ast.walk(tree))
    bodies = [line for node in nodes if isinstance(node, ast.Try) and node.handlers for line in node.body]
    tried = {id(part) for line in bodies for part in ast.walk(line)}
    own_lines = [line for line in tree.body if isinstance(line, ast.Expr | ast.Assign)]
    always = {id(part) for line in own_lines for part in ast.walk(line)}
    roles = {id(value): Role.BOUND for name, value in _bindings(tree)[1] if name in names}
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        role, paths = _use(call)
        if role is Role.MADE and (id(call) not in always or any(one.arg == "exist_ok" for one in call.keywords)):
            role = Role.WRITTEN  # it need not be made
        if role is not Role.READ or id(call) not in tried:
            roles |= {id(path): role for path in paths}
    return roles


def _use(call: ast.Call) -> tuple[Role, list[ast.expr]]:
    """Return what a call does with paths, and the expressions that may be these."""
    name = call_name(call)
    receiver = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    own = [one for one in receiver if _text(one, set()) is not None]  # Path("a.txt").read_text()
    named = [keyword.value for keyword in call.keywords if keyword.arg in _PATH_KEYWORDS]
    if name in {"mkdir", "makedirs"}:
        return Role.MADE, call.args[:1] or receiver
    if name == "chdir":
        return Role.ENTERED, call.args[:1]
    if name in {"write_text", "write_bytes"}:
        return Role.WRITTEN, receiver
    if name == "open" and _writes(call, call.args[0 if own else 1 :][:1]):
        return Role.WRITTEN, own or [*call.args[:1], *named]
    if _WRITING.match(name):
        return Role.WRITTEN, [*call.args[:2], *named]
    return Role.READ, (own or call.args[:1]) if _READING.match(name) else []


def _writes(call: ast.Call, modes: Sequence[ast.expr]) -> bool:
    """Whether a call of ``open()`` opens a file to write it."""
    modes = [*modes, *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    return any(isinstance(mode, ast.Constant) and set("wax") & set(str(mode.value)) for mode in modes)


def call_name(call: ast.Call) -> str:
    """Return the name of the function that is called, without what it belongs to."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
