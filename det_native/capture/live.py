"""From the log and the live namespace to what the slicer works on."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from det_native.capture.calls import cell_line
from det_native.capture.execution import Execution, Facts
from det_native.capture.failure import Divided, divide
from det_native.capture.log import ExecutionLog, LoggedExecution
from det_native.capture.reads import reads_of
from det_native.capture.trained import only_trains
from det_native.capture.transform import Transformed, transform

_DEAR = 1.0  # seconds


def executions_of(log: ExecutionLog, until: int) -> list[Execution]:
    """Return the executions up to and with index `until`, transformed."""
    taken: dict[int, set[int]] = {}
    for call in log.calls:
        if call.kind != "init":
            taken.setdefault(call.running, set()).add(call.running_line)
    return [
        _execution(logged, transform(logged.source), frozenset(taken.get(logged.index, ())))
        for logged in log.executions[: until + 1]
    ]


def _execution(logged: LoggedExecution, transformed: Transformed, taken: frozenset[int]) -> Execution:
    failed = logged.succeeded is False
    language = transformed.language
    source = ""
    if language is None and not transformed.error and (logged.ran or not failed):
        source = transformed.source
    elif language is None and transformed.error and not failed:
        language = "syntax that only IPython understands"
    failed_line = None
    if failed and logged.error_line is not None:
        body = logged.error_in_body or max(logged.files.values(), default=0) > 0
        failed_line = cell_line(transformed.kernel_lines, logged.source, logged.error_line, body)
    divided = Divided("", source)
    if source and failed_line is not None:
        divided = divide(source, failed_line, missing=logged.missing, refused=logged.refused, taken=taken)
        taken |= {failed_line} if logged.refused else frozenset()
    return Execution(
        logged.index,
        logged.number,
        logged.cell,
        language if source or logged.ran else None,
        transformed.shell,
        transformed.hidden,
        _changed_names(transformed.repeated),
        failed,
        failed_line,
        "det-skip" in logged.tags,
        "det-include" in logged.tags,
        transformed.clears,
        taken,
        logged.source,
        source,
        logged.effects,
        logged.outside,
        logged.missing,
        divided.head if failed else "",
        divided.last if failed else "",
        divided.until_call if failed else "",
        bool(taken or logged.outside) or (logged.duration or 0) > _DEAR,
        logged.shown,
        logged.streams is not None,
        logged.interrupted,
    )


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
    weights = {one.index: frozenset(log.executions[one.index].trained) for one in executions}
    only = {
        one.index
        for one in executions
        if weights[one.index] and only_trains(one.source, dict.fromkeys(weights[one.index]))
    }
    return Facts({star: star_names(star[0]) for star in stars}, log.fixed, log.looked_up, weights, frozenset(only))


def star_names(module: str) -> frozenset[str]:
    """Return the names that ``from module import *`` binds, none if the module is not loaded."""
    loaded = sys.modules.get(module)
    if loaded is None:
        return frozenset()
    public = getattr(loaded, "__all__", None)
    return frozenset(public if public is not None else (name for name in vars(loaded) if not name.startswith("_")))
