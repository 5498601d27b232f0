"""From the log of executions to the ones that a call needs: a pure function, no I/O, no live objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from det_native.capture.analysis import Statement
from det_native.capture.flow import follow
from det_native.capture.records import Facts, Flow, Missing, Need, Step
from det_native.capture.watch import NOTHING_SEEN, Seen
from det_native.errors import Problem


@dataclass(frozen=True)
class Execution:
    """An execution of the log, transformed and analysed.

    Attributes
    ----------
    index : int
        Place in the log, from 0.
    number : int or None
        What the notebook shows in brackets.
    cell : str
        Identity of the cell: its id where the front end gives one, else its text.
    language : str or None
        The cell magic of a cell that is not Python (``%%bash``), None for Python.
    shell : mapping of name to str
        Names bound from the shell or by a magic, and the line that does it.
    magics : tuple of str
        Magics that run code out of sight (``%run``, ``%store -r``).
    skipped, forced : bool
        Tagged det-skip or det-include.
    seen : Seen
        Which values were seen to be others after it, and which to be the same.
    noted : bool
        The states of the streams of random numbers before it are known.
    """

    index: int
    number: int | None
    cell: str
    statements: tuple[Statement, ...] = ()
    language: str | None = None
    shell: Mapping[str, str] = field(default_factory=dict)
    magics: tuple[str, ...] = ()
    repeated: frozenset[str] = frozenset()
    failed: bool = False
    failed_line: int | None = None
    skipped: bool = False
    forced: bool = False
    clears: bool = False
    taken: frozenset[int] = frozenset()
    text: str = ""
    title: str = ""
    seen: Seen = NOTHING_SEEN
    noted: bool = False

    @property
    def label(self) -> str:
        """``Cell [7]``, as the notebook shows it."""
        if self.title:
            return self.title
        return f"Cell [{self.number}]" if self.number is not None else f"The code run before cell [{self.index + 1}]"


@dataclass
class Slice:
    """What to send: `included` maps indices of executions, in order, to the reason why.

    ``missing`` are names that nothing in the log binds: (name, path to it, label of the cell that uses it).
    ``by_value`` says which included execution first needs a name that is sent by value.
    """

    included: dict[int, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    missing: list[tuple[Missing, Execution]] = field(default_factory=list)
    by_value: dict[str, int] = field(default_factory=dict)
    loops: set[str] = field(default_factory=set)
    used: dict[int, set[str]] = field(default_factory=dict)
    flow: Flow = field(default_factory=Flow)


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
        What is known from the live namespace.
    """
    return _Slicer(executions, calling, call_line, facts or Facts(), cuts or {}).run(needed, forced)


class _Slicer:
    def __init__(
        self, executions: Sequence[Execution], calling: int, call_line: int, facts: Facts, cuts: Mapping[str, int]
    ) -> None:
        self.executions = {execution.index: execution for execution in executions}
        self.calling, self.call_line = calling, call_line
        self.facts, self.cuts = facts, cuts
        self.result = Slice()
        self.reasons: dict[int, dict[str, None]] = defaultdict(dict)
        self.reported: set[tuple[str, str]] = set()
        self.imports: list[tuple[int, Need]] = []  # needs that any of several executions can fill
        self.importers: dict[tuple[int, str], int] = {}  # the one that does, by user and name

    def run(self, needed: Collection[str], forced: Collection[int]) -> Slice:
        steps = list(self._steps())
        flow = follow(steps, self.facts, self.cuts, self.calling, needed)
        self.result.flow = flow
        self._include(self.calling, "makes the call")
        for index in forced:
            self._include(index, "calls init()")
        for execution in self.executions.values():
            if execution.forced and execution.index < self.calling:
                self._include(execution.index, "tagged det-include")
        self._effects()
        self._settle_imports()
        for index in sorted(self.reasons):
            self._check(index)
        self.result.included = {index: _listed(self.reasons[index]) for index in sorted(self.reasons)}
        return self.result

    def _steps(self) -> Iterator[Step]:
        between: frozenset[str] = frozenset()
        for execution in self.executions.values():
            between |= execution.seen.between
            if not execution.skipped or execution.index == self.calling:
                yield self._step(execution, execution.seen._replace(between=between))
                between = frozenset()

    def _step(self, execution: Execution, seen: Seen) -> Step:
        calling = execution.index == self.calling
        return Step(
            execution.index,
            execution.statements,
            execution.failed and not calling,
            execution.failed_line,
            self.call_line if calling else None,
            execution.taken,
            frozenset(execution.shell),
            execution.clears,
            execution.repeated,
            seen,
            execution.noted,
        )

    # Inclusion.

    def _include(self, index: int, reason: str) -> None:
        pending = [(index, reason)]
        while pending:
            current, why = pending.pop()
            known = current in self.reasons
            self.reasons[current].setdefault(why)
            if known:
                continue
            for need in self.result.flow.needs.get(current, {}).values():
                if need.again:
                    self.imports.append((current, need))
                    continue
                self._use(current, need)
                for maker in sorted(need.makers):
                    if self._usable(maker):
                        pending.append((maker, self._reason(maker, need.name)))

    def _settle_imports(self) -> None:
        """Take each import from an execution that is included anyhow; else from the first, or the last run of its cell.

        A cell that was run again is not sent twice for what it imports.
        """
        while self.imports:
            waiting, self.imports = sorted(self.imports, key=lambda one: one[0]), []
            for user, need in waiting:
                [first] = need.makers
                able = [one for one in (first, *sorted(need.again)) if one < user and self._usable(one)]
                there = [one for one in able if one in self.reasons]
                same_cell = [one for one in able if self.executions[one].text == self.executions[first].text]
                importer = (there or same_cell or able or [first])[-1]
                self.importers[user, need.name] = importer
                self.result.used.setdefault(importer, set()).add(need.name)
                if self._usable(importer):
                    self._include(importer, self._reason(importer, need.name))

    def _use(self, user: int, need: Need) -> None:
        if need.by_value:
            first = self.result.by_value.get(need.name, user)
            self.result.by_value[need.name] = min(first, user)
        if need.loop and user == self.calling:
            self.result.loops.add(need.name)
        for maker in need.makers:
            self.result.used.setdefault(maker, set()).add(need.name)

    def _usable(self, index: int) -> bool:
        execution = self.executions[index]
        return not execution.failed and execution.language is None

    def _reason(self, maker: int, name: str) -> str:
        verb = "changes" if name in self.result.flow.changes.get(maker, ()) else "uses"
        if name in self.result.flow.binds.get(maker, ()):
            verb = "defines"
        return f"{verb} {name if name.startswith('<') else f'`{name}`'}"

    def _effects(self) -> None:
        """Executions that set something for the whole process; of equal ones in a row only the last."""
        setting = [
            e
            for e in self.executions.values()
            if e.index < self.calling and not e.skipped and e.index in self.result.flow.effects
        ]
        later: dict[int, int] = {}
        for position, execution in enumerate(setting):
            same = [e.index for e in setting[position + 1 :] if e.cell == execution.cell and not e.failed]
            if same:
                later[execution.index] = same[0]
            elif self.executions[self.calling].cell == execution.cell:
                later[execution.index] = self.calling
        for execution in setting:
            if execution.index not in later:
                self._effect(execution)
        changed = True
        while changed:
            superseded = [i for i, j in later.items() if i not in self.reasons and any(i < k < j for k in self.reasons)]
            changed = bool(superseded)
            for index in superseded:
                self._effect(self.executions[index])
                later.pop(index)

    def _effect(self, execution: Execution) -> None:
        what = ", ".join(dict.fromkeys(self.result.flow.effects[execution.index]))
        if execution.failed:
            self.result.warnings.append(
                f"{execution.label} failed after it had set {what} for the whole process; that is not sent. Run "
                "it again."
            )
        elif execution.index not in self.reasons:
            self._include(execution.index, f"sets {what}")

    # Rules that make a slice wrong.

    def _check(self, index: int) -> None:
        execution = self.executions[index]
        if execution.failed and index != self.calling:
            self._problem(index, "", f"{execution.label} failed{_line(execution)}, but is needed.", "Run it again.")
        if execution.language is not None:
            self._foreign(execution)
        for need in self.result.flow.needs.get(index, {}).values():
            self._check_need(execution, need)
        for missing in self.result.flow.missing.get(index, {}).values():
            self.result.missing.append((missing, execution))

    def _check_need(self, user: Execution, need: Need) -> None:
        importer = self.importers.get((user.index, need.name))
        for index in sorted(need.makers) if importer is None else [importer]:
            maker = self.executions[index]
            if maker.failed:
                self._failed(user, need, maker)
            elif maker.language is not None:
                self._foreign(maker)
            elif need.name in maker.shell:
                self._problem(
                    index,
                    need.name,
                    f"{maker.label} uses `{maker.shell[need.name]}`; shell lines and magics do not run on the cluster.",
                    f"Write it in Python, or send the result: values=['{need.name}'].",
                )
            elif need.name in maker.repeated:
                self._problem(
                    index,
                    need.name,
                    f"`{need.name}` was changed by {maker.label[0].lower()}{maker.label[1:]}, which `%timeit` ran "
                    "many times.",
                    f"Set it in a cell without %timeit, or send its present value: values=['{need.name}'].",
                )
        for index in sorted(need.suspects):
            failed = self.executions[index]
            if not failed.failed:
                self._warn_of_between(need.name, failed)
                continue
            self._warn(
                need.name,
                f"{failed.label} failed{_line(failed)} while it was using `{need.name}`; should it have changed "
                "it, run the "
                f"cell that makes `{need.name}` again.",
            )
        self._check_repeats(need)

    def _warn_of_between(self, name: str, after: Execution) -> None:
        # Those before a skipped cell count for the next.
        skipped = [e for e in self.executions.values() if e.index <= after.index and e.seen.between]
        changed = ", ".join(f"`{one}`" for one in sorted(skipped[-1].seen.between))
        self._warn(
            name,
            f"{changed} was changed before {_lower(after.label)} ran, by no cell: a widget, a timer or a thread. "
            f"`{name}` may keep it; if so, run the cell that makes `{name}` again.",
        )

    def _failed(self, user: Execution, need: Need, maker: Execution) -> None:
        verb = "defined" if need.name in self.result.flow.binds.get(maker.index, ()) else "changed"
        self._problem(
            maker.index,
            need.name,
            f"`{need.name}`, used in {_lower(user.label)}{_via(need.path)}, was {verb} by {_lower(maker.label)}, which "
            f"failed{_line(maker)}.",
            "Fix that cell and run it, then submit again.",
        )

    def _foreign(self, execution: Execution) -> None:
        self._problem(
            execution.index,
            "",
            f"{execution.label} uses `{execution.language}`; shell cells do not run on the cluster."
            if execution.language in SHELL_MAGICS
            else f"{execution.label} uses `{execution.language}`; only Python cells run on the cluster.",
            "Do the same in Python, declare the value with values=[...], or tag the cell det-skip if it is not needed.",
        )

    def _check_repeats(self, need: Need) -> None:
        runs: dict[str, list[Execution]] = defaultdict(list)
        for index in need.updates:
            runs[self.executions[index].cell].append(self.executions[index])
        for repeated in runs.values():
            if len(repeated) < 2:
                continue
            numbers = ", ".join(f"[{execution.number}]" for execution in repeated)
            self._problem(
                repeated[0].index,
                need.name,
                f"`{need.name}` was changed by a cell that ran {len(repeated)} times ({numbers}); the cluster "
                "would run it "
                "once.",
                f"Set it in one cell, pass it as a hyperparameter, or send its present value: values=['{need.name}'].",
            )

    def _problem(self, index: int, name: str, what: str, remedy: str) -> None:
        if (what, remedy) not in self.reported:
            self.reported.add((what, remedy))
            self.result.problems.append(Problem("", what, remedy))

    def _warn(self, name: str, text: str) -> None:
        if text not in self.result.warnings:
            self.result.warnings.append(text)


SHELL_MAGICS = frozenset({"%%bash", "%%sh", "%%script", "%%cmd", "%%system", "%%!", "%%sx"})


def _line(execution: Execution) -> str:
    return f" at line {execution.failed_line}" if execution.failed_line is not None else ""


def _listed(reasons: Iterable[str]) -> str:
    """Return ``defines `x`, `y`; changes `z``` for reasons of one verb and one name each."""
    by_verb: dict[str, list[str]] = {}
    for reason in reasons:
        verb, _, what = reason.partition(" ")
        by_verb.setdefault(verb, []).append(what)
    return "; ".join(f"{verb} {', '.join(names)}" for verb, names in by_verb.items())


def _lower(label: str) -> str:
    return label[0].lower() + label[1:]


def _via(path: tuple[str, ...]) -> str:
    return f" ({' -> '.join(path)})" if len(path) > 1 else ""
