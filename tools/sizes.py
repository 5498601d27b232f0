"""Print how long the code is, beside the lines in ``tools/sizes.toml``; ``make lint`` runs it.

It fails where the Python code that users run is longer than it was: code is added on purpose, with a reason. With
``--write`` it puts today's lines into the file.
"""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NUMBERS = "tools/sizes.toml"
# Of these the sum is limited; the others are shown only.
LIMITED = ("det_native", "harness")
_HEAD = """\
# Lines of code, as `python tools/sizes.py --write` counts them. `make lint` shows them and fails where det_native and
# harness together have more than here. Raise them with a reason in the commit; lower them after a deletion.
"""
_PYTHON = (".py",)
_FRONT_END = (".ts", ".tsx", ".css")
# Made of the master's interface, so nobody writes it.
_GENERATED = "jupyter_ext/src/generated"


@dataclass(frozen=True)
class Part:
    """A part of the code: its name, the folders that it is in, and the suffixes of its files."""

    name: str
    folders: tuple[str, ...]
    suffixes: tuple[str, ...]

    def lines(self, root: Path) -> int:
        """Return the lines of its files, whether git knows them or not."""
        paths = [path for folder in self.folders for path in (root / folder).rglob("*") if path.suffix in self.suffixes]
        return sum(path.read_bytes().count(b"\n") for path in paths if root / _GENERATED not in path.parents)


PARTS = (
    Part("det_native", ("det_native",), _PYTHON),
    Part("harness", ("harness",), _PYTHON),
    Part("front_end", ("jupyter_ext/src", "jupyter_ext/style"), _FRONT_END),
    Part("tests", ("tests", "jupyter_ext/tests"), _PYTHON + _FRONT_END),
)


def table(sizes: dict[str, int], numbers: dict[str, int]) -> str:
    """Return a line for each part: its lines, those of the file, and the difference."""
    return "\n".join(
        f"{name:<12}{size:>8}  {NUMBERS}: {numbers[name]:>7}  {size - numbers[name]:>+6}"
        for name, size in sizes.items()
    )


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Print or write the lines; return the exit status."""
    sizes = {part.name: part.lines(root) for part in PARTS}
    if "--write" in arguments:
        (root / NUMBERS).write_text(_HEAD + "".join(f"{name} = {size}\n" for name, size in sizes.items()))
        return 0
    numbers = tomllib.loads((root / NUMBERS).read_text())
    print(table(sizes, numbers))
    excess = sum(sizes[name] - numbers[name] for name in LIMITED)
    names = " and ".join(LIMITED)
    if excess > 0:
        print(
            f"{names} have {excess} lines more than {NUMBERS} allows. Delete code, or raise the numbers with "
            "`python tools/sizes.py --write` and give the reason in the commit."
        )
        return 1
    if excess < 0:
        print(f"{names} have {-excess} lines less than {NUMBERS} says. Lower it: `python tools/sizes.py --write`.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
