"""The wider program of a call made in a cell: which cells it has, and what they need besides."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from det_native.capture.data import collect_data
from det_native.capture.execution import Execution, Facts, Slice
from det_native.capture.explain import SLOW
from det_native.capture.explain_secrets import secret_problems
from det_native.capture.log import ExecutionLog
from det_native.capture.made_again import MadeAgain
from det_native.capture.model import Capture, CapturedStreams, CapturedWider, SourceFile
from det_native.capture.modules import collect_modules, imported_modules, is_local
from det_native.capture.path_texts import path_literals, path_patterns
from det_native.capture.request import Request
from det_native.capture.steps import steps_of
from det_native.capture.wider import wider_program
from det_native.inspection.streams import encoded
from det_native.schema.manifests import Cell

_LONGEST_PATH = 400
_ROOM = 1 << 20  # bytes of files that only cells need which are not picked


@dataclass
class WiderCapture:
    """Finds the wider program of one capture.

    Attributes
    ----------
    log : ExecutionLog
    request : Request
    executions : sequence of Execution
        Up to the one that makes the call.
    facts : Facts
    roots : sequence of Path
        Folders that are the user's.
    cuts : mapping of str to int
        Names that are sent by value, each with the execution after which its value held.
    files : dict of int to list of SourceFile
        What an execution needs that is not sent yet.
    """

    log: ExecutionLog
    request: Request
    executions: Sequence[Execution]
    facts: Facts
    roots: Sequence[Path]
    cuts: Mapping[str, int]
    files: dict[int, list[SourceFile]] = field(default_factory=dict)

    def add(self, capture: Capture, found: Slice, call_line: int, init: int) -> None:
        """Add the wider program to a capture, and the files that it needs; it stays without one that is no wider.

        Parameters
        ----------
        capture : Capture
            With program, values and files.
        found : Slice
        call_line : int
            Line of the last execution that makes the call.
        init : int
            The execution of ``init()``.
        """
        included = sorted(found.included)
        calling = len(self.executions) - 1
        steps = steps_of(self.executions, calling, call_line, self.facts)
        given = {name: self.cuts[name] for name in found.by_value}
        rest = [each for each in self.executions if each.index not in found.included]
        staying = {each.index for each in rest if self._stays(each)}
        taken = wider_program(steps, included, staying, given)
        made = MadeAgain(self.log, taken)
        dear = {index for index in taken if index not in found.included and self._needs_much(index, capture, made)}
        if dear:
            taken = wider_program(steps, included, staying | dear, given)
            made = MadeAgain(self.log, taken)
        if len(taken) == len(included):
            return
        needed = [file for index in taken for file in self.files.get(index, ())]
        new = {file.target: file for file in needed if made.maker(file.path) is None}
        sent = {file.target for file in capture.files}
        capture.files.extend(file for target, file in new.items() if target not in sent)
        capture.wider = CapturedWider(
            tuple(included.index(index) if index in found.included else self._cell(index) for index in taken),
            tuple(self._values(capture, found, taken)),
            tuple(self._streams(found, taken, init)),
            made.maker,
        )

    def _stays(self, execution: Execution) -> bool:
        """Whether an execution is not to run again: it trains, took long, deleted, moved, ran commands, went out."""
        logged = self.log.executions[execution.index]
        trains = any(call.running == execution.index and call.kind != "init" for call in self.log.calls)
        slow = logged.duration is not None and logged.duration > SLOW
        if trains or slow or execution.outside or execution.clears:
            return True
        # Where no string is written, there is no secret; to look for one takes a while.
        written = '"' in execution.source or "'" in execution.source
        return written and any(secret_problems(execution.source, execution.label, self.request.values))

    def _needs_much(self, index: int, capture: Capture, made: MadeAgain) -> bool:
        """Whether an execution needs files that do not travel, or too large ones; notes what it needs otherwise."""
        source, label = self.executions[index].source, self.executions[index].label
        if not may_need_files(source):
            return False
        sent = {file.path.resolve() for file in capture.files}
        context = self.request.context_dir
        names = [(name, label) for name in imported_modules(source)]
        modules = collect_modules(names, self.roots, self.request.include, context)
        secrets = [one for text, where in modules.sources for one in secret_problems(text, where, (), form_only=True)]
        data = collect_data([(source, label)], self.roots[0], Path.cwd(), context)
        files = [file for file in (*modules.files, *data.files) if file.path.resolve() not in sent]
        self.files[index] = files
        size = sum(file.path.stat().st_size for file in files if made.maker(file.path) is None)
        return bool(modules.problems or secrets) or size > _ROOM

    def _cell(self, index: int) -> Cell:
        logged, execution = self.log.executions[index], self.executions[index]
        return Cell(number=logged.number, cell_id=logged.cell_id, source=execution.source, reason="can run again")

    def _values(self, capture: Capture, found: Slice, taken: Sequence[int]) -> list[tuple[int, int]]:
        """Return before which cells values are bound: once they held, and again before the first that needs them."""
        places = []
        for place, value in enumerate(capture.values):
            if value.codec == "weights":
                places.append((place, next(at for at, index in enumerate(taken) if index > value.after)))
                continue
            after, user = self.cuts[value.name], found.by_value[value.name]
            first = next(at for at, index in enumerate(taken) if index > after)
            again = next(at for at, index in enumerate(taken) if index >= user)
            places += [(place, at) for at in sorted({first, again})]
        return places

    def _streams(self, found: Slice, taken: Sequence[int], init: int) -> list[CapturedStreams]:
        """Return the states before cells that have drawn, where what runs before them would not lead there."""
        states = []
        known: set[str] = set()  # streams that are where they were in the notebook
        for execution in self.executions:
            state, index = self.log.executions[execution.index].streams, execution.index
            if index not in taken:
                if state is not None or execution.effects is None:
                    known.clear()
            elif state is not None and (index in found.included or not known.issuperset(state)):
                states.append(CapturedStreams(encoded(state), taken.index(index), in_every_trial=index <= init))
                known.update(state)
        return states


def may_need_files(source: str) -> bool:
    """Whether a cell imports a module of the user's, or names something that exists, or whose name it puts together."""
    modules, paths, patterns = _named(source)
    return patterns or any(map(is_local, modules)) or any(map(_exists, paths))


@lru_cache(maxsize=4096)
def _named(source: str) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Return the modules that a cell imports, its strings that may be paths, and whether it puts some together."""
    modules = tuple(imported_modules(source)) if "import" in source else ()
    if '"' not in source and "'" not in source:
        return modules, (), False
    tree = ast.parse(source)
    return modules, tuple(path_literals(tree)), any(True for _ in path_patterns(tree))


def _exists(text: str) -> bool:
    return 0 < len(text) < _LONGEST_PATH and "\n" not in text and "\0" not in text and os.path.exists(text)
