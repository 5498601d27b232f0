"""From the log of executions, and what was seen of each, to those that a call needs: a pure function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from det_native.capture.execution import Execution, Facts, Missing, Slice
from det_native.capture.failure import since_call
from det_native.capture.redone import only_sets
from det_native.capture.slice_texts import late_settings_warning, listed, lost_problem, lower, unsure_warning
from det_native.capture.steps import ALWAYS_THERE, Step, Use, steps_of
from det_native.capture.transform import SHELL_MAGICS
from det_native.errors import Problem

_ROUNDS = 8


def slice_log(
    executions: Sequence[Execution],
    calling: int,
    call_line: int,
    *,
    needed: Collection[str] = (),
    forced: Collection[int] = (),
    cuts: Mapping[str, int] | None = None,
    facts: Facts | None = None,
) -> Slice:
    """Return the executions that the call needs, in the order of the log.

    Parameters
    ----------
    executions : sequence of Execution
        The log; ``executions[i].index == i``.
    calling : int
        Index of the execution that makes the call.
    call_line : int
        Line of that execution which is running.
    needed : collection of str
        Names that the call needs besides those that its cell reads.
    forced : collection of int
        Executions to include anyhow (``init()``'s own).
    cuts : mapping of name to int, optional
        Names sent by value, each with the execution after which its value held (-1: none touched it).
    facts : Facts, optional
    """
    steps = steps_of(executions, calling, call_line, facts or Facts())
    included: frozenset[int] = frozenset()
    for _ in range(_ROUNDS):  # an import is taken from an execution that is sent anyhow
        backwards = _Backwards(steps, calling, needed, forced, cuts or {}, included, facts or Facts())
        found = backwards.run()
        if frozenset(found.included) <= included:
            break
        included |= frozenset(found.included)
    _note_touched(found, steps, calling)
    return found


class _Backwards:
    """From the call to the beginning: what is still needed, and who made it."""

    def __init__(
        self,
        steps: Sequence[Step],
        calling: int,
        needed: Collection[str],
        forced: Collection[int],
        cuts: Mapping[str, int],
        included: frozenset[int],
        facts: Facts,
    ) -> None:
        self.steps, self.calling, self.needed = steps, calling, needed
        self.forced, self.cuts, self.included = frozenset(forced), cuts, included
        self.facts = facts
        self.given: set[str] = set()  # models whose weights of a later execution travel
        self.result = Slice()
        self.live: dict[str, Use] = {}
        self.reasons: dict[int, dict[str, None]] = defaultdict(dict)
        self.updates: dict[str, list[int]] = defaultdict(list)
        self.taken: dict[str, int] = {}  # imports, and the execution that they are taken from
        self.reported: set[tuple[str, str]] = set()

    def run(self) -> Slice:
        for step in reversed(self.steps[: self.calling + 1]):
            index = step.execution.index
            self._cut(index)
            if index == self.calling:
                self._include(step, "makes the call")
                for name in self.needed:
                    self.live.setdefault(name, Use(index, (name,), 0, certain=True))
            elif not step.execution.skipped:
                self._before(step)
            self._between(step)
        self._cut(-1)
        self._miss_all(self.live.keys())
        for name in list(self.updates):
            self._repeats(name)
        call = self.steps[self.calling]
        self.result.read = call.reads.keys() | call.bound
        self.result.included = {index: listed(self.reasons[index]) for index in sorted(self.reasons)}
        self.result.problems.reverse()
        return self.result

    def _before(self, step: Step) -> None:
        """Look at one execution before the call: is it needed?"""
        execution = step.execution
        if execution.clears:
            self._miss_all(self.live.keys())
            return
        if execution.failed:
            self._failed(step)
            if not execution.head:
                return
        self._miss_all(self.live.keys() & step.out_of_sight)
        defines, changes, unclear, removes = self._wanted(step)
        reasons = self._reasons(step, defines, changes, unclear)
        if execution.language is not None:  # nothing of it can be sent
            self._foreign(step, defines, changes, unclear)
            return
        for name in removes:
            use = self.live.pop(name)
            if name not in ALWAYS_THERE:
                self._miss(name, use)
        if not reasons:
            return
        for name in sorted(defines | changes):
            self._use(name, step, name in defines)
            if name in step.code.loops and self.live[name].user == self.calling:
                self.result.loops.add(name)
        self._include(step, *reasons, defines=defines, changes=changes | unclear)

    def _reasons(
        self, step: Step, defines: Collection[str], changes: Collection[str], unclear: Collection[str]
    ) -> list[str]:
        """Return why an execution is needed; nothing if it is not."""
        execution, index = step.execution, step.execution.index
        reasons = [f"defines `{name}`" for name in sorted(defines)]
        reasons += [f"changes `{name}`" for name in sorted(changes)]
        reasons += [f"may change `{name}`" for name in sorted(unclear)]
        if not self._is_reset(step):
            reasons += [f"sets {what}" for what in step.sets]
        reasons = reasons or [f"sets {what}" for what in step.perhaps]
        if execution.forced and not self._is_mended(execution):
            reasons.append("tagged det-include")
        if index in self.forced:
            reasons.append("calls init()")
        return reasons

    def _wanted(self, step: Step) -> tuple[set[str], set[str], set[str], set[str]]:
        """Return the needed names that an execution defines, changes, may change, and removes."""
        here = {name for name in self.live if name not in step.bound}
        defines, removes = self.live.keys() & step.bound, here & step.removed
        trained = self._trained(step.execution.index)
        changes, unclear = here & step.changed - trained, here & step.unclear - trained
        if step.execution.failed:
            redone = {name for name in changes | unclear if self._is_redone(name, step)}
            changes, unclear = changes - redone - step.lost, unclear - redone
            defines -= step.lost
        defines -= {name for name in sorted(defines) if self._imported_elsewhere(name, step)}
        return defines, changes - removes, unclear - removes, removes

    def _trained(self, index: int) -> frozenset[str]:
        """Return the models for which an execution need not run again: they get the weights that it came to."""
        found = self.facts.weights.get(index, frozenset()) & self.live.keys()
        self.result.weights += [(index, name) for name in sorted(found - self.given)]
        self.given |= found
        return found if index in self.facts.only_trains else frozenset()

    def _imported_elsewhere(self, name: str, step: Step) -> bool:
        """Whether a name that this execution imports is to be had from another one, which imports the same."""
        wanted = step.imports.get(name)
        if wanted is None or name not in step.surely:
            return False
        index = step.execution.index
        if name in self.taken:
            if self.taken[name] == index:
                del self.taken[name]
                return False
            return True
        same = [index]
        for earlier in reversed(self.steps[:index]):
            execution = earlier.execution
            if execution.skipped or name not in earlier.bound:
                continue
            if execution.failed and earlier.imports.get(name) == wanted and name in earlier.surely:
                continue
            if earlier.imports.get(name) != wanted or name not in earlier.surely or execution.clears:
                break
            same.append(execution.index)
        there = [one for one in same if one in self.included or one in self.reasons or one in self.forced]
        of_first = [one for one in same if self._text(one) == self._text(same[-1])]
        best = (there or of_first)[0]
        if best == index:
            return False
        self.taken[name] = best
        return True

    def _text(self, index: int) -> str:
        return self.steps[index].execution.text

    def _use(self, name: str, step: Step, defines: bool) -> None:
        """Note that a needed name comes from this execution, or was changed by it."""
        execution, index = step.execution, step.execution.index
        self.result.used.setdefault(index, set()).add(name)
        again = name in step.changed or (name in step.code.reads and name in step.bound)
        if again:
            self.updates[name].append(index)
        if defines and not again:
            self._repeats(name)
        if name in execution.shell:
            self._problem(
                f"{execution.label} uses `{execution.shell[name]}`; shell lines and magics do not run on the cluster.",
                f"Write it in Python, or send the result: values=['{name}'].",
            )
        elif name in execution.repeated and name not in step.code.bound:
            self._problem(
                f"`{name}` was changed by {lower(execution.label)}, which `%timeit` ran many times.",
                f"Set it in a cell without %timeit, or send its present value: values=['{name}'].",
            )

    def _include(self, step: Step, *reasons: str, defines: Collection[str] = (), changes: Collection[str] = ()) -> None:
        index = step.execution.index
        for reason in reasons:
            self.reasons[index].setdefault(reason)
        for name in defines:
            if name in step.surely:
                self.live.pop(name, None)
                self.given.discard(name)
            else:
                self.live[name] = self._first(name, index, optional=True)
        for name in changes:
            self.live[name] = self._first(name, index)
        reads, until = step.reads, step.until_call
        if until is not None and index not in self.forced:
            call, rest = since_call(step.execution.head, step.execution.until_call)
            since = call.bound | rest.bound | rest.stored_into | rest.called
            if until.code.bound >= set(defines) and since.isdisjoint({*defines, *changes}):
                reads = until.reads
                self.result.heads[index] = step.execution.until_call
                if not (call.loaded | call.stored_into).isdisjoint({*defines, *changes} - until.code.fixed):
                    self.result.untrained.add(index)
        for name, use in reads.items():
            self.live[name] = use
        self._miss_all(reads.keys() & step.out_of_sight)

    def _first(self, name: str, index: int, optional: bool = False) -> Use:
        use = self.live[name]
        return replace(use, user=index, optional=optional or use.optional)

    def _cut(self, index: int) -> None:
        """Names of which the value is sent need no execution up to the one after which it held."""
        for name in [name for name in self.live if self.cuts.get(name, -2) == index]:
            self._by_value(name)

    def _by_value(self, name: str) -> None:
        user = self.live.pop(name).user
        self.result.by_value[name] = min(user, self.result.by_value.get(name, user))
        self._repeats(name)

    def _between(self, step: Step) -> None:
        effects = step.execution.effects
        if effects is None:
            return
        for name in sorted(self.live.keys() & effects.between & self.cuts.keys()):
            if self.cuts[name] < step.execution.index:
                self._by_value(name)
        self._miss_all(self.live.keys() & effects.between)

    def _miss_all(self, names: Iterable[str]) -> None:
        for name in sorted(names):
            self._miss(name, self.live.pop(name))

    def _miss(self, name: str, use: Use) -> None:
        if name not in ALWAYS_THERE and not use.optional:
            missing = Missing(name, use.path, use.line, use.certain)
            self.result.missing.append((missing, self.steps[use.user].execution))

    def _failed(self, step: Step) -> None:
        """Say what is needed of a failed execution and cannot be made again: what the failed statement did itself."""
        unsure = []
        for name in sorted(self.live.keys() & step.doubtful.keys()):
            use, lost = self.live[name], name in step.lost
            if use.optional or self._is_redone(name, step):  # it was made again since
                continue
            self.result.doubtful[name] = min(use.user, self.result.doubtful.get(name, use.user))
            if lost and (len(use.path) == 1 or use.certain):
                self._problem(*lost_problem(name, use, self.steps[use.user].execution, step))
                if name in step.bound:
                    self.live.pop(name)
                continue
            unsure.append(name)
            if lost and name in step.bound:
                self.live[name] = replace(use, optional=True)
        if unsure:
            self._warn(unsure_warning(unsure, step.execution))
        if step.sets_late and not self._is_reset(step):
            self._warn(late_settings_warning(step))
        execution = step.execution
        if execution.forced and execution.last and not execution.head and not self._is_mended(execution):
            self._warn(f"{execution.label} is tagged det-include, but failed: it is not sent. Run it again.")

    def _is_redone(self, name: str, step: Step) -> bool:
        """Whether the execution that needs a name has changed it again as the failed one had."""
        use = self.live[name]
        redoes = use.user in self.reasons and step.execution.index in self.steps[use.user].redoes
        return redoes and name not in step.bound

    def _is_reset(self, step: Step) -> bool:
        """Whether what a failed execution has set for the process is set again by another that is sent."""
        return any(step.execution.index in self.steps[user].resets for user in self.reasons)

    def _is_mended(self, execution: Execution) -> bool:
        """Whether the cell of a failed execution was run again since, and has succeeded or makes the call."""
        if not execution.failed:
            return False
        later = (step.execution for step in self.steps[execution.index + 1 : self.calling + 1])
        return any(one.cell == execution.cell and not one.failed for one in later)

    def _foreign(
        self, step: Step, defines: Collection[str], changes: Collection[str], unclear: Collection[str]
    ) -> None:
        """A cell that is no Python: does the call need what it did?"""
        execution = step.execution
        shell = execution.language in SHELL_MAGICS
        uses = f"{execution.label} uses `{execution.language}`"
        what = "shell cells do not run on the cluster" if shell else "only Python cells run on the cluster"
        if defines or changes or execution.forced or execution.index in self.forced:
            self._problem(
                f"{uses}; {what}.",
                "Do the same in Python, declare the value with values=[...], or tag the cell det-skip if it is not "
                "needed.",
            )
        elif step.sets or unclear:
            did = [f"sets {one}" for one in step.sets] + [f"may change `{name}`" for name in sorted(unclear)]
            self._warn(f"{uses}, and {' and '.join(did)}; {what}. Do the same in Python if it is needed.")
        for name in defines:
            self.live.pop(name)

    def _repeats(self, name: str) -> None:
        """Is what is needed the work of one cell that ran several times?"""
        runs: dict[str, list[Execution]] = defaultdict(list)
        for index in reversed(self.updates.pop(name, [])):
            runs[self.steps[index].execution.cell].append(self.steps[index].execution)
        for repeated in runs.values():
            repeated = [each for each in repeated if not each.failed]  # a mended cell runs again, as it did here
            if len(repeated) > 1 and not all(only_sets(each.source, name) for each in repeated):
                numbers = ", ".join(f"[{execution.number}]" for execution in repeated)
                self._problem(
                    f"`{name}` was changed by a cell that ran {len(repeated)} times ({numbers}); the cluster would "
                    "run it once.",
                    f"Set it in one cell, pass it as a hyperparameter, or send its present value: values=['{name}'].",
                )

    def _problem(self, what: str, remedy: str) -> None:
        if (what, remedy) not in self.reported:
            self.reported.add((what, remedy))
            self.result.problems.append(Problem("", what, remedy))

    def _warn(self, text: str) -> None:
        if text not in self.result.warnings:
            self.result.warnings.append(text)


def _note_touched(found: Slice, steps: Sequence[Step], calling: int) -> None:
    """Say which execution last bound or changed each name."""
    for step in steps[: calling + 1]:
        index = step.execution.index
        if step.execution.skipped and index != calling:
            continue
        for name in step.bound | step.changed | step.unclear | step.removed | step.doubtful.keys():
            found.imported.pop(name, None)
            if name in step.imports and name in step.bound:
                found.imported[name] = step.imports[name]
            if name not in step.unclear and (name in step.bound | step.changed | step.removed):
                found.surely_touched[name] = index
            found.touched[name] = index
