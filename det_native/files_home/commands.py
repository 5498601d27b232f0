"""Paths among the words of lines that are no Python: ``!head -3 log.csv``, ``%cat {path}``, a cell for a shell."""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from det_native.capture.path_texts import HOLE
from det_native.capture.transform import SHELL_MAGICS, Transformed

#: What IPython and a shell put a value in for.
_FIELDS = re.compile(r"\{([^{}]+)\}|\$\{?([A-Za-z_]\w*)\}?")
_BEGIN = re.compile(r"^\s*(?:[^=!%]+=\s*)?[!%]+\s*")
_OPERATORS = frozenset("();<>|&")
#: Of a shell: it makes a folder, and reads nothing.
_MAKES = frozenset({"mkdir"})


def command_lines(raw: str, transformed: Transformed, after: int = 0) -> list[str]:
    """Return the lines of a cell that are no Python, without the ``!`` or ``%``.

    Parameters
    ----------
    raw : str
        The cell.
    transformed : Transformed
        The same as Python.
    after : int
        The line behind which they stand.
    """
    if transformed.language in SHELL_MAGICS:
        return raw.strip().split("\n")[1:]
    return [command for line, text in transformed.left_out if line > after for command in _commands(text)]


def paths_of_command(command: str, lookup: Callable[[str], Any]) -> Iterator[str]:
    """Yield the words of a command that may be paths, with holes for what only the notebook or the shell knows.

    Parameters
    ----------
    command : str
    lookup : callable
        Gives the value of a name; None of what is not there.
    """
    for words in _pieces(_FIELDS.sub(lambda match: _value(match[1] or match[2], lookup), command)):
        if words[0] in _MAKES:
            continue
        for word in words[1:]:
            if not word.startswith("-"):
                yield word
            elif value := word.partition("=")[2]:
                yield value


def _commands(text: str) -> Iterable[str]:
    if not text.startswith("get_ipython"):
        return [_BEGIN.sub("", text, count=1)] if _BEGIN.match(text) else []
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return []
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [" ".join(texts)]


def _pieces(command: str) -> Iterator[list[str]]:
    """Yield the words of each command of a line."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, "#"
    words: list[str] = []
    try:
        for word in lexer:
            if set(word) <= _OPERATORS and word[0] not in "<>":
                yield from [words] * bool(words)
                words = []
            elif not set(word) <= _OPERATORS:
                words.append(word)
    except ValueError:  # a quotation without an end: what was read so far
        pass
    yield from [words] * bool(words)


def _value(name: str, lookup: Callable[[str], Any]) -> str:
    value = lookup(name.strip()) if name.strip().isidentifier() else None
    return os.fspath(value) if isinstance(value, str | os.PathLike) else HOLE
