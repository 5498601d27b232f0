"""Texts of a program that name what it reads: files that are not there, and paths out of what is sent."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from det_native.capture.modules import is_installed
from det_native.capture.path_texts import HOLE, LONGEST, PathText, Role, constant_names, names_a_file, path_texts
from det_native.capture.syntax import tree_of

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


def program_texts(sources: Sequence[tuple[str, str]]) -> Iterator[tuple[PathText, str]]:
    """Yield the texts of a program, each with the label of its piece; cells share their names, a module has its own.

    Parameters
    ----------
    sources : sequence of (source, label)
        Cells and modules of the program.
    """
    shared = constant_names([tree_of(source) for source, label in sources if not label.endswith(".py")])
    for source, label in sources:
        tree = tree_of(source)
        names = constant_names([tree]) if label.endswith(".py") else shared
        yield from ((text, label) for text in path_texts(tree, names))


def files_only_read(sources: Sequence[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """Return the relative paths of files that a program only reads, see :func:`reads_elsewhere`."""
    return [read for read in _only_read(sources) if _is_relative_file(read[0])]


def reads_elsewhere(sources: Sequence[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """Return the absolute paths that a program only reads: path, label, and line.

    Where it runs has them, or not; what lies here under the name says nothing of that. One that is written, made or
    asked for elsewhere in the program is none of them, and neither is one whose reading is tried with a remedy at hand.
    """
    return [read for read in _only_read(sources) if _is_elsewhere(read[0])]


def paths_elsewhere(sources: Sequence[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """Return the absolute paths that a program names and does not only write to: path, label, and first line."""
    found: dict[str, tuple[str, str, int]] = {}
    texts = list(program_texts(sources))
    written = {one.text for one, _ in texts if one.role is Role.WRITTEN}
    for one, label in sorted(texts, key=lambda text: text[0].node.lineno):
        start, hole, _ = one.text.partition(HOLE)
        path = start.rpartition("/")[0] if hole else start
        is_path = path.startswith(("/", "~/")) and path.strip("/") and len(path) <= LONGEST and "\n" not in path
        if is_path and path not in written and not path.startswith(OF_THE_KERNEL):
            found.setdefault(path, (path, label, one.node.lineno))
    return list(found.values())


def _only_read(sources: Sequence[tuple[str, str]]) -> list[tuple[str, str, int]]:
    if any(_MAKES_FILES.search(source) for source, _ in sources):
        return []
    reads: dict[str, tuple[str, str, int]] = {}
    others: set[str] = set()
    for one, label in program_texts(sources):
        if one.role is Role.READ:
            reads.setdefault(one.text, (one.text, label, one.node.lineno))
        elif one.role is not Role.BOUND:
            others.add(one.text)
    rest = "\n".join(others)
    return [read for text, read in reads.items() if _name(text) not in rest]


def _name(text: str) -> str:
    """Return what stands in a program where it mentions a path again."""
    return text if _is_elsewhere(text) else text.rpartition("/")[2]


def _is_elsewhere(text: str) -> bool:
    if len(text) > LONGEST or any(mark in text for mark in f"*?\n{{}}{HOLE}") or text.startswith(OF_THE_SYSTEM):
        return False
    return text.startswith(("/", "~/"))


def _is_relative_file(text: str) -> bool:
    relative = "://" not in text and not text.startswith(("/", "~/"))
    return relative and names_a_file(text) and not set(f"*? {HOLE}") & set(text)
