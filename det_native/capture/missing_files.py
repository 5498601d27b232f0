"""Data files that a program reads by a name, and that are not there: what makes a file says so by more than reading."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

from det_native.capture.path_texts import call_name, joined_text, names_a_file, written_texts

_READERS = frozenset(
    {
        *("fromfile", "genfromtxt", "imread", "load", "load_model", "load_weights", "loadtxt", "memmap", "open"),
        *("read_bytes", "read_csv", "read_excel", "read_feather", "read_file", "read_fwf", "read_hdf", "read_image"),
        *("read_json", "read_ndjson", "read_orc", "read_parquet", "read_pickle", "read_stata", "read_table"),
        *("read_text", "read_xml"),
        *(
            "ImageFolder",
            "image_dataset_from_directory",
            "iterdir",
            "listdir",
            "scandir",
            "text_dataset_from_directory",
        ),
    }
)
_LONGEST = 400
# What every machine has of its own, and temporary files.
_OF_THE_SYSTEM = ("/dev", "/proc", "/sys", "/tmp", "/var/tmp", "/etc")
#: Calls of a program after which files may be there whose names stand nowhere else.
_MAKES_FILES = re.compile(r"\b(extract|extractall|unpack_archive|get_file|urlretrieve|download\w*|load_dataset)\b")


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
    reads = [
        (text, label, line) for source, label in sources for text, line in _reads(ast.parse(source), _is_relative_file)
    ]
    written = {text for source, _ in sources for text in written_texts(source)}
    found: dict[str, tuple[str, str, int]] = {}
    for text, label, line in reads:
        name = text.rpartition("/")[2]
        mentioned = sum(source.count(name) for source, _ in sources)
        if text not in written and mentioned == sum(other.endswith(name) for other, _, _ in reads):
            found.setdefault(text, (text, label, line))
    return list(found.values())


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
        (text, label, line) for source, label in sources for text, line in _reads(ast.parse(source), _is_elsewhere)
    ]
    written = {text for source, _ in sources for text in written_texts(source)}
    found: dict[str, tuple[str, str, int]] = {}
    for text, label, line in reads:
        mentioned = sum(source.count(text) for source, _ in sources)
        if text not in written and mentioned == sum(other == text for other, _, _ in reads):
            found.setdefault(text, (text, label, line))
    return list(found.values())


def _is_elsewhere(text: str) -> bool:
    if len(text) > _LONGEST or any(mark in text for mark in "*?\n{}") or text.startswith(_OF_THE_SYSTEM):
        return False
    return text.startswith(("/", "~/", "http://", "https://"))


def _is_relative_file(text: str) -> bool:
    relative = "://" not in text and not text.startswith(("/", "~/"))
    return relative and names_a_file(text) and not set("*?") & set(text)


def _reads(tree: ast.Module, wanted: Callable[[str], bool]) -> Iterator[tuple[str, int]]:
    tried = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and node.handlers
        for statement in node.body
        for part in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or id(node) in tried:
            continue
        path = _read_path(node)
        text = None if path is None else joined_text(path)
        if text is not None and wanted(text):
            yield text, node.lineno


def _read_path(call: ast.Call) -> ast.expr | None:
    """Return the expression for the path that a call reads, None if it is no such call."""
    name = call_name(call)
    if name not in _READERS:
        return None
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    if receiver is not None and joined_text(receiver) is not None:
        return receiver  # Path("a.txt").read_text()
    return call.args[0] if call.args else None
