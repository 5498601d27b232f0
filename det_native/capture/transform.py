"""From the raw text of a cell to Python that compiles, with every line where the notebook has it."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from textwrap import dedent

#: Why source is not Python that can be read, where its nesting is the reason.
TOO_DEEP = "is nested too deeply to be read"
#: Cell magics whose body is Python that runs once, in the user's namespace.
PYTHON_CELL_MAGICS = frozenset({"time", "capture", "prun", "memit", "mprun", "snakeviz", "scalene", "wandb"})
#: Magics whose body is Python that runs many times, with names of its own.
REPEATING_MAGICS = frozenset({"timeit"})
#: Cell magics whose body is for a shell.
SHELL_MAGICS = frozenset({"%%bash", "%%sh", "%%script", "%%cmd", "%%system", "%%!", "%%sx"})
#: Line magics that run the rest of their line as Python.
STATEMENT_MAGICS = frozenset({"time"})
#: Line magics that run code, or bind names, out of sight.
HIDDEN_MAGICS = frozenset(
    {"run", "store", "pylab", "load", "loadpy", "R", "macro", "rerun", "recall", "px", "sql", "bigquery"}
)

_MAGIC = re.compile(r"^(\s*)%(?!%)\s*([A-Za-z_][\w.]*)[ \t]?(.*)$", re.S)
_SHELL = re.compile(r"^(\s*)(!{1,2})(.*)$", re.S)
_HELP = re.compile(r"^(\s*)(\?{1,2}\s*%{0,2}[\w.*]+|%{0,2}[\w.*]+(\[.*\])?(\?{1,2}))\s*;?\s*(#.*)?$")
_ASSIGNED = re.compile(r"^(\s*)([\w\s,.*()\[\]'\"]+?)\s*(?<![=!<>+\-*/%&|^@:])=\s*(!|%(?=[A-Za-z]))(.*)$", re.S)
_CELL_MAGIC = re.compile(r"^%%([A-Za-z_!][\w.]*|!)[ \t]*(.*)$")
_PROMPT = re.compile(r"^\s*(>>>|\.\.\.)( |$)")
_OUTPUT_NAME = re.compile(r"(?:--out|--err|--proc|--output|-o)[ =]+([A-Za-z_]\w*)|\b([A-Za-z_]\w*)\s*<<")
_INSTALL = re.compile(
    r"^(?:\{?sys\.executable\}?\s+-m\s+|\S*python[\d.]*\s+-m\s+)?(?:uv\s+)?pip[\d.]*\s+install\s+(.*)$", re.S
)


@dataclass(frozen=True)
class Transformed:
    """A cell as Python.

    Attributes
    ----------
    source : str
        Python with as many lines as the cell; magics, shell and help lines are ``pass`` or blank.
    language : str or None
        The cell magic (``%%bash``) if the cell is not Python; `source` is then blank.
    requirements : tuple of str
        What ``%pip install`` and the like installed.
    shell : dict of str to str
        Names bound by ``x = !command``, ``x = %magic`` or a cell magic's output option, with the line that does it.
    hidden : tuple of str
        Magics among those that run code or bind names out of sight, ``%run`` for example.
    kernel_lines : tuple of int
        Line of the cell for each line that IPython compiled: it drops leading blank lines and joins continued magics.
    magic_columns : dict of int to int
        For lines like ``%time model.fit(x)``: the column at which the statement starts in `source`.
    repeated : str
        Python that ran many times (``%timeit``) and is left out.
    clears : bool
        The cell removes all names (``%reset``).
    error : str
        Why the result does not parse, empty if it does.
    """

    source: str
    language: str | None = None
    requirements: tuple[str, ...] = ()
    shell: dict[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    kernel_lines: tuple[int, ...] = ()
    magic_columns: dict[int, int] = field(default_factory=dict)
    repeated: str = ""
    clears: bool = False
    error: str = ""


@lru_cache(maxsize=4096)
def transform(raw: str) -> Transformed:
    """Make Python of the raw text of a cell.

    Parameters
    ----------
    raw : str
        The text as the notebook has it, with magics, shell lines and help lines.
    """
    lines = raw.split("\n")
    first = next((position for position, line in enumerate(lines) if line.strip()), 0)
    match = _CELL_MAGIC.match(lines[first])
    if match is None or re.match(r"^%%\w+\?", lines[first]):
        return _Lines(_unindented(lines), first).result()
    return _cell_magic(lines, first, match[1], match[2].strip())


def _cell_magic(lines: list[str], first: int, magic: str, arguments: str) -> Transformed:
    blank = "\n" * (len(lines) - 1)
    body = lines[first + 1 :]
    text = f"%%{magic}"
    if magic in REPEATING_MAGICS:
        return Transformed(blank, repeated="\n".join(body), kernel_lines=(first + 1,))
    if magic in PYTHON_CELL_MAGICS:
        start = next((position for position, line in enumerate(body) if line.strip()), 0)
        inner = _Lines([*([""] * (first + 1)), *_unindented(body)], first + 1 + start)
        if magic == "capture" and arguments.split("-")[0].strip():
            inner.shell[arguments.split()[0]] = f"%%capture {arguments}"
        return inner.result()
    names = {name: f"{text} {arguments}" for pair in _OUTPUT_NAME.findall(arguments) for name in pair if name}
    if magic == "bigquery" and arguments[:1].isidentifier():
        names[arguments.split()[0]] = f"{text} {arguments}"
    if magic in {"writefile", "file"} and _names_a_file(arguments):
        return Transformed(blank, kernel_lines=(first + 1,))
    installs = [_INSTALL.match(line.strip()) for line in body] if text in SHELL_MAGICS else []
    requirements = tuple(one for match in installs if match is not None for one in _requirements(match[1]))
    return Transformed(blank, text, requirements, shell=names, kernel_lines=(first + 1,))


def _names_a_file(arguments: str) -> bool:
    """Whether it is known which file is written: its path is not put together."""
    paths = [word for word in arguments.split() if word not in ("-a", "--append")]
    return len(paths) == 1 and "{" not in arguments and "$" not in arguments


def _unindented(lines: list[str]) -> list[str]:
    """Undo what pasting leaves: prompts, and an indentation of the whole cell."""
    filled = [line for line in lines if line.strip()]
    if filled and filled[0].lstrip().startswith(">>>"):
        return [_PROMPT.sub("", line, count=1) for line in lines]
    if filled and filled[0][:1] in " \t":
        return dedent("\n".join(lines)).split("\n")
    return lines


class _Lines:
    """Goes through the lines of a cell and replaces what is not Python."""

    def __init__(self, lines: list[str], first: int) -> None:
        self.lines = list(lines)
        self.first = first
        self.kernel_lines = list(range(first + 1, len(lines) + 1))
        self.shell: dict[str, str] = {}
        self.requirements: list[str] = []
        self.hidden: list[str] = []
        self.columns: dict[int, int] = {}
        self.repeated: list[str] = []
        self.clears = False

    def result(self) -> Transformed:
        tree = _parsed("\n".join(self.lines))
        if isinstance(tree, str):
            for position in _statement_starts(self.lines):
                self._line(position)
            tree = _parsed("\n".join(self.lines))
        if not isinstance(tree, str) and self._drop_shell_calls(tree):
            tree = _parsed("\n".join(self.lines))
        source = "\n".join(self.lines)
        failed = isinstance(tree, str)
        return Transformed(
            source,
            requirements=tuple(self.requirements),
            shell=self.shell,
            hidden=tuple(self.hidden),
            kernel_lines=tuple(self.kernel_lines),
            magic_columns=self.columns,
            repeated="\n".join(self.repeated),
            clears=self.clears,
            error=tree if failed and isinstance(tree, str) else "",
        )

    def _line(self, position: int) -> None:
        end = position
        while self.lines[end].endswith("\\") and end + 1 < len(self.lines):
            end += 1
        text = " ".join(line.rstrip("\\").strip() for line in self.lines[position : end + 1])
        line = self.lines[position]
        if _HELP.match(line) and not _is_python(line):
            self._blank(position, position)
        elif match := _SHELL.match(line):
            self._shell_line(text.lstrip("!"))
            self._blank(position, end)
        elif match := _MAGIC.match(line):
            self._magic_line(position, end, match[2], text)
        elif (match := _ASSIGNED.match(line)) and not _is_python(line):
            self._assigned(position, end, match, text)

    def _blank(self, position: int, end: int, replacement: str = "pass") -> None:
        indentation = self.lines[position][: len(self.lines[position]) - len(self.lines[position].lstrip())]
        self.lines[position] = indentation + replacement
        for other in range(position + 1, end + 1):
            self.lines[other] = ""
            self.kernel_lines.remove(other + 1)

    def _shell_line(self, command: str) -> None:
        match = _INSTALL.match(command.strip())
        if match is not None:
            self.requirements.extend(_requirements(match[1]))

    def _magic_line(self, position: int, end: int, magic: str, text: str) -> None:
        arguments = text.lstrip("% \t")[len(magic) :].strip()
        if magic in STATEMENT_MAGICS and _is_python(_statement_of(arguments)):
            indentation = len(self.lines[position]) - len(self.lines[position].lstrip())
            self._blank(position, end, _statement_of(arguments))
            self.columns[position + 1] = indentation
            return
        if magic in {"env", "set_env"} and (assignment := _environment(arguments)) is not None:
            self._blank(position, end, assignment)
            return
        if magic in {"pip", "conda", "mamba", "uv"}:
            self._shell_line(f"pip {arguments.removeprefix('pip ')}")
        if magic in REPEATING_MAGICS:
            self.repeated.append(_statement_of(arguments))
        if magic in HIDDEN_MAGICS:
            self.hidden.append(text.strip())
        if magic in {"reset"}:
            self.clears = True
        self._blank(position, end)

    def _assigned(self, position: int, end: int, match: re.Match[str], text: str) -> None:
        words = match[4].split(None, 1)
        if match[3] == "%" and words[:1] == ["time"] and len(words) > 1 and _is_python(words[1]):
            target = f"{match[2].strip()} = "
            self._blank(position, end, target + _statement_of(text.split("%time", 1)[1]))
            self.columns[position + 1] = len(match[1]) + len(target)
            return
        for name in re.findall(r"[A-Za-z_]\w*", match[2]):
            self.shell[name] = text.strip()
        self._blank(position, end)

    def _drop_shell_calls(self, tree: ast.Module) -> bool:
        """Blank statements like ``get_ipython().run_line_magic(...)``, which exported notebooks have."""
        dropped = False
        for node in ast.walk(tree):
            if not isinstance(node, ast.Expr) or not _is_shell_call(node.value):
                continue
            start, end = node.lineno - 1, (node.end_lineno or node.lineno) - 1
            texts = [value.value for value in ast.walk(node) if isinstance(value, ast.Constant)]
            for text in texts:
                if isinstance(text, str):
                    self._shell_line(text if "install" in text and text.startswith("pip") else f"pip {text}")
            if self.lines[start].strip().startswith("get_ipython"):
                self.lines[start] = " " * node.col_offset + "pass"
                for other in range(start + 1, end + 1):
                    self.lines[other] = ""
                dropped = True
        return dropped


def _parsed(source: str) -> ast.Module | str:
    try:
        return ast.parse(source)
    except SyntaxError as error:
        # Its own text names a file too, which is none of the user's.
        return f"{error.msg}, line {error.lineno}" if error.lineno is not None else error.msg
    except ValueError as error:
        return str(error)
    except (RecursionError, MemoryError):  # nested deeper than the parser can follow
        return TOO_DEEP


@lru_cache(maxsize=1024)
def _is_python(line: str) -> bool:
    return bool(line.strip()) and not isinstance(_parsed(line.strip()), str)


def _statement_of(arguments: str) -> str:
    """Drop the options of ``%time`` and ``%timeit``."""
    words = arguments.strip()
    while match := re.match(r"^(-{1,2}(?:no-raise-error|[nr]\s*\d+|[tcpqo]+)|-o)\s+", words):
        words = words[match.end() :]
    return words


def _is_shell_call(node: ast.expr) -> bool:
    while isinstance(node, ast.Call | ast.Attribute):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id == "get_ipython"
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def _environment(arguments: str) -> str | None:
    """``%env NAME=value`` as Python, None if it only shows or is computed by the shell."""
    match = re.match(r"^([A-Za-z_]\w*)(?:\s*=\s*|\s+)(.+)$", arguments)
    if match is None or "{" in match[2] or "$" in match[2]:
        return None
    return f"__import__('os').environ[{match[1]!r}] = {match[2].strip()!r}"


def _requirements(arguments: str) -> Iterator[str]:
    try:
        words = shlex.split(arguments, comments=True)
    except ValueError:
        words = arguments.split()
    with_value = {
        "-i",
        "--index-url",
        "--extra-index-url",
        "-f",
        "--find-links",
        "-c",
        "--constraint",
        "-t",
        "--target",
    }
    skip = False
    for position, word in enumerate(words):
        if skip:
            skip = False
        elif word in {"-r", "--requirement", "-e", "--editable"}:
            skip = True
            if position + 1 < len(words):
                yield f"{word} {words[position + 1]}"
        elif word in with_value:
            skip = True
        elif word in {"&&", "||", ";", "|", ">", ">>", "2>&1"}:
            return
        elif not word.startswith("-") and not word.startswith(("{", "$")):
            yield word


def _statement_starts(lines: list[str]) -> Iterator[int]:
    """Positions of the lines on which a statement may start: not inside brackets, strings or a continued line."""
    quote, depth, continued = "", 0, False
    for position, line in enumerate(lines):
        if not quote and depth == 0 and not continued:
            yield position
            line = lines[position]
            if line.lstrip().startswith("pass") and line.strip() == "pass":
                continue
        quote, depth = _scan(line, quote, depth)
        continued = not quote and line.endswith("\\")


_TOKEN = re.compile(r"\\.|\"\"\"|'''|[\"'#()\[\]{}]", re.S)


def _scan(line: str, quote: str, depth: int) -> tuple[str, int]:
    """Return the open quote (``\"\"\"`` or ``'''``) and the depth of brackets after a line."""
    for match in _TOKEN.finditer(line):
        token = match[0]
        if quote:
            if token == quote:
                quote = ""
        elif token == "#":
            return "", depth
        elif token[0] in "\"'":
            quote = token
        elif token in "([{":
            depth += 1
        elif token in ")]}":
            depth = max(0, depth - 1)
    return (quote if len(quote) == 3 else ""), depth
