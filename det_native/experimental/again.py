"""A cell that is run twice while its first experiment goes on: said, since both train then."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass

from det_native.capture.log import current_log
from det_native.capture.model import Capture
from det_native.client.handles import Experiment
from det_native.errors import DetError
from det_native.schema.config import ExperimentConfig

_MOST = 200


@dataclass(frozen=True)
class _Submitted:
    """A submission of this kernel: by which execution, of which program and configuration."""

    execution: int
    where: str
    cells: tuple[str, ...]
    config: str
    experiment: Experiment


_submitted: list[_Submitted] = []


def sentence_of_earlier(capture: Capture, config: ExperimentConfig, master: str) -> str:
    """Return a sentence if another run of the cell has submitted the same, which goes on; empty if none has.

    The same is the same program with the same configuration, but for a seed that was drawn. What one run of a cell
    submits several times, it means to.
    """
    running = _running()
    if running is None:
        return ""
    cells, said = _cells(capture), _said(config)
    for earlier in reversed(_submitted):
        same = (earlier.where, earlier.config) == (master, said) and _is_same(earlier.cells, cells)
        if same and earlier.execution != running and _goes_on(earlier.experiment):
            number = earlier.experiment.id
            return (
                f"Experiment {number}, which this cell has submitted before, goes on, and this one trains beside it: "
                f"det.experiment({number}).kill() ends it."
            )
    return ""


def note_submitted(capture: Capture, config: ExperimentConfig, master: str, experiment: Experiment) -> None:
    """Note what was submitted by the cell that runs."""
    running = _running()
    if running is not None:
        _submitted.append(_Submitted(running, master, _cells(capture), _said(config), experiment))
        del _submitted[:-_MOST]


def _said(config: ExperimentConfig) -> str:
    return json.dumps(config.model_dump(mode="json", exclude={"reproducibility"}), sort_keys=True)


def _cells(capture: Capture) -> tuple[str, ...]:
    return tuple(cell.source.strip() for cell in capture.program.cells)


def _is_same(before: tuple[str, ...], after: tuple[str, ...]) -> bool:
    """Return whether a program is an earlier one, beside cells that have nothing to do with it.

    Those that ran since may be in it, too: they must not name what the earlier program had made before the last cell.
    """
    if not before or not after or before[-1] != after[-1] or not set(before) <= set(after):
        return False
    made: set[str] = set()
    for source in before[:-1]:
        made |= _names(source, bound=True) or set()
    others = [_names(source, bound=False) for source in after if source not in before]
    return all(names is not None and not names & made for names in others)


def _names(source: str, *, bound: bool) -> set[str] | None:
    """Return the names that a cell binds, or all that it names; None if it cannot be read."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a magic
        return None
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not (bound and isinstance(node.ctx, ast.Load)):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return found


def _running() -> int | None:
    log = current_log()
    running = log.running if log is not None else None
    return None if running is None else running.index


def _goes_on(experiment: Experiment) -> bool:
    try:
        return not experiment.detail().state.terminal
    except DetError:  # it was deleted, or its master is away, which the submission will say
        return False
