"""Training calls, and those of ``init()``, as they are made: where in the user's program, and how often there."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import FrameType

from det_native.callsite import calling_position
from det_native.capture.log import CallRecord, ExecutionLog, LoggedExecution, current_log
from det_native.capture.tracebacks import MAGIC_FILES
from det_native.capture.transform import transform
from det_native.heap.ownership import is_library_file


@dataclass
class _ScriptCalls:
    """Calls of a script, which has no log."""

    calls: list[CallRecord] = field(default_factory=list)


_script = _ScriptCalls()


def script_calls() -> list[CallRecord]:
    """Return the calls that this process has made without a notebook."""
    return list(_script.calls)


def note_call(kind: str) -> CallRecord | None:
    """Note that the user's program makes a call, whatever the mode; the place is found from the stack.

    Every ``init()``, and every ``fit()``, ``create()`` and ``train_and_evaluate()`` that the native API takes over, is
    to be noted once, local ones too: a worker counts them in the same way.

    Returns
    -------
    CallRecord or None
        None if no frame belongs to the user's program (typed into a debugger, say).
    """
    log = current_log()
    frame = sys._getframe(1)
    running = log.running if log is not None else None
    if log is None or running is None:
        record = _script_record(kind, frame)
        if record is not None:
            _script.calls.append(record)
        return record
    record = _cell_record(kind, frame, log, running)
    if kind != "init":
        log.before_call()
    if record is not None:
        log.calls.append(record)
    return record


def calling_place() -> str:
    """Return where the call being made stands, for a message: `` in cell [3], line 2``; empty where no cell runs."""
    log = current_log()
    running = log.running if log is not None else None
    record = _cell_record("", sys._getframe(1), log, running) if log is not None and running is not None else None
    if log is None or record is None:
        return ""
    cell = next((one for one in reversed(log.executions) if record.file in one.files), None)
    if cell is None or cell.number is None:
        return ""
    body = cell.files[record.file] > 0
    line = cell_line(transform(cell.source).kernel_lines, cell.source, record.line, body)
    return f" in cell [{cell.number}], line {line}"


def occurrence(record: CallRecord) -> int:
    """Return how many times the place was reached since its cell (or the script) started, this time included."""
    log = current_log()
    calls = log.calls if log is not None and log.running is not None else _script.calls
    place = _place(record)
    before = calls[: next((i for i, call in enumerate(calls) if call is record), len(calls))]
    return 1 + sum(_place(call) == place for call in before)


def _place(record: CallRecord) -> tuple[object, ...]:
    # Calls in a chain, `init(...).wrap_model(...).fit(...)`, begin at the same column; their kinds tell them apart.
    return record.kind, record.running, record.file, record.line, record.column, record.magic_line


def _script_record(kind: str, frame: FrameType) -> CallRecord | None:
    position = calling_position(_users_file, frame)
    return CallRecord(kind, 0, position.unit, position.line, position.column) if position is not None else None


def _users_file(file: str) -> str | None:
    return None if is_library_file(file) else file


def _cell_record(kind: str, frame: FrameType, log: ExecutionLog, running: LoggedExecution) -> CallRecord | None:
    cell_files = {file for execution in log.executions for file in execution.files}

    def resolve(file: str) -> str | None:
        return file if file in cell_files or file in MAGIC_FILES else _users_file(file)

    position = calling_position(resolve, frame)
    if position is None:
        return None
    magic = calling_position(lambda file: file if file in cell_files else None, frame)
    line = magic.line if magic is not None and position.unit in MAGIC_FILES else None
    return CallRecord(
        kind, running.index, position.unit, position.line, position.column, line, _top_line(frame, running)
    )


def _top_line(frame: FrameType, running: LoggedExecution) -> int:
    """Line of the running cell's own top level, in the cell's raw text."""
    transformed = transform(running.source)
    line = 1
    current: FrameType | None = frame
    while current is not None:
        code = current.f_code
        if code.co_name == "<module>" and (code.co_filename in running.files or code.co_filename in MAGIC_FILES):
            body = code.co_filename in MAGIC_FILES or running.files.get(code.co_filename, 0) > 0
            line = max(line, cell_line(transformed.kernel_lines, running.source, current.f_lineno, body))
        current = current.f_back
    return line


def cell_line(kernel_lines: tuple[int, ...], source: str, line: int, body: bool) -> int:
    """Return the line of a cell's raw text for a line number in the traceback of its code.

    Parameters
    ----------
    kernel_lines : tuple of int
        See ``Transformed``.
    source : str
        Raw text of the cell.
    line : int
        Line number of a code object of the cell.
    body : bool
        The code object was compiled from the body of a cell magic (``%%time``), not from the whole cell.
    """
    if source.lstrip().startswith("%%") and not body:
        return source[: len(source) - len(source.lstrip())].count("\n") + 1
    if not kernel_lines:
        return line
    return kernel_lines[min(max(line, 1), len(kernel_lines)) - 1]
