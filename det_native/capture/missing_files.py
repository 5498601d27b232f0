"""Data files that a program reads by a name, and that are not there: what makes a file says so by more than reading."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from det_native.capture.modules import is_installed
from det_native.capture.path_texts import Names, call_name, joined_text, names_a_file, written_texts
from det_native.capture.program_paths import absolute_paths, constant_names
from det_native.capture.syntax import nodes_of, once, tree_of

#: What functions are called that read a path which they are given first.
_READING = re.compile(r"(read|load|open|list)\w*")
_LONGEST = 400
# A text that begins as an absolute path or a URL does.
_BEGINS = re.compile(r"""["'](?:~?/|https?://)""")
#: What every machine has of its own, and temporary files.
OF_THE_SYSTEM = ("/dev", "/proc", "/sys", "/tmp", "/var/tmp", "/etc")
_OF_PACKAGES = ("/usr", "/opt", "/bin", "/lib", "/Library", "/System")
#: What the kernel has of its own.
OF_THE_KERNEL = ("/dev/", "/proc/", "/sys/")
#: Calls of a program after which files may be there whose names stand nowhere else.
_MAKES_FILES = re.compile(r"\b(extract|extractall|unpack_archive|get_file|urlretrieve|download\w*|load_dataset)\b")


def is_of_the_system(path: Path) -> bool:
    """Whether a file is one of the machine, of Python or a package, or hidden, as caches are: nobody has to be told."""
    own = (*OF_THE_SYSTEM, *_OF_PACKAGES, sys.prefix, sys.base_prefix)
    hidden = any(part.startswith(".") for part in path.parts)
    return hidden or is_installed(path, Path("/")) or any(path.is_relative_to(folder) for folder in own)


def files_only_read(sources: Sequence[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """Return the files that a program reads and that nothing in it could have made: path, label, and line.

    A name that stands anywhere else too (what is written, asked for by ``exists()``, given to a command) is none of
    them, and neither is one whose reading is tried with a remedy at hand.

    Parameters
    ----------
    sources : sequence of (source, label)
        Cells and modules of the program.
    """
    if any(_MAKES_FILES.search(source) for source, _ in sources):
        return []
    reads = [(text, label, line) for source, label in sources for text, line in _reads(source, _is_relative_file)]
    written = {text for source, _ in sources for text in written_texts(source)}
    found: dict[str, tuple[str, str, int]] = {}
    for text, label, line in reads:
        name = text.rpartition("/")[2]
        mentioned = sum(source.count(name) for source, _ in sources)
        if text not in written and mentioned == sum(other.endswith(name) for other, _, _ in reads):
            found.setdefault(text, (text, label, line))
    return list(found.values())


def paths_elsewhere(sources: Sequence[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """Return the absolute paths that a program names and does not only write to: path, label, and first line.

    Parameters
    ----------
    sources : sequence of (source, label)
        Cells and modules of the program.
    """
    written = {text for source, _ in sources for text in written_texts(source)}
    found: dict[str, tuple[str, str, int]] = {}
    for source, label, names in _parsed(sources):
        for text, line in sorted(absolute_paths(tree_of(source), names), key=lambda one: one[1]):
            if text not in written and not text.startswith(OF_THE_KERNEL):
                found.setdefault(text, (text, label, line))
    return list(found.values())


def _parsed(sources: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str, Names]]:
    """Yield the pieces of a program that may name absolute paths, with what names stand for in them.

    Cells share their names, a module has its own.
    """
    likely = any(_BEGINS.search(source) for source, label in sources if not _is_module(label))
    taken = [one for one in sources if (_BEGINS.search(one[0]) if _is_module(one[1]) else likely)]
    shared = constant_names([tree_of(source) for source, label in taken if not _is_module(label)])
    for source, label in taken:
        yield source, label, constant_names([tree_of(source)]) if _is_module(label) else shared


def _is_module(label: str) -> bool:
    return label.endswith(".py")


def reads_elsewhere(sources: Sequence[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """Return the absolute paths and URLs that a program only reads: path, label, and line.

    Where it runs has them, or not; what lies here under the name says nothing of that. One that is written, made or
    asked for elsewhere in the program is none of them.

    Parameters
    ----------
    sources : sequence of (source, label)
        Cells and modules of the program.
    """
    reads = [
        (text, label, line)
        for source, label in sources
        if _BEGINS.search(source)
        for text, line in _reads(source, _is_elsewhere)
    ]
    written = {text for source, _ in sources for text in written_texts(source)}
    by_name = _read_by_name(sources)
    found: dict[str, tuple[str, str, int]] = {}
    for text, label, line in [*reads, *by_name]:
        mentioned = sum(source.count(text) for source, _ in sources)
        if text not in written and mentioned == sum(other == text for other, _, _ in [*reads, *by_name]):
            found.setdefault(text, (text, label, line))
    return list(found.values())


def _read_by_name(sources: Sequence[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """Return what is read by a name that is used for nothing else, ``DATA = "/data/a.csv"``: once for each name."""
    if any(_MAKES_FILES.search(source) for source, _ in sources):
        return []
    pieces = list(_parsed(sources))
    nodes = [node for source, _, _ in pieces for node in nodes_of(source)]
    loads = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    reads: dict[str, list[tuple[str, str, int]]] = {}
    for source, label, names in pieces:
        for path, line in _read_paths(source):
            text = joined_text(names[path.id]) if isinstance(path, ast.Name) and path.id in names else None
            if isinstance(path, ast.Name) and text is not None and _is_elsewhere(text):
                reads.setdefault(path.id, []).append((text, label, line))
    return [found[0] for name, found in reads.items() if loads[name] == len(found)]


def _is_elsewhere(text: str) -> bool:
    if len(text) > _LONGEST or any(mark in text for mark in "*?\n{}") or text.startswith(OF_THE_SYSTEM):
        return False
    return text.startswith(("/", "~/", "http://", "https://"))


def _is_relative_file(text: str) -> bool:
    relative = "://" not in text and not text.startswith(("/", "~/"))
    return relative and names_a_file(text) and not set("*? ") & set(text)


def _reads(source: str, wanted: Callable[[str], bool]) -> Iterator[tuple[str, int]]:
    for path, line in _read_paths(source):
        text = joined_text(path)
        if text is not None and wanted(text):
            yield text, line


@once
def _read_paths(source: str) -> Iterator[tuple[ast.expr, int]]:
    """Yield the expressions for paths that calls read, but for those that are tried with a remedy at hand."""
    nodes = nodes_of(source)
    tried = {
        id(part)
        for node in nodes
        if isinstance(node, ast.Try) and node.handlers
        for statement in node.body
        for part in ast.walk(statement)
    }
    for node in nodes:
        if isinstance(node, ast.Call) and id(node) not in tried and (path := _read_path(node)) is not None:
            yield path, node.lineno


def _read_path(call: ast.Call) -> ast.expr | None:
    """Return the expression for the path that a call reads, None if it is no such call."""
    name = call_name(call)
    if not _READING.match(name):
        return None
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    if receiver is not None and joined_text(receiver) is not None:
        return receiver  # Path("a.txt").read_text()
    return call.args[0] if call.args else None
