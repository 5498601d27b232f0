"""Forwards through the log: what each execution read, bound and changed."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from det_native.capture.execution import Execution, Facts
from det_native.capture.failure import binds_early, doubtful_names, effects_again, global_names, reached_by
from det_native.capture.named_by_text import matching
from det_native.capture.reads import reads_of
from det_native.capture.reads_record import Import, Reads
from det_native.capture.redone import Done, does_again, done_before_failure, sets_again, shared_statement

#: Names that a program always has.
ALWAYS_THERE = frozenset(dir(builtins)) | {"__name__", "__doc__", "__builtins__", "__spec__", "__loader__"}


#: What shows and submits: it sets nothing that a training has from it.
_TOOLS = frozenset({"IPython", "det_native"})


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
    perhaps : list of str
        What it may set, if it is in for nothing else.
    redoes : set of int
        Failed executions all of whose work it does again.
    resets : set of int
        Failed executions all of whose settings of the process it makes again.
    doubtful : dict of str to bool
        Names that the statement which failed may have changed; True where nothing else of the cell can have.
    until_call : Step or None
        Of an execution that failed behind a training call: what it did before that call.
    sets_late : list of str
        What the statement that failed may have set for the whole process.
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
    perhaps: list[str] = field(default_factory=list)
    redoes: set[int] = field(default_factory=set)
    resets: set[int] = field(default_factory=set)
    doubtful: dict[str, bool] = field(default_factory=dict)
    until_call: Step | None = None
    sets_late: list[str] = field(default_factory=list)

    @property
    def lost(self) -> set[str]:
        """Names of which nothing but the statement that failed made what they are."""
        return {name for name, certain in self.doubtful.items() if certain}


def steps_of(executions: Sequence[Execution], calling: int, call_line: int, facts: Facts) -> list[Step]:
    """Go through the log forwards: what each execution read, bound and changed."""
    looked_up: dict[str, frozenset[str]] = {}
    imported: set[str] = set()
    tools: set[str] = set()
    setters: set[str] = set()
    drew: set[str] = set()  # texts that seed a stream, or draw from it
    plain = {name for name in facts.fixed if name not in facts.looked_up}  # code, and what cannot change
    names: set[str] = {*facts.looked_up, *facts.fixed}
    written = frozenset().union(*(global_names(each.source) for each in executions if not each.language))
    steps: list[Step] = []
    seen_before = [each for each in executions if each.effects is None]
    last_unseen = seen_before[-1].index if seen_before else -1
    undone = _Undone()
    for execution in executions:
        step = Step(execution, _code_of(execution, calling, call_line))
        if not execution.skipped or execution.index == calling:
            _reads(step, looked_up, names, executions)
            _effects(step, facts, execution.index == calling)
            imported = (imported - step.bound) | step.imports.keys()
            step.sets = _settings(step, imported)
            plain = (plain - step.bound) | _plain_names(step)
            tools = (tools - step.bound) | {name for name, one in step.imports.items() if _top(one) in _TOOLS}
            drew |= {execution.source} if execution.drew else set()
            setters = (setters - step.bound) | (step.code.setters & step.bound)
            step.perhaps = _called_for_effect(step, imported - tools, plain, setters, execution.source in drew)
            if execution.failed:
                _divide(step, looked_up, plain, written, imported)
                _reads_until_call(step, looked_up, names, executions)
            undone.after(step, looked_up)
            names |= step.bound
            for name in step.bound:
                looked_up.pop(name, None)
            looked_up.update(step.code.functions)
            if execution.effects is not None:
                looked_up.update(execution.effects.looked_up)
            if execution.index == last_unseen:
                looked_up.update(facts.looked_up)
        else:
            undone.skipped(step)
        steps.append(step)
    return steps


@dataclass
class _Failed:
    """A failed execution whose work was not done again until now."""

    step: Step
    done: Done
    names: set[str]
    same: bool = True  # what its text reads is what it was


class _Undone:
    """Changes by executions that are not sent: whoever makes them again is needed, though nothing is another by it."""

    def __init__(self) -> None:
        self._failed: list[_Failed] = []
        self._settings: list[tuple[Step, Done]] = []
        self._skipped: dict[str, tuple[str, set[str]]] = {}  # the text that changed it, and those that did so since

    def skipped(self, step: Step) -> None:
        """Take note of an execution that is tagged det-skip."""
        effects = step.execution.effects
        names = effects.changed | effects.bound if effects is not None else step.code.stored_into
        for name in names:
            self._skipped[name] = (step.execution.source, set())

    def after(self, step: Step, looked_up: Mapping[str, frozenset[str]]) -> None:
        """Take note of any other execution: it has failed, or has done such work again."""
        execution = step.execution
        if execution.failed:
            done = done_before_failure(execution.source, execution.failed_line, execution.missing)
            if done is not None and step.changed:
                self._failed.append(_Failed(step, done, set(step.changed)))
            if done is not None and (step.sets or step.sets_late):
                self._settings.append((step, done))
            return
        for other, done in self._settings[:]:
            if effects_again(done.whole, execution.source):
                step.resets.add(other.execution.index)
                step.sets += [one for one in (*other.sets, *other.sets_late) if one not in step.sets]
                self._settings.remove((other, done))
        for failed in self._failed[:]:
            if self._redone(failed, step, looked_up):
                step.redoes.add(failed.step.execution.index)
                step.changed |= failed.names - step.bound
                self._failed.remove(failed)
            failed.names -= step.bound | step.removed
            failed.same = failed.same and not (
                (step.bound | step.changed | step.unclear) & _names_of(failed.done.all, looked_up)
            )
        for name, (text, since) in self._skipped.items():
            if execution.source in since or name in step.bound | step.changed:
                continue
            shared = name in step.code.called and shared_statement(text, execution.source, name)
            if name in step.code.stored_into or shared:
                since.add(execution.source)
                step.changed.add(name)
        for name in step.surely:
            self._skipped.pop(name, None)

    @staticmethod
    def _redone(failed: _Failed, step: Step, looked_up: Mapping[str, frozenset[str]]) -> bool:
        source = step.execution.source
        names = failed.names - step.surely
        if not names or failed.names != failed.step.changed:
            return False

        def reach(name: str) -> set[str]:
            return _all_looked_up(name, looked_up)

        seen = step.execution.effects.changed if step.execution.effects is not None else step.changed
        if failed.same and names.isdisjoint(seen | step.unclear) and does_again(failed.done, source, names, reach):
            return True
        return sets_again(failed.done.all, source, names, reach)


def _names_of(done: Sequence[ast.stmt], looked_up: Mapping[str, frozenset[str]]) -> set[str]:
    names = {node.id for one in done for node in ast.walk(one) if isinstance(node, ast.Name)}
    return names.union(*(_all_looked_up(name, looked_up) for name in names))


def _all_looked_up(name: str, looked_up: Mapping[str, frozenset[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [*looked_up.get(name, ())]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting.extend(looked_up.get(one, ()))
    return found


def _code_of(execution: Execution, calling: int, call_line: int) -> Reads:
    if execution.index == calling:
        return reads_of(execution.source, last=call_line)
    if not execution.source or execution.language is not None:
        return Reads()
    if execution.failed:
        return reads_of(execution.head, without=execution.taken)
    return reads_of(execution.source)


def _reads(
    step: Step, looked_up: Mapping[str, frozenset[str]], names: Collection[str], executions: Sequence[Execution]
) -> None:
    """Note of which names an execution needs the value from before, those that functions look up among them."""
    index, code = step.execution.index, step.code
    waiting: list[tuple[str, Use]] = []
    for name, line in code.reads.items():
        waiting.append((name, Use(index, (name,), line, name in code.certain)))
    seen: dict[str, frozenset[str]] = {}  # which names of its own an execution had bound, by which this was reached
    while waiting:
        name, use = waiting.pop(0)
        known = code.known.get(use.path[0], frozenset()) - code.deleted
        if name in seen and seen[name] <= known:
            continue
        if len(use.path) > 1 and name in known:
            continue
        seen[name] = known & seen.get(name, known)
        if "*" in name:
            meant = matching(name, names) if name != "*" else _texts_of(executions) & set(names)
            path = use.path[:-1]
            waiting += [(one, Use(index, (*path, one), use.line, certain=False)) for one in sorted(meant)]
            continue
        step.reads.setdefault(name, use)
        for inner in sorted(looked_up.get(name, ())):
            waiting.append((inner, Use(index, (*use.path, inner), use.line, certain=False)))


def _texts_of(executions: Sequence[Execution]) -> frozenset[str]:
    """Return the texts in all cells: a name that is computed is one of them, most likely."""
    return frozenset().union(*(reads_of(one.source).texts for one in executions if one.source and not one.language))


def _divide(
    step: Step,
    looked_up: Mapping[str, frozenset[str]],
    plain: Collection[str],
    written: Collection[str],
    imported: Collection[str],
) -> None:
    """Tell apart what a failed execution did before the statement that failed, and what that one may have done."""
    execution, code, effects = step.execution, step.code, step.execution.effects
    if execution.language is not None:
        step.doubtful = dict.fromkeys(step.bound | step.changed, True) | dict.fromkeys(step.unclear, False)
        return
    known = {**looked_up, **code.functions, **(effects.looked_up if effects is not None else {})}
    if execution.last:
        last = reads_of(execution.last)
        step.doubtful = doubtful_names(effects, code, last, execution.last, known, plain, written)
        alone = not (code.called or code.stored_into or code.imports)
        if alone or (binds_early(execution.last) and not (last.stored_into | last.for_effect).isdisjoint(imported)):
            step.sets_late = step.sets
        step.sets = [] if alone else step.sets
    reach = reached_by(code, known)
    if reach.isdisjoint(step.unclear | step.changed | step.bound):
        step.unclear = set()
    step.surely -= step.doubtful.keys() - code.surely
    step.bound |= step.lost if effects is None else set()


def _reads_until_call(
    step: Step, looked_up: Mapping[str, frozenset[str]], names: Collection[str], executions: Sequence[Execution]
) -> None:
    """Of an execution that failed behind a training call: note what it needs until there."""
    execution = step.execution
    if execution.until_call:
        step.until_call = Step(execution, reads_of(execution.until_call))
        _reads(step.until_call, looked_up, names, executions)


def _effects(step: Step, facts: Facts, calling: bool) -> None:
    execution, code = step.execution, step.code
    stars = {name: Import(one[0], name, one[1]) for one in code.stars for name in facts.stars.get(one, ())}
    step.imports = {**code.imports, **stars}
    effects = execution.effects
    shell = execution.shell.keys() & code.bound if execution.failed and not execution.language else {*execution.shell}
    sure = code.surely | stars.keys()
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


def _top(imported: Import) -> str:
    return imported.module.partition(".")[0]


def _plain_names(step: Step) -> set[str]:
    """Names that an execution bound to modules, functions, classes, or values that cannot change."""
    fixed = step.execution.effects.fixed if step.execution.effects is not None else frozenset()
    return {name for name in step.bound if name in step.imports or name in step.code.functions or name in fixed}


def _called_for_effect(
    step: Step, imported: Collection[str], plain: Collection[str], setters: Collection[str], drew: bool
) -> list[str]:
    """What a cell that costs little called for its effect, though none was seen: a library may keep it.

    What it is given must be no data, so that it brings nothing along: looking at data and plotting them are calls, too.
    `drew`: that a library moved a stream of random numbers was seen, and such streams are set on the worker.
    Whether it printed anything says nothing: what sets a seed or loads a file of settings often prints that it did.
    """
    execution, code = step.execution, step.code
    if execution.number is None:  # a front end ran it for itself: it is no cell
        return []
    if step.sets or execution.effects is None or execution.dear or execution.shown or execution.failed:
        return []
    if any(name not in plain and name not in ALWAYS_THERE for name in step.reads):
        return []
    own = step.reads.keys() - set(imported) - ALWAYS_THERE  # registered somewhere: get_custom_objects().update(...)
    called = code.for_effect & (set(imported) | set(setters)) - (set() if own else code.chained)
    if not code.for_effect.isdisjoint(ALWAYS_THERE):
        called |= code.given & set(imported)
    if drew:
        called -= set(imported)
    return [f"something by `{name}`, perhaps" for name in sorted(called)]


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
