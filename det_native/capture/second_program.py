"""The second program of a call: slow cells, too. A worker runs it if the first one gives it other inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from det_native.capture.data import collect_data
from det_native.capture.log import ExecutionLog
from det_native.capture.model import Capture, CapturedStreams, CapturedWider
from det_native.capture.own_folder import own_paths
from det_native.capture.program.records import Plan, Step
from det_native.capture.seen_files import SeenFiles
from det_native.process.streams import encoded
from det_native.schema.manifests import Cell


def second_program(
    capture: Capture, first: Plan, second: Plan, log: ExecutionLog, init: int, root: Path, context: Path | None
) -> CapturedWider | None:
    """Return the second program, and add the files that it needs to the capture; None if it is no other.

    Parameters
    ----------
    capture : Capture
        With the first program, and its values and files.
    first, second : Plan
    log : ExecutionLog
    init : int
        The run that called ``init()``.
    root : Path
        The folder of the user's files.
    context : Path or None
        The one that is sent whole.
    """
    places = {value.name: place for place, value in enumerate(capture.values)}
    names = {value.name for value in second.values}
    if second.refusals or second.steps == first.steps or not names <= places.keys():
        return None
    steps = {step.run: place for place, step in enumerate(first.steps)}
    same = [steps.get(step.run) if step in first.steps else None for step in second.steps]
    sites = (capture.program.call, capture.program.init)
    called = {place for site in sites if site is not None for place in (site.cell, site.running) if place is not None}
    if not called <= set(same):
        return None
    made = SeenFiles(log, [step.run for step in second.steps if step.kind != "settings"])
    new = [step for step, place in zip(second.steps, same, strict=True) if place is None]
    seen = SeenFiles(log, [step.run for step in new if step.kind != "settings"])
    data = collect_data([(step.source, "") for step in new], root, Path.cwd(), context, seen=seen)
    sent = {file.target for file in capture.files}
    capture.files.extend(file for file in data.files if file.target not in sent and made.maker(file.path) is None)
    capture.paths.folders.extend(one for one in data.folders if one not in capture.paths.folders)
    capture.paths.own.extend(own_paths([(step.source, "") for step in new], (), root.resolve()))
    cells = [_cell(step, log) if place is None else place for step, place in zip(second.steps, same, strict=True)]
    at = {step.run: place for place, step in enumerate(second.steps)}
    values = tuple((places[value.name], at[value.before]) for value in second.values)
    return CapturedWider(
        tuple(cells), values, tuple(_streams(second.steps, log, at, init)), made.maker, made.makes_folder
    )


def _cell(step: Step, log: ExecutionLog) -> Cell:
    logged = log.executions[step.run]
    return Cell(
        number=logged.number,
        cell_id=logged.front_end.cell_id,
        source=step.source,
        reason="can run again",
        optional_from=step.optional_from,
        failed_line=step.failed_line,
    )


def _streams(steps: Sequence[Step], log: ExecutionLog, at: Mapping[int, int], init: int) -> list[CapturedStreams]:
    states = [(step.run, log.executions[step.run].seen.streams) for step in steps if step.kind != "settings"]
    return [
        CapturedStreams(encoded(state), at[index], in_every_trial=index <= init)
        for index, state in states
        if state is not None
    ]
