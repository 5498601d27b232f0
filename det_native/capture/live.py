"""From the log and the live namespace to what the slicer works on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from det_native.capture.analysis import Statement, analyse
from det_native.capture.calls import cell_line
from det_native.capture.events import Bind, Change, Code, Event, Read, Star, flat
from det_native.capture.facts import is_foreign, is_shallow, kind_of, own_classes
from det_native.capture.log import ExecutionLog, LoggedExecution
from det_native.capture.module_state import setters_in
from det_native.capture.modules import is_local, is_submodule
from det_native.capture.records import Facts
from det_native.capture.slicer import Execution
from det_native.capture.transform import Transformed, transform
from det_native.capture.vocabulary import CONTAINER_KINDS
from det_native.capture.watch import Seen

Answer = TypeVar("Answer")


def executions_of(log: ExecutionLog, until: int) -> list[Execution]:
    """Return the executions up to and with index `until`, transformed and analysed."""
    taken: dict[int, set[int]] = {}
    begun: set[int] = set()
    for call in log.calls:
        if call.kind == "init":
            begun.add(call.running)
        else:
            taken.setdefault(call.running, set()).add(call.running_line)
    executions = [
        _execution(logged, transform(logged.source), frozenset(taken.get(logged.index, ())), logged.index in begun)
        for logged in log.executions[: until + 1]
    ]
    last = executions[-1]
    if last.magics and log.executions[until] is log.running:
        executions[-1] = replace(last, seen=last.seen._replace(out_of_sight=log.changed_so_far()))
    return executions


def _execution(logged: LoggedExecution, transformed: Transformed, taken: frozenset[int], begun: bool) -> Execution:
    failed = logged.succeeded is False
    language = transformed.language
    statements: tuple[Statement, ...] = ()
    if language is None and not transformed.error and (logged.ran or not failed):
        statements = analyse(transformed.source)
    elif language is None and transformed.error and not failed:
        language = "syntax that only IPython understands"
    failed_line = None
    if failed and logged.error_line is not None:
        body = max(logged.files.values(), default=0) > 0
        failed_line = cell_line(transformed.kernel_lines, logged.source, logged.error_line, body)
        if logged.refused:
            taken |= {failed_line}
    return Execution(
        logged.index,
        logged.number,
        logged.cell,
        statements,
        language if statements or logged.ran else None,
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
        logged.title,
        _seen(logged, transformed, bool(taken), begun),
        logged.noted,
    )


def _seen(logged: LoggedExecution, transformed: Transformed, trained: bool, begun: bool) -> Seen:
    """Return what was seen of the values, as far as it says something of the cell.

    What a training changed does not, nor do the random numbers that ``init()`` seeds here, as it does on the worker.
    """
    if trained:
        return Seen(between=logged.seen.between)
    seen = logged.seen._replace(drew=frozenset(), seeded=frozenset()) if begun else logged.seen
    return seen._replace(out_of_sight=seen.changed) if transformed.hidden else seen


def _changed_names(source: str) -> frozenset[str]:
    if not source.strip():
        return frozenset()
    try:
        statements = analyse(source)
    except SyntaxError:
        return frozenset()
    changes = [e for s in statements for e in flat(s.events) if isinstance(e, Change)]
    return frozenset(change.name for change in changes if change.accumulates)


def facts_of(executions: Sequence[Execution], namespace: Mapping[str, Any]) -> Facts:
    """Look at the live values of the names that the log mentions."""
    names: set[str] = set()
    stars: dict[tuple[str, int], frozenset[str]] = {}
    modules: set[str] = set()
    for execution in executions:
        for statement in execution.statements:
            _mentioned(statement.events, names, stars, modules)
    live = names & namespace.keys()
    kinds = {name: kind for name in live if (kind := _answer(kind_of, namespace[name])) is not None}
    # Of a document's program nothing has run.
    kinds |= dict.fromkeys(set(_submodules(executions)) - live, "module")
    local = frozenset(module for module in modules if is_local(module))
    setters = setters_in(module for module in _imported(executions) if module.partition(".")[0] in local)
    shallow = frozenset(name for name in live if _answer(is_shallow, namespace[name]))
    held = {name: found for name in live - kinds.keys() if (found := _answer(own_classes, namespace[name]))}
    held |= {
        n: found for n in live if kinds.get(n) in CONTAINER_KINDS and (found := _answer(own_classes, namespace[n]))
    }
    foreign = frozenset(name for name in live if _answer(is_foreign, namespace[name]))
    return Facts(kinds, stars, local, setters, frozenset(live - kinds.keys()), shallow, held, foreign)


def _answer(question: Callable[[Any], Answer], value: Any) -> Answer | None:
    """Ask something about a live value; None if the value does not let itself be looked at, for whatever reason."""
    try:
        return question(value)
    except Exception:  # noqa: BLE001 (users' classes may raise anything, and nest without end)
        return None


def _imported(executions: Sequence[Execution]) -> set[str]:
    """Full names of what is imported, of which some may be no modules."""
    found: set[str] = set()
    for event in flat(e for execution in executions for s in execution.statements for e in s.events):
        if isinstance(event, Star):
            found.add(event.module)
        elif isinstance(event, Bind) and event.origin.kind == "import":
            found |= {event.origin.module, f"{event.origin.module}.{event.origin.attribute}".rstrip(".")}
    return found


def _submodules(executions: Sequence[Execution]) -> Iterable[str]:
    """Names that ``from package import name`` binds to a module."""
    for execution in executions:
        for event in flat(event for statement in execution.statements for event in statement.events):
            if not isinstance(event, Bind) or event.origin.kind != "import" or event.origin.level:
                continue
            if event.origin.attribute and is_submodule(event.origin.module, event.origin.attribute):
                yield event.name


def _mentioned(
    events: Iterable[Event], names: set[str], stars: dict[tuple[str, int], frozenset[str]], modules: set[str]
) -> None:
    for event in flat(events):
        if isinstance(event, Bind | Read | Change):
            names.add(event.name)
        if isinstance(event, Bind):
            if event.origin.kind == "import":
                modules.add(event.origin.module.partition(".")[0])
            for code in event.codes:
                _mentioned_later(code, names)
        elif isinstance(event, Star):
            stars[event.module, event.level] = star_names(event.module)
            modules.add(event.module.partition(".")[0])


def _mentioned_later(code: Code, names: set[str]) -> None:
    names.update(code.reads)


def star_names(module: str) -> frozenset[str]:
    """Return the names that ``from module import *`` binds, none if the module is not loaded."""
    loaded = sys.modules.get(module)
    if loaded is None:
        return frozenset()
    public = getattr(loaded, "__all__", None)
    return frozenset(public if public is not None else (name for name in vars(loaded) if not name.startswith("_")))
