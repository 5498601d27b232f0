"""Values that a program makes of the result of a training call that does not train in this run.

Such a value is made up: a comparison is False, a number is 0 or not a number. A line says so, once for each place. What
a call is given is compared with the notebook's afterwards. Within the training, and where nothing is compared, such a
value is an error.
"""

from __future__ import annotations

import ast
import logging
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from det_harness.program.calls import ProgramSource, Unit
from det_native.errors import TrialDefinitionError

logger = logging.getLogger("det_harness")

#: What to do about such a value in a script.
SCRIPT_REMEDY = "make it a hyperparameter, or an argument of a script that has this training only."


class MadeUpValues:
    """Notes and tells them for one run of a program.

    Parameters
    ----------
    is_compared : callable, optional
        Whether what is made now is compared with the notebook's before the training.
    """

    def __init__(self, source: ProgramSource, is_compared: Callable[[], bool] = lambda: True) -> None:
        self._source = source
        self._is_compared = is_compared
        self._told: dict[tuple[Unit, int], str] = {}
        self._error: TrialDefinitionError | None = None
        self._training = False

    def note(self, value: Any, what: str, call: str, *, look: bool, shown: bool) -> None:
        """Note that a method of a result, which calls this, gives a made-up value.

        Parameters
        ----------
        what : str
            What comes of it, with braces for its name.
        call : str
            Place of the training call.
        look : bool
            Most look at it only: nothing is said where it is compared.
        shown : bool
            Nor in a statement that only shows it.

        Raises
        ------
        TrialDefinitionError
            If the training is under way, or nothing compares what it is given.
        """
        innermost = sys._getframe(3)
        unit, frame = next(self._places(innermost), (None, innermost))
        line = frame.f_lineno
        if unit is None or (unit, line) in self._told or (look and self._is_compared()):
            return
        by_library = self._source.resolve(innermost.f_code.co_filename) is None
        if (by_library or shown) and not self._training and self._only_shows(unit, line):
            return
        name, title = _name_of(value, frame), self._source.title(unit)
        text = (
            f"{title if unit.file else title[0].upper() + title[1:]}, line {line}: "
            f"{what.format(f'`{name}`' if name else 'a result')}. It comes of the training call in {call}, which does "
            "not train in this run."
        )
        remedy = self.remedy(name)
        if self._training or not self._is_compared():
            self._error = TrialDefinitionError(f"{text} {remedy[0].upper()}{remedy[1:]}")
            raise self._error
        self._told[unit, line] = text
        logger.warning("%s If the training depends on it: %s", text, remedy)

    def begin_training(self) -> None:
        """Have whatever is made of a result from now on fail.

        Raises
        ------
        TrialDefinitionError
            If such an error was raised before, and the program caught it.
        """
        if self._error is not None:
            raise self._error
        self._training = True

    def explain(self, error: BaseException) -> None:
        """Add to an error which kept the program from its training call what was made up before it."""
        if self._told and not self._training:
            error.add_note(f"{list(self._told.values())[-1]} The program may have taken another way by it.")

    def _places(self, frame: FrameType | None) -> Iterator[tuple[Unit, FrameType]]:
        while frame is not None:
            unit = self._source.resolve(frame.f_code.co_filename)
            if unit is not None:
                yield unit, frame
            frame = frame.f_back

    def _only_shows(self, unit: Unit, line: int) -> bool:
        """Return whether a line is of a statement that sets nothing and decides nothing: a plot, a print."""
        if unit.cell is not None:
            tree = ast.parse(self._source.program.cells[unit.cell].source)
        else:
            tree = ast.parse((self._source.directory / str(unit.file)).read_bytes())
        statements = (node for node in ast.walk(tree) if isinstance(node, ast.Expr))
        return any(node.lineno <= line <= (node.end_lineno or node.lineno) for node in statements)

    def remedy(self, name: str) -> str:
        """Return what to do about a result, or what is made of one, that has this name."""
        if self._source.program.kind == "script":
            return SCRIPT_REMEDY
        if name:
            return f'send what your notebook had there, by values=["{name}"] or from a cell without that call.'
        return "send what comes of it by name, in values=[...]."


def _name_of(value: Any, frame: FrameType) -> str:
    """Return the name of a variable that holds it, empty if none does."""
    held = (name for names in (frame.f_locals, frame.f_globals) for name, each in names.items() if each is value)
    return next(held, "")
