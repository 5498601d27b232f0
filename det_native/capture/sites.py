"""Where the calls of a notebook stand in the program that is sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from det_native.capture.calls import cell_line, occurrence
from det_native.capture.log import CallRecord, ExecutionLog, LoggedExecution
from det_native.capture.tracebacks import MAGIC_FILES
from det_native.capture.transform import transform
from det_native.schema.manifests import CallKind, CallSite


def site_in_cells(
    kind: CallKind, record: CallRecord, log: ExecutionLog, included: Sequence[int], roots: Sequence[Path]
) -> CallSite | None:
    """Return the place of a call in the cells that are sent.

    Parameters
    ----------
    included : sequence of int
        Executions that are sent, in order.
    roots : sequence of Path
        Folders that modules may lie in; what is sent of them keeps its path relative to them.

    Returns
    -------
    CallSite or None
        None if the call was made in, or is written in, a cell that is not sent.
    """
    if record.running not in included:
        return None
    running = included.index(record.running)
    times, running_line = occurrence(record), record.running_line
    owner = _owner(record, log, included)
    if owner is None:
        if log.owner_of(record.file) is not None:
            return None
        return CallSite(
            kind=kind,
            file=_relative(record.file, roots),
            line=record.line,
            column=record.column,
            occurrence=times,
            running=running,
            running_line=running_line,
        )
    line, column = _position(record, owner)
    return CallSite(
        kind=kind,
        cell=included.index(owner.index),
        line=line,
        column=column,
        occurrence=times,
        running=running,
        running_line=running_line,
    )


def _owner(record: CallRecord, log: ExecutionLog, included: Sequence[int]) -> LoggedExecution | None:
    """The execution, of those that are sent, whose code made the call."""
    running = log.executions[record.running]
    if record.file in MAGIC_FILES or record.file in running.files:
        return running
    for index in reversed(included):
        if record.file in log.executions[index].files:
            return log.executions[index]
    return None


def _relative(file: str, roots: Sequence[Path]) -> str:
    path = Path(file).resolve()
    for root in roots:
        if root.resolve() in path.parents:
            return path.relative_to(root.resolve()).as_posix()
    return path.name


def _position(record: CallRecord, owner: LoggedExecution) -> tuple[int, int]:
    """Line and column of the call in the source that is sent."""
    transformed = transform(owner.source)
    if record.file in MAGIC_FILES and record.magic_line is not None and not owner.source.lstrip().startswith("%%"):
        line = cell_line(transformed.kernel_lines, owner.source, record.magic_line, False)
        return line, transformed.magic_columns.get(line, 0) + record.column
    body = record.file in MAGIC_FILES or owner.files.get(record.file, 0) > 0
    return cell_line(transformed.kernel_lines, owner.source, record.line, body), record.column
