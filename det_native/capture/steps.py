"""Forwards through the log: what each execution read, bound and changed."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from det_native.capture.execution import Execution, Facts
from det_native.capture.reads import Import, Reads, reads_of

#: Names that a program always has.
ALWAYS_THERE = frozenset(dir(builtins)) | {"__name__", "__doc__", "__builtins__", "__spec__", "__loader__"}


@dataclass(frozen=True)
class Use:
    """Who needs a name, by which way, and whether whenever it runs."""

    user: int
    path: tuple[str, ...]
    line: int
    certain: bool
    optional: bool = False


@dataclass
class Step:
    """What one execution did with names.

    Attributes
    ----------
    reads : dict of str to Use
        Names of which it needs the value from before.
    bound, surely : set of str
        Names that it bound, and those of them that it binds whatever happens.
    changed, unclear : set of str
        Names whose value it changed, and those of which that cannot be told.
    imports : dict of str to Import
    out_of_sight : set of str
        Names that were bound or changed by code that is in no cell: a file that ``%run`` ran.
    sets : list of str
        What it sets for the whole process.
    """

    execution: Execution
    code: Reads
    reads: dict[str, Use] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    surely: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    unclear: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    imports: dict[str, Import] = field(default_factory=dict)
    out_of_sight: set[str] = field(default_factory=set)
    sets: list[str] = field(default_factory=list)


def steps_of(executions: Sequence[Execution], calling: int, call_line: int, facts: Facts) -> list[Step]:
    """Go through the log forwards: what each execution read, bound and changed."""
    looked_up: dict[str, frozenset[str]] = {}
    asks = any("__subclasses__" in execution.source for execution in executions)
    imported: set[str] = set()
    steps: list[Step] = []
    seen_before = [each for each in executions if each.effects is None]
    last_unseen = seen_before[-1].index if seen_before else -1
    for execution in executions:
        step = Step(execution, _code_of(execution, calling, call_line))
        if not execution.skipped or execution.index == calling:
            _reads(step, looked_up)
            _effects(step, facts, execution.index == calling)
            if asks and execution.effects is not None:
                step.unclear |= execution.effects.derived - step.bound - step.changed
            imported = (imported - step.bound) | step.imports.keys()
            step.sets = _settings(step, imported)
            for name in step.bound:
                looked_up.pop(name, None)
            looked_up.update(step.code.functions)
            if execution.effects is not None:
                looked_up.update(execution.effects.looked_up)
            if execution.index == last_unseen:
                looked_up.update(facts.looked_up)
        steps.append(step)
    return steps


def _code_of(execution: Execution, calling: int, call_line: int) -> Reads:
    if execution.index == calling:
        return reads_of(execution.source, last=call_line)
    if not execution.source or execution.language is not None:
        return Reads()
    if execution.failed and execution.failed_line is not None:
        return reads_of(execution.source, last=execution.failed_line, without=execution.taken)
    return reads_of(execution.source)


def _reads(step: Step, looked_up: Mapping[str, frozenset[str]]) -> None:
    waiting: list[tuple[str, Use]] = []
    index = step.execution.index
    for name, line in step.code.reads.items():
        waiting.append((name, Use(index, (name,), line, name in step.code.certain)))
    while waiting:
        name, use = waiting.pop(0)
        if name in step.reads:
            continue
        step.reads[name] = use
        for inner in sorted(looked_up.get(name, ())):
            waiting.append((inner, Use(index, (*use.path, inner), use.line, certain=False)))


def _effects(step: Step, facts: Facts, calling: bool) -> None:
    execution, code = step.execution, step.code
    stars = {name: Import(one[0], name, one[1]) for one in code.stars for name in facts.stars.get(one, ())}
    step.imports = {**code.imports, **stars}
    effects = execution.effects
    shell = set(execution.shell)
    sure = code.surely | stars.keys() if not execution.failed else set()
    if effects is None:
        step.bound, step.surely, step.removed = code.bound | stars.keys() | shell, sure | shell, set(code.deleted)
        touched = {name for name in code.stored_into | code.called if name in code.reads}
        step.changed = code.stored_into & code.reads.keys() - step.bound
        step.unclear = touched - facts.fixed - ALWAYS_THERE - step.changed
        return
    bound = set(effects.bound)
    if calling:
        bound |= code.bound | stars.keys()
        sure = code.surely | stars.keys()
    step.bound = bound | sure | shell
    step.surely = (sure & step.bound) | (bound - code.bound) | shell
    step.changed = set(effects.changed | (effects.sampled & code.stored_into)) - step.bound
    step.unclear = set() if calling else set(effects.unclear) - step.bound - step.changed
    step.removed = set(effects.removed)
    if execution.magics:
        step.out_of_sight = (bound | step.changed) - code.bound - code.stored_into


def _settings(step: Step, imported: Collection[str]) -> list[str]:
    """What an execution sets for the whole process: as it was seen, or as its text says."""
    effects = step.execution.effects
    found = [] if effects is None or step.execution.taken else sorted(effects.process)
    found += [f"something of `{name}`" for name in sorted(step.code.stored_into & set(imported))]
    if any(one.module == "__future__" for one in step.imports.values()):
        found.append("how later cells are compiled")
    if effects is None:
        found += [f"something by `{name}`, perhaps" for name in sorted(step.code.for_effect & set(imported))]
    return found
