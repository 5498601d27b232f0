"""From executions to runs: which names each read, bound and changed. Pure."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from det_native.capture.execution import Execution, Facts
from det_native.capture.named_by_text import matching
from det_native.capture.program.choose import ALWAYS_THERE
from det_native.capture.program.records import Read, Run
from det_native.capture.reads import Reads, reads_of

#: Why a run stays behind that has no code.
NOTHING = "does nothing"
_NO_PYTHON = "is no Python"
_HISTORY = "the notebook's history"


def runs_of(
    executions: Sequence[Execution],
    call_line: int,
    facts: Facts,
    *,
    wanted: Collection[int] = (),
    stays: Mapping[int, str] | None = None,
    seconds: Mapping[int, float] | None = None,
) -> list[Run]:
    """Return what is known of each execution.

    Parameters
    ----------
    executions : sequence of Execution
        Those of the log; the last one makes the call.
    call_line : int
        The line of it that is running.
    wanted : collection of int
        Executions that run again in any case.
    stays : mapping of int to str
        Why executions do not run again unasked.
    seconds : mapping of int to float
        How long they took, without imports.
    """
    stays, seconds = stays or {}, seconds or {}
    looked_up: dict[str, frozenset[str]] = {}  # by the text of functions and classes
    in_values: dict[str, frozenset[str]] = {}  # by the code of values
    names: set[str] = {*facts.looked_up, *facts.fixed}
    unseen = [one.index for one in executions if one.effects is None]
    texts = frozenset().union(*(reads_of(one.source).texts for one in executions if one.source and not one.language))
    ever = names.union(*(_bound_at_any_time(one) for one in executions))
    calling = executions[-1].index
    runs = []
    for execution in executions:
        index, is_call = execution.index, execution.index == calling
        source = "" if execution.language is not None or (execution.skipped and not is_call) else execution.source
        code = reads_of(source, last=call_line if is_call else None) if source else Reads()
        stars = {name for star in code.stars for name in facts.stars.get(star, ())}
        lookups = _Lookups(looked_up, in_values, names)
        reads = {n: r for n, r in _reads(code, lookups, texts).items() if n not in stars} if source else {}
        if execution.failed and not is_call:
            before = reads_of(execution.head)  # what the statement that failed has not found is not there again
            reads = {
                name: read if name in before.certain else read._replace(certain=False)
                for name, read in reads.items()
                if name in names or read.path[0] in before.reads
            }
        bound, removed, changed, between = _effects(execution, code, facts, stars, is_call)
        lost = _lost(execution, code, bound | changed)
        if execution.effects is not None:  # what was not there when it began, it has made itself
            reads = {name: read for name, read in reads.items() if name in lost or name not in execution.effects.made}
        never = "" if is_call else _never(execution, source, code, names)
        runs.append(
            Run(
                source=source,
                failed_line=execution.failed_line if source and execution.fails_again else None,
                reads=reads,
                bound=bound,
                removed=removed,
                changed=changed,
                between=between,
                lost=lost,
                sets=tuple(sorted(execution.effects.process)) if execution.effects is not None else (),
                seconds=seconds.get(index, 0.0),
                stays=stays.get(index, ""),
                never=never,
                wanted=is_call or index in wanted or (execution.forced and not execution.failed),
            )
        )
        names |= bound
        for name in bound:
            looked_up.pop(name, None)
            in_values.pop(name, None)
        if source:
            looked_up.update(code.functions)
        if execution.effects is not None:
            in_values.update(_globals(execution.effects.looked_up, ever))
        if unseen and index == unseen[-1]:
            in_values.update(_globals(facts.looked_up, ever))
    return runs


def _bound_at_any_time(execution: Execution) -> frozenset[str]:
    effects = execution.effects
    return effects.bound | effects.between if effects else frozenset(reads_of(execution.source).bound)


def _globals(looked_up: Mapping[str, frozenset[str]], names: Collection[str]) -> dict[str, frozenset[str]]:
    """Return what code looks up without the names of attributes, which are no globals."""
    return {name: frozenset(one for one in of if one in names or "*" in one) for name, of in looked_up.items()}


def _never(execution: Execution, source: str, code: Reads, names: Collection[str]) -> str:
    """Return why an execution cannot run again."""
    if execution.skipped:
        return "tagged det-skip"
    if execution.language is not None:
        return f"`{execution.language}` {_NO_PYTHON}" if execution.language.startswith("%") else execution.language
    if execution.code.clears:
        return "removes all names"
    if execution.code.hidden:
        return f"runs `{execution.code.hidden[0]}`"
    if "input" in code.reads and "input" not in names:
        return "asks for input()"
    if all(isinstance(one, ast.Pass) for one in ast.parse(source).body):
        if execution.failed:
            return "its first statement did not end" if execution.failed_line is not None else "nothing of it ran"
        return NOTHING
    return ""


def _lost(execution: Execution, code: Reads, touched: frozenset[str]) -> frozenset[str]:
    """Return names that are not what they were once an execution has run again."""
    found = (execution.code.shell.keys() | (execution.repeated & touched)) - ALWAYS_THERE
    if execution.code.hidden:
        found |= touched - code.bound - code.stored_into
    if execution.failed and execution.logged.ending.interrupted:
        found |= touched
    return frozenset(found)


class _Lookups(NamedTuple):
    """Which names the functions and values of the names look up, and the names that cells have bound."""

    by_text: Mapping[str, frozenset[str]]
    in_values: Mapping[str, frozenset[str]]
    names: Collection[str]

    def of(self, name: str) -> list[str]:
        # Names of attributes are among those of code: text tells them apart.
        return sorted(self.by_text[name] if name in self.by_text else self.in_values.get(name, ()))


def _reads(code: Reads, lookups: _Lookups, texts: frozenset[str]) -> dict[str, Read]:
    """Return the names whose value from before an execution needs, those that functions look up among them."""
    found: dict[str, Read] = {}
    names = lookups.names
    waiting = [(name, Read((name,), line, name in code.certain)) for name, line in code.reads.items()]
    seen: dict[str, frozenset[str]] = {}  # which names of its own an execution had bound, by which this was reached
    while waiting:
        name, read = waiting.pop(0)
        known = code.known.get(read.path[0], frozenset()) - code.deleted
        if (name in seen and seen[name] <= known) or (len(read.path) > 1 and name in known):
            continue
        seen[name] = known & seen.get(name, known)
        if "*" in name:
            meant = matching(name, names) if name != "*" else texts & set(names)
            waiting += [(one, Read((*read.path[:-1], one), read.line, certain=False)) for one in sorted(meant)]
            continue
        # A loop that did not run here binds it, and reads it where it has one of before only if it gets there.
        own = name in code.bound and name not in code.certain
        asked = read.path == (name,) and (own or name in code.guarded)
        if name in names or not (asked or name in ALWAYS_THERE):
            found.setdefault(name, read)
        waiting += [(one, Read((*read.path, one), read.line, certain=False)) for one in lookups.of(name)]
    return found


def _effects(
    execution: Execution, code: Reads, facts: Facts, stars: Collection[str], is_call: bool
) -> tuple[frozenset[str], frozenset[str], frozenset[str], frozenset[str]]:
    """Return the names that an execution bound, removed and changed, and those that were changed before it ran."""
    effects = execution.effects
    if effects is None:  # nobody looked: its text tells
        bound = code.bound.union(code.late_bound, stars) | execution.code.shell.keys()
        touched = {name for name in code.stored_into | code.called if name in code.reads}
        changed = touched - bound - facts.fixed - ALWAYS_THERE
        return frozenset(bound), frozenset(code.deleted), frozenset(changed), frozenset()
    bound = set(effects.bound) | (execution.code.shell.keys() if not execution.failed else set())
    if is_call:  # `model = context.wrap_model(model)`: the name has the object that it had, as it was
        kept = code.reads.keys() - effects.changed - effects.unclear - effects.made
        bound |= code.surely.union(stars) - kept
    elif not execution.failed:
        bound |= code.surely.union(stars)
    changed = set(effects.changed | (effects.sampled & code.stored_into)) - bound
    changed |= set() if is_call else effects.unclear - bound
    return frozenset(bound), frozenset(effects.removed), frozenset(changed), effects.between
