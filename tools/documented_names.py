"""Tables of the documented names and the tests that prove them: ``docs/names/*.toml`` to ``docs/names/*.md``.

``make docs`` runs it; git ignores the tables.

With paths of seed documents as arguments it says which names of theirs stand in no table.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = ROOT / "docs" / "names"
TESTS = ROOT / "tests"

_ENTRY = re.compile(r"(?P<path>[\w.]+)(?:\((?P<parameters>[\w, ]*)\))?")
_SIGNATURE = re.compile(r"^(?:abstract |static |classmethod )?(?P<name>[a-z_]\w*)\(.*\) → ")
_CLASS = re.compile(r"^class (?:determined\.[\w.]*\.)?(?P<name>[A-Z]\w*)(?:\((?!.*:$)|$)")
_ALONE = re.compile(r"^(?P<name>[A-Za-z_]\w*)(?:\(\))?$")
_CONSTANT = re.compile(r"^(?P<name>[A-Z][A-Z_]+)$")


@dataclass(frozen=True)
class Entry:
    """A documented name: where it is looked up, and the test that proves it."""

    section: str
    module: str
    name: str
    test: str

    @property
    def is_looked_up(self) -> bool:
        """Whether it is a name of the module, and not a kind of data or something that is refused."""
        return ": " not in self.name


def entries(source: Path) -> list[Entry]:
    """Return what a table lists, in its order."""
    found = tomllib.loads(source.read_text())
    return [
        Entry(section["title"], section["module"], name, test)
        for section in found["section"]
        for name, test in section["names"]
    ]


def missing(entry: Entry) -> str:
    """Return what is wrong with a name: it is not there, or lacks a parameter; empty if all is well."""
    match = _ENTRY.fullmatch(entry.name)
    if match is None:
        return f"{entry.name}: is no name"
    found: object = importlib.import_module(entry.module)
    for part in match["path"].split("."):
        if part in getattr(found, "__annotations__", {}):
            return ""  # an attribute of instances
        if not hasattr(found, part):
            return f"{entry.module}.{match['path']}: there is no {part}"
        found = getattr(found, part)
    if not match["parameters"]:
        return ""
    wanted = [name.strip() for name in match["parameters"].split(",")]
    assert callable(found)
    there = [name for name in inspect.signature(found).parameters if name != "self"]
    return "" if [name for name in there if name in wanted] == wanted else f"{entry.name}: has {', '.join(there)}"


def unproved(entry: Entry) -> str:
    """Return what is wrong with a test: it is not there, or does not mention the name; empty if all is well."""
    file, _, function = entry.test.partition("::")
    paths = list(TESTS.rglob(file))
    if len(paths) != 1:
        return f"{entry.name}: there is no {file}"
    definitions = _definitions(paths[0])
    if function not in definitions:
        return f"{entry.name}: {file} has no {function}"
    last = entry.name.partition("(")[0].replace(": ", ".").rpartition(".")[2]
    mentioned = last in ("__init__", "tuple", "list", "dict", "ndarray", "Tensor") or last in paths[0].read_text()
    return "" if mentioned else f"{entry.name}: {file} does not mention {last}"


def table(source: Path) -> str:
    """Return the document that is made of a list of names."""
    lines = [
        f"# {tomllib.loads(source.read_text())['title']}",
        "",
        f"Every documented name, with the test that proves it. Made by `make docs` of `{source.name}`; "
        "`make test` checks that the names and the tests agree.",
    ]
    section = ""
    for entry in entries(source):
        if entry.section != section:
            section = entry.section
            lines += ["", f"## {section}", "", "| name | test |", "|---|---|"]
        (path,) = TESTS.rglob(entry.test.partition("::")[0])
        function = entry.test.partition("::")[2]
        where = path.relative_to(ROOT).as_posix()
        lines.append(f"| `{entry.name}` | [`{function}`](../../{where}) |")
    return "\n".join(lines) + "\n"


def names_of_document(text: str) -> Iterator[str]:
    """Yield the names that a seed document defines; its signature may begin on the line after the name."""
    lines = [*text.splitlines(), ""]
    for line, following in pairwise(lines):
        patterns = [_SIGNATURE, _CLASS, _CONSTANT]
        if following.startswith(("(", "¶")):
            patterns.append(_ALONE)
        for pattern in patterns:
            match = pattern.match(line.strip())
            if match and line.strip() == line.rstrip():
                yield match["name"]
                break


@cache
def _definitions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def main(documents: list[str]) -> int:
    """Write the tables; return how many names of the documents stand in none."""
    listed: set[str] = set()
    for source in sorted(NAMES.glob("*.toml")):
        source.with_suffix(".md").write_text(table(source))
        listed |= {part for entry in entries(source) for part in re.findall(r"\w+", entry.name)}
    absent = [name for document in documents for name in names_of_document(Path(document).read_text())]
    absent = sorted(set(absent) - listed)
    if absent:
        print(f"Not in any table: {', '.join(absent)}")
    return len(absent)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
