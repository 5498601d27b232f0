"""Places in the user's program: which code is the user's, what it is called, and which training call is recorded."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from det_native.callsite import Position, calling_position
from det_native.errors import TrialDefinitionError
from det_native.schema.manifests import BundleManifest, CallSite, EarlierAnswers, EarlierTraining, Program


@dataclass(frozen=True)
class Unit:
    """A cell (by its index in the program) or a file (by its path relative to the working directory)."""

    cell: int | None = None
    file: str | None = None


class ProgramSource:
    """Maps the file names of code objects to the program's cells and files.

    Parameters
    ----------
    directory : Path
        The working directory; files under it are the user's.
    """

    def __init__(self, program: Program, directory: Path) -> None:
        self.program = program
        self.directory = directory
        numbers = Counter(cell.number for cell in program.cells)
        self._filenames = [
            f"<{program.title(index)}>"
            if cell.number is not None and numbers[cell.number] == 1
            else f"<cell #{index + 1}>"
            for index, cell in enumerate(program.cells)
        ]
        self._units: dict[str, Unit | None] = {name: Unit(cell=index) for index, name in enumerate(self._filenames)}
        self._roots = {f"{directory}{os.sep}", f"{os.path.realpath(directory)}{os.sep}"}

    def filename(self, cell: int) -> str:
        """Return the file name that a cell is compiled under."""
        return self._filenames[cell]

    def unit(self, cell: int) -> Unit:
        """Return the unit of a cell, by its index."""
        return Unit(cell=cell)

    def resolve(self, filename: str) -> Unit | None:
        """Return the unit of a code object's file name, None for code that is not the user's."""
        if filename not in self._units:
            self._units[filename] = self._file_unit(filename)
        return self._units[filename]

    def title(self, unit: Unit) -> str:
        """Return how a unit is named to the user: ``cell [7]``, or a path."""
        if unit.cell is None:
            return unit.file or "the program"
        return self.program.title(unit.cell)

    def number(self, unit: Unit) -> int | None:
        """Return the number that the notebook shows for a cell."""
        return None if unit.cell is None else self.program.cells[unit.cell].number

    def call_title(self) -> str:
        """Return the place of the recorded call for a message."""
        call = self.program.call
        if call is None:
            return "a training call"
        title = self.title(Unit(cell=call.cell, file=call.file))
        again = f" (the {_ordinal(call.occurrence)} time)" if call.occurrence > 1 else ""
        return f"the {call.kind}() call in {title}, line {call.line}{again}"

    def _file_unit(self, filename: str) -> Unit | None:
        if filename.startswith("<") or "site-packages" in filename:
            return None
        absolute = os.path.abspath(filename)
        for root in self._roots:
            if absolute.startswith(root):
                return Unit(file=absolute[len(root) :].replace(os.sep, "/"))
        return None


class EarlierCall(NamedTuple):
    """What is known of a training call that is not the recorded one: its weights, and what was asked of it."""

    training: EarlierTraining | None = None
    answers: EarlierAnswers | None = None


class CallMatcher:
    """Tells the recorded training call, and the ``init()`` that it belongs to, from others of the same program.

    An occurrence is counted per kind and place while one cell (or the script) runs. A call that stands in a function of
    an earlier cell, or in a module, is looked for while the cell runs in which it was recorded: the last one for a
    training call.

    Attributes
    ----------
    last_place : str
        Where the last training call was made, for messages.
    taken : bool
        Whether the recorded call was reached; set by the host.
    goes_on : bool
        Whether the program runs on after it; set by the host.
    earlier : EarlierCall
        What is known of the last training call, if it is none to be recorded.
    init_reached : bool
        Whether the recorded ``init()`` was called.
    at_init : callable
        Is called by the recorded ``init()``; set by who runs the program.
    bundle : BundleManifest or None
        The program with its files; set likewise.
    """

    def __init__(self, source: ProgramSource) -> None:
        self.source = source
        self._call: CallSite | None = source.program.call
        self._init: CallSite | None = source.program.init
        self.init_reached = False
        self._last_cell = len(source.program.cells) - 1
        self._running: int | None = None
        self._counts: Counter[tuple[str, Unit, int, int]] = Counter()
        self.last_place = "an unknown place"
        self.taken = False
        self.goes_on = False
        self.earlier = EarlierCall()
        self.at_init: Callable[[], None] = lambda: None
        self.bundle: BundleManifest | None = None

    @property
    def cell(self) -> int | None:
        """The index of the cell that runs; None in a script."""
        return self._running

    @property
    def any_call(self) -> bool:
        """Whether no call was recorded: the program is a script, and whichever it makes first is the trial's."""
        return self._call is None

    def enter_cell(self, index: int) -> None:
        """A cell of the program starts."""
        self._running = index
        self._counts.clear()

    def is_recorded(self, kind: str) -> bool:
        """Return whether the training call being made, by the innermost frame of the user's, is the recorded one.

        Raises
        ------
        TrialDefinitionError
            If it is, but the ``init()`` that it belongs to was not reached: its hyperparameters would be others.
        """
        position, self.earlier = calling_position(self.source.resolve), EarlierCall()
        if position is None:
            return self._call is None
        times = self._count(kind, position)
        self.last_place = f"{self.source.title(position.unit)}, line {position.line}"
        if self._call is None:
            return True
        recorded = kind == self._call.kind and self._is_at(self._call, position, times)
        if not recorded:

            def is_here(site: CallSite) -> bool:
                return site.kind == kind and self._is_at(site, position, times)

            trainings, answers = self.source.program.earlier, self.source.program.answers
            self.earlier = EarlierCall(
                next((each for each in trainings if is_here(each.site)), None),
                next((each for each in answers if is_here(each.site)), None),
            )
        if recorded and self._init is not None and not self.init_reached:
            raise TrialDefinitionError(
                f"The program reached its training call, in {self.last_place}, without the init() that it belongs to: "
                f"line {self._init.line} of {self.source.title(Unit(cell=self._init.cell, file=self._init.file))}. "
                "Does that depend on something that is different on a worker?"
            )
        return recorded

    def is_recorded_init(self) -> bool:
        """Return whether the ``init()`` being called is the recorded call's; True for any if none is recorded."""
        position = calling_position(self.source.resolve)
        if self._init is None or position is None:
            return self._init is None
        recorded = self._is_at(self._init, position, self._count("init", position))
        self.init_reached = self.init_reached or recorded
        return recorded

    def _count(self, kind: str, position: Position[Unit]) -> int:
        key = (kind, position.unit, position.line, position.column)
        self._counts[key] += 1
        return self._counts[key]

    def _is_at(self, site: CallSite, position: Position[Unit], times: int) -> bool:
        wanted = (Unit(cell=site.cell, file=site.file), site.line, site.column)
        running = self._last_cell if site.running is None else site.running
        in_its_cell = self._running is None or self._running == running
        place = (position.unit, position.line, position.column)
        return place == wanted and times == site.occurrence and in_its_cell


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
