"""Loops in plain PyTorch, and the same loops moved to det_native: what was changed, and how they are run.

A loop is two notebooks of the same name, `loops/plain/NAME.py` and `loops/moved/NAME.py`. What the head of the moved
file says: `# same:` as in README.md; `# history:` which recorded metric is which list; `# two slots, within X:` what two
slots come to, and how near; `# killed: CONDITION, after N` in which epoch the worker is killed, and how many batches
the checkpoint has from which it goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from faults import GATE_CELL
from notebook_run import Cell, Kernels, Written, values_of
from same_values import expressions

from det_native.client.connect import connect

LOOPS = Path(__file__).parent / "loops"
NAMES = sorted(path.stem for path in (LOOPS / "moved").glob("*.py"))

#: What is not counted: it says that something is used, not how the loop is written.
IMPORT = "import det_native as det"

_TWO_SLOTS = re.compile(r"^# two slots, within ([\d.e-]+): (.*)$", re.MULTILINE)
_KILLED = re.compile(r"^# killed: (.+), after (\d+)$", re.MULTILINE)
_HISTORY = re.compile(r"^# history: (.*)$", re.MULTILINE)
_EPOCHS = re.compile(r"^( *)for \w+ in context\.epochs\(.*\):\n", re.MULTILINE)
#: The recorded metrics, wherever the loop stands.
RECORDED = "det.last_experiment().history"
_INIT = "pytorch.init()"


@dataclass(frozen=True)
class Changed:
    """A place where the moved text is another: its lines before and after, either may be none."""

    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def lines(self) -> int:
        """How many lines were changed, added or taken away."""
        return max(len(self.before), len(self.after))


def text_of(name: str, kind: str) -> str:
    """Return the text of a loop, `plain` or `moved`, from its first cell on."""
    whole = (LOOPS / kind / f"{name}.py").read_text()
    return whole[whole.index("# %%") :]


def changes(name: str) -> list[Changed]:
    """Return what was changed to move a loop; empty lines and the import are left out."""
    before, after = (_lines(text_of(name, kind)) for kind in ("plain", "moved"))
    places = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [
        Changed(tuple(before[begin:end]), tuple(after[begin_after:end_after]))
        for kind, begin, end, begin_after, end_after in places
        if kind != "equal"
    ]


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and line != IMPORT]


@dataclass(frozen=True)
class Loop:
    """A moved loop as its file has it.

    Attributes
    ----------
    written : Written
        Cells, and what is to be the same everywhere.
    history : dict
        An expression of the notebook for each recorded metric that has its values.
    slots : list of str
        Expressions that come to nearly the same on two slots.
    within : float
        How near.
    killed : str
        The condition under which a worker is killed in the loop.
    after : int
        Batches of the checkpoint from which it then goes on.
    """

    written: Written
    history: dict[str, str]
    slots: list[str]
    within: float
    killed: str
    after: int

    @classmethod
    def read(cls, name: str) -> Loop:
        """Read a loop."""
        path = LOOPS / "moved" / f"{name}.py"
        text = path.read_text()
        slots, killed, history = _TWO_SLOTS.search(text), _KILLED.search(text), _HISTORY.search(text)
        assert killed is not None
        pairs = [pair.split(" is ") for pair in history[1].split(", ")] if history else []
        return cls(
            Written.read(path),
            {metric: expression for metric, expression in pairs},
            expressions(slots[2]) if slots else [],
            float(slots[1]) if slots else 0.0,
            killed[1],
            int(killed[2]),
        )

    def cells(self, config: str = "", gate: int = 0) -> list[Cell]:
        """Return the cells, with a configuration in ``init()``, and a gate where a worker is to be killed."""
        changed = []
        for cell in self.written.cells:
            source = cell.source.replace(_INIT, f"pytorch.init({config})")
            if gate:
                source = _EPOCHS.sub(rf"\g<0>\1    if {self.killed}:\n\1        gate({gate}, epoch)\n", source)
            changed.append(Cell(source, cell.identity, cell.raises))
        return [Cell(GATE_CELL, "gate", False), *changed] if gate else changed


def plain_cells(name: str) -> list[Cell]:
    """Return the cells of the plain loop."""
    return Written.read(LOOPS / "plain" / f"{name}.py").cells


@dataclass(frozen=True)
class Ended:
    """What a notebook has come to: values of expressions, and what was shown under its cells."""

    values: dict[str, Any]
    shown: str


def run(cells: Sequence[Cell], same: list[str], kernels: Kernels, folder: Path, *, cold: bool = False) -> Ended:
    """Run cells in a fresh kernel, and return what expressions then come to."""
    folder.mkdir()
    (folder / "seeded").touch()  # see notebook_run.DRAWS
    notebook = kernels.cold(folder) if cold else kernels.warm(folder, plain=False)
    try:
        shown = [notebook.run(cell.source, cell=cell.identity, fails=cell.raises).text for cell in cells]
        return Ended(values_of(notebook, same), "\n".join(shown))
    finally:
        notebook.close()


def while_running(run_it: Callable[[], Ended], meanwhile: Callable[[], None]) -> Ended:
    """Run a notebook, and do something while it runs."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_it)
        meanwhile()
        return running.result()


def experiments() -> set[int]:
    """Return the numbers of the cluster's experiments."""
    return {row["id"] for row in connect(start=False).get("/experiments")}
