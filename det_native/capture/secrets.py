"""Strings that look like secrets: by the name they have, or by their form."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from det_native.capture.syntax import nodes_of, once
from det_native.capture.tracebacks import COLOURS

_NAME = re.compile(r"(?i)(secret|token|passw|passphrase|api_?key|access_?key|private_?key|credential)")
#: Names of what may be a phrase: the word comes last, as in no ``password_help``.
_PHRASE_NAME = re.compile(r"(?i)(passw(or)?d|passphrase|secret)s?[\d_]*$")
_MOST_WORDS = 6  # of a phrase; a text with more is prose
#: Words that make a name with ``token`` one of text processing, not of authentication.
_TEXT_WORDS = frozenset(
    [
        "tokenizer",
        "tokenize",
        "tokenized",
        "tokens",
        "pad",
        "eos",
        "bos",
        "unk",
        "mask",
        "sep",
        "cls",
        "start",
        "end",
        "stop",
        "special",
        "id",
        "ids",
        "type",
        "index",
        "idx",
        "count",
        "max",
        "min",
        "num",
        "vocab",
        "size",
        "length",
        "len",
        "word",
        "pattern",
        "path",
        "file",
        "dir",
        "url",
        "name",
        "column",
        "col",
    ]
)
_PATTERNS = [
    re.compile(pattern)
    for pattern in (
        r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{16}\b",
        r"\bgh[pousr]_[A-Za-z0-9]{20,}\b",
        r"\bgithub_pat_[A-Za-z0-9_]{20,}\b",
        r"\bglpat-[A-Za-z0-9_-]{16,}\b",
        r"\bsk-[A-Za-z0-9_-]{16,}\b",
        r"\bxox[abprs]-[A-Za-z0-9-]{10,}\b",
        r"\bhf_[A-Za-z0-9]{20,}\b",
        r"\bAIza[A-Za-z0-9_-]{30,}\b",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
        # Only where a run of such characters begins: to look through it from each of its places takes hours.
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}",
        r"(?<![A-Za-z0-9+.-])[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s:@]{3,}@",
    )
]
#: Files that show which variables there are, without their values.
_EXAMPLES = frozenset({"example", "sample", "template", "dist"})
_KEY_FILE = re.compile(
    r"""(?ix)
    .+\.(pem|key|p12|pfx|p8|ppk|jks|keystore|kdbx|env)
    | id_(rsa|dsa|ecdsa|ed25519)(_sk)?
    | (.+[-_.])?(credentials?|client[-_]?secrets?|service[-_]?account([-_]?key)?)([-_.].+)?
      \.(json|ya?ml|toml|ini|csv|txt)
    | \.?credentials | secrets?\.(json|ya?ml|toml|ini|txt)
    | [._]netrc | \.pgpass | \.git-credentials | \.htpasswd | \.pypirc | \.dockercfg | kaggle\.json | kubeconfig
    """
)
# A name and its text as a dictionary, a keyword or an assignment prints it, with or without marks around the name.
_NAMED_TEXT = re.compile(r"""\b(\w+)['"]?\]?\s{0,3}[:=]\s{0,3}[bBrRuU]{0,2}(['"])([^'"\n]{1,400})\2""")
_PLACEHOLDER = re.compile(r"^(|\*+|x+|<.*>|\[.*\]|\{.*\}|\$.*|\.{3}|your[-_ ].*|changeme|none|null|true|false)$", re.I)


@dataclass(frozen=True)
class Secret:
    """Where a string stands that looks like a secret; never what it says."""

    line: int
    name: str
    kind: str


def name_is_secret(name: str) -> bool:
    """Whether a variable, key or argument of this name is likely to hold a secret."""
    match = _NAME.search(name)
    if match is None:
        return False
    if match[1].lower() != "token":
        return True
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}
    return not words & _TEXT_WORDS


def is_environment_file(name: str) -> bool:
    """Whether a file of this name (without its folder) is one of variables with values: ``.env``, ``.env.local``."""
    return name == ".env" or (name.startswith(".env.") and name.rpartition(".")[2].lower() not in _EXAMPLES)


def is_key_file(name: str) -> bool:
    """Whether a file of this name (without its folder) is likely to hold a key or password."""
    return _KEY_FILE.fullmatch(name) is not None


def looks_secret(text: str, name: str = "") -> bool:
    """Whether a string, known by `name`, looks like a secret."""
    if any(pattern.search(text) for pattern in _PATTERNS):
        return True
    return bool(name) and name_is_secret(name) and not _PLACEHOLDER.match(text.strip()) and not _is_prose(text, name)


def shows_secret(text: str, values: Collection[str] = ()) -> bool:
    """Whether a text that was printed has what looks like a secret, alone or beside its name, or one of `values`."""
    text = COLOURS.sub("", text)
    return (
        looks_secret(text)
        or any(looks_secret(value, name) for name, _, value in _NAMED_TEXT.findall(text))
        or any(value in text for value in values)
    )


def text_of_bytes(content: bytes | bytearray) -> str:
    """Return bytes as text in which a secret has the form that it has elsewhere, whatever stands around it."""
    return content.decode("latin-1")


def _is_prose(text: str, name: str) -> bool:
    """Whether a text is none that opens something: of passwords a short phrase may, unless it speaks of itself."""
    word = _PHRASE_NAME.search(name)
    may_be_phrase = word is not None and word[1].lower() not in text.lower()
    return len(text.split()) > (_MOST_WORDS if may_be_phrase else 2)


@once
def find_secrets(source: str) -> Iterator[Secret]:
    """Yield where literal secrets stand in Python source."""
    try:
        nodes = nodes_of(source)
    except SyntaxError:
        return
    found: set[tuple[int, int]] = set()
    for node in nodes:
        for name, value in _named_values(node):
            text = _text_of(value)
            if text is not None and looks_secret(text, name):
                found.add((value.lineno, value.col_offset))
                yield Secret(value.lineno, name, "by its form" if looks_secret(text) else "by its name")
    for node in nodes:
        if not isinstance(node, ast.expr) or (node.lineno, node.col_offset) in found:
            continue
        text = _text_of(node)
        if text is not None and looks_secret(text):
            yield Secret(node.lineno, "", "by its form")


@once
def environment_reads(source: str) -> Iterable[str]:
    """Return the names of environment variables that look like secrets and that the source reads."""
    names = []
    for node in nodes_of(source):
        key: ast.expr | None
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"os.getenv", "os.environ.get", "getenv"}:
            key = node.args[0] if node.args else None
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            key = node.slice if isinstance(node.ctx, ast.Load) else None
        else:
            continue
        name = _text_of(key) if key is not None else None
        if name is not None and name_is_secret(name):
            names.append(name)
    return dict.fromkeys(names)


def _text_of(node: ast.expr) -> str | None:
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bytes):
        return text_of_bytes(value)
    return value if isinstance(value, str) else None


def _named_values(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield _name_of(target), node.value
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from ((_name_of(t), v) for t, v in zip(target.elts, node.value.elts, strict=False))
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield _name_of(node.target), node.value
    elif isinstance(node, ast.keyword):
        yield node.arg or "", node.value
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _defaults(node.args)


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    for argument, default in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        yield argument.arg, default
    for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if value is not None:
            yield argument.arg, value


def _name_of(target: ast.expr) -> str:
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute):
        return target.attr
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return str(target.slice.value)
    return ""
