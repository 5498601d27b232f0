"""Loops in plain PyTorch, and the same loops moved to det_native: what was changed, and the documents' section of it.

A loop is two notebooks of the same name, `loops/plain/NAME.py` and `loops/moved/NAME.py`. Run as a script, this writes
the section into `docs/pytorch_init.md`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from pathlib import Path

LOOPS = Path(__file__).parent / "loops"
DOCUMENT = Path(__file__).parents[2] / "docs" / "pytorch_init.md"
BEGIN, END = "<!-- loops: begin -->\n", "<!-- loops: end -->\n"

#: The loops, and what the documents call them.
TITLES = {
    "mnist": "MNIST",
    "gan": "GAN",
    "fine_tuning": "Fine-tuning",
    "early_stopping": "Early stopping",
    "mixed_precision": "Mixed precision",
    "gradient_accumulation": "Accumulation",
    "k_fold": "K-fold",
}
#: What is not counted: it says that something is used, not how the loop is written.
IMPORT = "import det_native as det"

_CELL = re.compile(r"^# %%.*\n", re.MULTILINE)


@dataclass(frozen=True)
class Changed:
    """A place where the moved text is another: its lines before and after, either may be none."""

    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def lines(self) -> int:
        """How many lines were changed, added or taken away."""
        return max(len(self.before), len(self.after))


def cells_of(name: str, kind: str) -> list[list[str]]:
    """Return the lines of each cell of a loop, `plain` or `moved`, without the import."""
    _, *cells = _CELL.split((LOOPS / kind / f"{name}.py").read_text())
    return [[line for line in cell.strip("\n").splitlines() if line != IMPORT] for cell in cells]


def changes(name: str) -> list[Changed]:
    """Return what was changed to move a loop; empty lines are left out."""
    before, after = (
        [line for cell in cells_of(name, kind) for line in cell if line.strip()] for kind in ("plain", "moved")
    )
    places = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [
        Changed(tuple(before[begin:end]), tuple(after[begin_after:end_after]))
        for kind, begin, end, begin_after, end_after in places
        if kind != "equal"
    ]


def changed_lines(name: str) -> int:
    """Return how many lines were changed to move a loop."""
    return sum(change.lines for change in changes(name))


def section() -> str:
    """Return what the documents have between `BEGIN` and `END`."""
    rows = ["| loop | what it has | changed lines | files |", "|---|---|---|---|"]
    texts = []
    for name, title in TITLES.items():
        has = (LOOPS / "plain" / f"{name}.py").read_text().partition("\n")[0].removeprefix("# ")
        files = " ".join(f"[{kind}](../tests/notebooks/loops/{kind}/{name}.py)" for kind in ("plain", "moved"))
        rows.append(f"| {title} | {has} | {changed_lines(name)} | {files} |")
        texts += [f"<details><summary>{title}: the cell of the loop, before (-) and after (+)</summary>", ""]
        texts += ["```diff", *_compared(name), "```", "", "</details>", ""]
    return "\n".join([*rows, "", *texts])


def _compared(name: str) -> list[str]:
    """Return the cells that were changed, as a comparison of whole cells."""
    lines: list[str] = []
    for before, after in zip(cells_of(name, "plain"), cells_of(name, "moved"), strict=True):
        compared = list(unified_diff(before, after, n=len(before), lineterm=""))[3:]
        if any(line[1:].strip() for line in compared if line[0] in "+-"):
            lines += [line.rstrip() for line in compared]
    return lines


def write() -> None:
    """Write the section into the document."""
    text = DOCUMENT.read_text()
    head, tail = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    DOCUMENT.write_text(f"{head}{section()}{tail}")


if __name__ == "__main__":
    write()
