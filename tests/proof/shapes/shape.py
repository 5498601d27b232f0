"""Ordinary shapes of cells, written as notebooks, and the changes of them that a worker must notice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CELL = "# %%"
_LOOK = f"{CELL} look"


@dataclass(frozen=True)
class Cell:
    """A cell; one to `look` at things runs in the notebook only, where the call does not need it."""

    source: str
    look: bool = False


@dataclass(frozen=True)
class Shape:
    """The cells of a notebook up to its training call.

    Attributes
    ----------
    name : str
    text : str
        The cells, divided by lines that begin with ``# %%``; ``# %% look`` begins one that only looks at something. A
        line such as ``$model`` stands for a piece that many notebooks have alike.
    mutations : tuple of (str, str)
        A text of the program and what stands there on the worker: other code, data, seeds or settings.
    put_right : bool
        Whether the notebook and a worker make another value for certain: the worker is to take the notebook's.
    """

    name: str
    text: str
    mutations: tuple[tuple[str, str], ...] = field(default=())
    put_right: bool = False

    def cells(self, pieces: Mapping[str, str]) -> list[Cell]:
        """Return the cells, with the pieces put in."""
        lines: list[str] = []
        for line in self.text.strip().splitlines():
            lines += pieces[line[1:]].strip().splitlines() if line.startswith("$") else [line]
        found: list[Cell] = []
        source: list[str] = []
        look = False
        for line in [*lines, CELL]:
            if line.startswith(CELL):
                if any(map(str.strip, source)):
                    found.append(Cell("\n".join(source).strip("\n"), look))
                source, look = [], line == _LOOK
            else:
                source.append(line)
        return found
