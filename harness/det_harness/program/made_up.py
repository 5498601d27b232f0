"""Values that a program makes of the result of a training call that does not train in this run.

Such a value is made up: a comparison is False, a number is 0 or not a number. Who takes it is told so, once for each
place. A training that depends on one is not begun.
"""

from __future__ import annotations

import ast
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from det_harness.program.calls import ProgramSource, Unit
from det_harness.program.dependence import Line, decided_names
from det_native.errors import TrialDefinitionError

logger = logging.getLogger("det_harness")


@dataclass(frozen=True)
class _Place:
    """Where a frame of the user's is; `frame` is its identity."""

    frame: int
    code: CodeType
    unit: Unit
    line: int


@dataclass(frozen=True)
class _Use:
    stack: tuple[_Place, ...]  # innermost first
    text: str


class MadeUpValues:
    """Notes and tells them for one run of a program.

    Parameters
    ----------
    source : ProgramSource
    """

    def __init__(self, source: ProgramSource) -> None:
        self._source = source
        self._uses: dict[tuple[Unit, int], _Use] = {}
        self._training = False

    def note(self, value: Any, what: str, call: str) -> None:
        """Note that a method of a result, which calls this, gives a made-up value.

        Parameters
        ----------
        value : NullHandle
            The result.
        what : str
            What comes of it, with braces for its name.
        call : str
            Place of the training call.

        Raises
        ------
        TrialDefinitionError
            If the training is under way.
        """
        innermost = sys._getframe(3)
        stack = tuple(self._stack(innermost))
        if not stack or (stack[0].unit, stack[0].line) in self._uses:
            return
        by_library = self._unit(innermost) is None
        if by_library and not self._training and self._only_shows(stack[0]):
            return
        name = _name_of(value, innermost)
        text = (
            f"{self._title(stack[0])}: {what.format(f'`{name}`' if name else 'a result')}. It comes of the training "
            f"call in {call}, which does not train in this run."
        )
        if self._training:
            raise TrialDefinitionError(f"{text} {self._remedy([name] if name else [])}")
        self._uses[stack[0].unit, stack[0].line] = _Use(stack, text)
        logger.warning("%s If the training depends on it: %s", text, self._remedy([]))

    def begin_training(self) -> None:
        """Have whatever is made of a result from now on fail.

        Raises
        ------
        TrialDefinitionError
            If what the training call is given depends on a value that was made up.
        """
        problem = self.problem()
        if problem is not None:
            raise TrialDefinitionError(problem)
        self._training = True

    def problem(self) -> str | None:
        """Return what is wrong, if what the training call being made is given depends on a made-up value."""
        if not self._uses:
            return None
        calling = [frame for frame in _frames(sys._getframe(1)) if self._unit(frame) is not None]
        for use in self._uses.values():
            names = self._depends(use, calling)
            if names:
                listed = " and ".join(f"`{name}`" for name in names)
                return f"{use.text} The training depends on {listed}, set there. {self._remedy(names)}"
        return None

    def _depends(self, use: _Use, calling: list[FrameType]) -> list[str]:
        """Return the names by which the call depends on a use, as far as one cell, file or function tells."""
        for frame in calling:
            unit = self._unit(frame)
            assert unit is not None
            in_cells = unit.cell is not None and frame.f_code.co_name == "<module>"
            for place in use.stack:
                if in_cells and place.unit.cell is not None and place.code.co_name == "<module>":
                    texts = [self._tree(index).body for index in map(self._source.unit, self._cells())]
                    decision, call = Line(place.unit.cell, place.line), Line(unit.cell or 0, frame.f_lineno)
                elif (place.frame, place.code) == (id(frame), frame.f_code):
                    texts = [_body(self._tree(unit), frame.f_code)]
                    decision, call = Line(0, place.line), Line(0, frame.f_lineno)
                else:
                    continue
                return decided_names(texts, decision, call, {**frame.f_globals, **frame.f_locals})
        return []

    def _cells(self) -> range:
        return range(len(self._source.program.cells))

    def _tree(self, unit: Unit) -> ast.Module:
        if unit.cell is not None:
            return ast.parse(self._source.program.cells[unit.cell].source)
        return ast.parse((self._source.directory / str(unit.file)).read_bytes())

    def _title(self, place: _Place) -> str:
        title = self._source.title(place.unit)
        return f"{title if place.unit.file else title[0].upper() + title[1:]}, line {place.line}"

    def _stack(self, innermost: FrameType) -> Iterator[_Place]:
        for frame in _frames(innermost):
            unit = self._unit(frame)
            if unit is not None:
                yield _Place(id(frame), frame.f_code, unit, frame.f_lineno)

    def _unit(self, frame: FrameType) -> Unit | None:
        return self._source.resolve(frame.f_code.co_filename)

    def _only_shows(self, place: _Place) -> bool:
        """Return whether a line is of a statement that sets nothing and decides nothing: a plot, a print."""
        return any(
            isinstance(node, ast.Expr) and node.lineno <= place.line <= (node.end_lineno or node.lineno)
            for node in ast.walk(self._tree(place.unit))
        )

    def _remedy(self, names: list[str]) -> str:
        if self._source.program.kind == "script":
            return "make it a hyperparameter, or an argument of a script that has this training only."
        if names:
            listed = ", ".join(f'"{name}"' for name in names)
            return f"Send what your notebook had there, by values=[{listed}] or from a cell without that call."
        return "send what comes of it by name, in values=[...]."


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _name_of(value: Any, frame: FrameType) -> str:
    """Return the name of a variable that holds it, empty if none does."""
    held = (name for names in (frame.f_locals, frame.f_globals) for name, each in names.items() if each is value)
    return next(held, "")


def _body(tree: ast.Module, code: CodeType) -> list[ast.stmt]:
    """Return the statements that a code object was compiled from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                return node.body
    return tree.body if code.co_name == "<module>" else []
