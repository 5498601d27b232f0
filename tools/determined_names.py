"""The table of Determined's public names: ``docs/names/determined_0_38_1.tsv`` to a page of the same name.

``make docs`` runs it; git ignores the page. An argument is another file to write. The exit status is 1 if a name is
neither here nor explained.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import det_native.compat
from det_native.absent import sentence_for
from det_native.frameworks import known_frameworks

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docs" / "names" / "determined_0_38_1.tsv"
INTRODUCTION = """\
# Names of Determined 0.38.1

Every public name: those that `import determined` gives here, and of the others what importing them says. `*` stands
for all names of a module. Made by `make docs` of the list `{list}` and of `det_native/absent.py`.
"""


@dataclass(frozen=True)
class Found:
    """A public name of Determined: whether it is here, and if not, what importing it says."""

    module: str
    name: str
    here: bool
    said: str = ""

    @property
    def explained(self) -> bool:
        """Whether it is here, or what is said of it is more than that it is not."""
        return self.here or bool(sentence_for(f"{self.module}.{self.name}") and self.said)


def looked_up(source: Path = SOURCE) -> list[Found]:
    """Import each name of a list as code written for Determined does; frameworks are imported for it."""
    rows = [line.split("\t") for line in source.read_text().splitlines()[1:]]
    return [_found(module, name) for module, name, _ in rows]


def _found(module: str, name: str) -> Found:
    statement = f"import {module}" if name == "*" else f"from {module} import {name}"
    try:
        exec(statement, {})  # noqa: S102 (names of the list, as code has them)
    except ImportError as error:
        after_call = name in getattr(sys.modules.get(module), "_OF_CONTEXT", ())  # there after core_v2.init()
        return Found(module, name, here=after_call, said=str(error))
    return Found(module, name, here=True)


def page(found: Iterable[Found]) -> str:
    """Return the page."""
    lines = [INTRODUCTION.format(list=SOURCE.name)]
    modules: dict[str, list[Found]] = {}
    for each in found:
        modules.setdefault(each.module, []).append(each)
    for module, names in modules.items():
        lines += [f"## `{module}`", "", "| names | |", "|---|---|"]
        groups: dict[str, list[str]] = {}
        for each in names:
            said = "here" if each.here else sentence_for(f"{module}.{each.name}") or "**not explained**"
            groups.setdefault(said.replace("|", "\\|"), []).append(f"`{each.name}`")
        lines += [f"| {', '.join(group)} | {said} |" for said, group in groups.items()]
        lines.append("")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Write the page."""
    for framework in known_frameworks():
        if framework.module != "det_native":
            importlib.import_module(framework.module)
    det_native.compat.install()
    found = looked_up()
    Path(arguments[0] if arguments else SOURCE.with_suffix(".md")).write_text(page(found), encoding="utf-8")
    missing = [f"{each.module}.{each.name}: {each.said}" for each in found if not each.explained]
    here = sum(each.here for each in found)
    print("\n".join(missing) or f"{here} of {len(found)} names are here, all others are explained.")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
