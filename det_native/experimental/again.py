"""A cell that is run twice while its first experiment goes on: said, since both train then."""

from __future__ import annotations

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
    what: tuple[str, frozenset[str], str]
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
    what = _what(capture, config, master)
    for earlier in reversed(_submitted):
        if earlier.what == what and earlier.execution != running and _goes_on(earlier.experiment):
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
        _submitted.append(_Submitted(running, _what(capture, config, master), experiment))
        del _submitted[:-_MOST]


def _what(capture: Capture, config: ExperimentConfig, master: str) -> tuple[str, frozenset[str], str]:
    said = config.model_dump(mode="json", exclude={"reproducibility"})
    cells = frozenset(cell.source.strip() for cell in capture.program.cells)
    return master, cells, json.dumps(said, sort_keys=True)


def _running() -> int | None:
    log = current_log()
    running = log.running if log is not None else None
    return None if running is None else running.index


def _goes_on(experiment: Experiment) -> bool:
    try:
        return not experiment.detail().state.terminal
    except DetError:  # it was deleted, or its master is away, which the submission will say
        return False
