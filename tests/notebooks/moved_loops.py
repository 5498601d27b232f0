"""Runs loops in plain PyTorch, and the same loops moved to det_native; see `loop_changes`.

README.md says what the head of a moved loop's file has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults import GATE_CELL
from loop_changes import LOOPS
from notebook_run import Cell, Kernels, Written, values_of
from same_values import expressions

from det_native.client.connect import connect
from det_native.schema import routes

_TWO_SLOTS = re.compile(r"^# two slots, within ([\d.e-]+): (.*)$", re.MULTILINE)
_KILLED = re.compile(r"^# killed: (.+), after (\d+)$", re.MULTILINE)
_HISTORY = re.compile(r"^# history: (.*)$", re.MULTILINE)
_EPOCHS = re.compile(r"^( *)for \w+ in context\.epochs\(.*\):\n", re.MULTILINE)
#: The recorded metrics, wherever the loop stands.
RECORDED = "det.last_experiment().history"
_INIT = "pytorch.init()"


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
            {pair[0]: pair[1] for pair in pairs},
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


def run(cells: Sequence[Cell], same: list[str], kernels: Kernels, folder: Path) -> Ended:
    """Run cells in a fresh kernel, and return what expressions then come to."""
    folder.mkdir()
    (folder / "seeded").touch()  # see notebook_run.DRAWS
    notebook = kernels.warm(folder, plain=False)
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
    return {row.id for row in connect(start=False).call(routes.LIST_EXPERIMENTS)}
