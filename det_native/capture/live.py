"""From the log and the live namespace to executions as Python."""

from __future__ import annotations

from collections.abc import Sequence

from det_native.capture.bindings import star_names
from det_native.capture.calls import cell_line
from det_native.capture.execution import Execution, Facts
from det_native.capture.failure import Divided, divide
from det_native.capture.log import ExecutionLog, LoggedExecution
from det_native.capture.reads import reads_of
from det_native.capture.transform import Transformed, transform


def executions_of(log: ExecutionLog, until: int) -> list[Execution]:
    """Return the executions up to and with index `until`, transformed."""
    return [_execution(logged, transform(logged.source)) for logged in log.executions[: until + 1]]


def _execution(logged: LoggedExecution, transformed: Transformed) -> Execution:
    failed = logged.ending.succeeded is False
    language = transformed.language
    source = ""
    if language is None and not transformed.error and (logged.ending.ran or not failed):
        source = transformed.source
    elif language is None and transformed.error and not failed:
        language = "syntax that only IPython understands"
    language = language if source or logged.ending.ran else None
    failed_line = None
    if failed and logged.ending.error_line is not None:
        body = logged.ending.error_in_body or max(logged.files.values(), default=0) > 0
        failed_line = cell_line(transformed.kernel_lines, logged.source, logged.ending.error_line, body)
    divided = Divided("", "")
    if source and failed_line is not None:
        divided = divide(source, failed_line, refused=logged.ending.refused)
    if failed:
        source = divided.head if logged.ending.interrupted else divided.again
    changed = _changed_names(transformed.repeated)
    return Execution(logged, transformed, source, divided.head, failed_line, language, changed)


def _changed_names(source: str) -> frozenset[str]:
    """Return the names that code which ran many times (``%timeit``) may have changed."""
    try:
        code = reads_of(source)
    except SyntaxError:
        return frozenset()
    return frozenset((code.stored_into | code.called) & code.reads.keys())


def facts_of(executions: Sequence[Execution], log: ExecutionLog) -> Facts:
    """Return what is known besides: of the beginning of the log, and of modules."""
    stars = {star for execution in executions if execution.source for star in reads_of(execution.source).stars}
    return Facts({star: star_names(star[0]) or frozenset() for star in stars}, log.fixed, log.looked_up)
