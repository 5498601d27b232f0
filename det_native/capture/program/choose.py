"""Which runs run again, which values travel, and what stays behind: a pure function.

What ran, runs again, as long as it is quick; what is expensive stays behind, with what depends on it. If the call needs
something of that, it travels as a value; what cannot travel is made again all the same, or refused.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from det_native.capture.program.records import Plan, Refusal, Run, Step, Travel, Value
from det_native.capture.program.settings import Settings, settings_of

#: Seconds that all runs together may take without anybody's asking.
SECONDS = 10.0
#: Seconds of these that nothing needs: each trial waits for them.
UNNEEDED_SECONDS = 1.0
#: Bytes of values that travel unasked.
ROOM = 64 << 20
#: Names that a program always has.
ALWAYS_THERE = frozenset(dir(builtins)) | {
    *("__name__", "__doc__", "__file__", "__builtins__", "__spec__", "__loader__", "__package__", "__annotations__"),
    *("display", "get_ipython"),
}
#: Why a value does not travel that could.
TOO_MUCH = f"values that are sent unasked come to more than {ROOM >> 20} MiB together"
#: Why a value does not travel that later runs have changed.
GONE = "its value of then is gone"
#: Why a run stays behind that would not be quick.
TOOK_LONG = "took long"
#: Why one stays behind that would be.
UNNEEDED = "nothing needs it"


def choose(
    runs: Sequence[Run],
    travel: Callable[[str], Travel],
    *,
    present: Collection[str],
    modules: Collection[str] = (),
    declared: Collection[str] = (),
) -> Plan:
    """Return what runs again, what travels and what stays behind.

    Parameters
    ----------
    runs : sequence of Run
        In their order; the last one makes the call.
    travel : callable
        Says of a name whether its present value can travel.
    present : collection of str
        Names that are there at the call.
    modules : collection of str
        Those of them that are modules, or classes of libraries.
    declared : collection of str
        Names that the user has sent by value.
    """
    while True:  # without those that nothing needs, others are quick enough
        plan = _Choice(runs, travel, present, modules, declared, quick(runs, SECONDS)).plan()
        idle = _unneeded(runs, plan)
        if not idle:
            return plan
        runs = [replace(run, stays=UNNEEDED) if index in idle else run for index, run in enumerate(runs)]


def _unneeded(runs: Sequence[Run], plan: Plan) -> frozenset[int]:
    """Return the runs that nothing needs and that would run again, but for the shortest ones: they take little."""
    again = [step.run for step in plan.steps if step.kind != "settings" and step.run not in plan.needed]
    idle = [index for index in again if not (runs[index].leaves or runs[index].sets or runs[index].stays)]
    return frozenset(idle) - _shortest(runs, idle, UNNEEDED_SECONDS)


def quick(runs: Sequence[Run], seconds: float) -> frozenset[int]:
    """Return the runs that are quick: the shortest ones, as long as they take no more than `seconds` together."""
    able = [index for index, run in enumerate(runs) if not (run.stays or run.never)]
    return _shortest(runs, able, seconds)


def _shortest(runs: Sequence[Run], able: Collection[int], seconds: float) -> frozenset[int]:
    """Return the shortest of some runs, as long as they take no more than `seconds` together."""
    shortest = sorted(able, key=lambda index: (runs[index].seconds, index))
    totals = accumulate(runs[index].seconds for index in shortest)
    return frozenset(index for index, total in zip(shortest, totals, strict=True) if total <= seconds)


@dataclass
class _Need:
    """A name that a run needs and that is not what it was: `maker` is the run that made it so, None if none did."""

    user: int
    name: str
    maker: int | None


@dataclass
class _State:
    """Where a walk through the runs has come to."""

    plan: Plan = field(default_factory=Plan)
    stale: dict[str, int | None] = field(default_factory=dict)  # names that are not what they were, and by whom
    known: set[str] = field(default_factory=lambda: set(ALWAYS_THERE))
    needs: list[_Need] = field(default_factory=list)


@dataclass
class _Choice:
    """Walks through the runs until all that is needed is there, or refused."""

    runs: Sequence[Run]
    travel: Callable[[str], Travel]
    present: Collection[str]
    modules: Collection[str]
    declared: Collection[str]
    quick: frozenset[int]
    forced: dict[int, Refusal | None] = field(default_factory=dict)
    carried: dict[tuple[int, str], int | None] = field(default_factory=dict)
    refused: dict[tuple[int, str], Refusal] = field(default_factory=dict)
    unlike: dict[tuple[int, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.call = len(self.runs) - 1
        self.unmade = set(self.present).difference(*(run.bound for run in self.runs))
        self.last_touch: dict[str, int] = {}
        for index, run in enumerate(self.runs):
            for name in run.touched | run.between:
                self.last_touch[name] = index
        for index, run in enumerate(self.runs):
            slow = not run.wanted and not run.never and not run.stays and index not in self.quick
            if slow and self._lost_settings(run, settings_of(run.source, (), self.modules, run.secret_lines)):
                self.forced[index] = None  # what it has set cannot travel

    def plan(self) -> Plan:
        state = self._walk()
        while state.needs:
            self._meet(state)
            state = self._walk()
        plan = state.plan
        plan.values = [
            Value(name, before, maker, self._is_built(name, before, state))
            for (before, name), maker in sorted(self.carried.items())
        ]
        plan.forced = {index: why for index, why in self.forced.items() if self._is_expensive(index)}
        plan.refusals = list(self.refused.values())
        for (_, name), maker in self.unlike.items():
            plan.unlike.setdefault(maker, set()).add(name)
        self._send_declared(plan)
        plan.needed = self._needed(plan)
        plan.steps = [step if step.run in plan.needed else step._replace(optional_from=1) for step in plan.steps]
        return plan

    # One way through the runs.

    def _walk(self) -> _State:
        state = _State()
        for index, run in enumerate(self.runs):
            state.stale |= dict.fromkeys(run.between)
            for before, name in self.carried:
                if before == index:
                    settled = self.refused.keys() | self.unlike.keys()
                    code = self._code(index, name, state)
                    state.needs += [need for need in code if (index, need.name) not in settled]
                    state.stale.pop(name, None)
                    state.known.add(name)
            bad = list(self._bad(index, state))
            why = self._why_not(index, run, bad, state)
            if why:
                self._leave(index, run, why, state)
            else:
                state.needs += [one for one in bad if (index, one.name) not in self.refused]
                self._run(index, run, state)
        return state

    def _bad(self, index: int, state: _State) -> Iterator[_Need]:
        """Yield what a run reads that is not what it was, or not there."""
        run = self.runs[index]
        for name, read in run.reads.items():
            if (index, name) in self.unlike:
                continue
            if name in state.stale:
                yield _Need(index, name, state.stale[name])
            elif name in run.lost:  # a magic of its own made it what it is
                yield _Need(index, name, index)
            elif name not in state.known and (
                read.is_direct or name in self.unmade or (index == self.call and name not in self.present)
            ):
                yield _Need(index, name, None)

    def _code(self, index: int, name: str, state: _State) -> Iterator[_Need]:
        """Yield the classes and functions that a value refers to, and that are not there."""
        for needed in sorted(self.travel(name).code):
            if needed in state.stale or needed not in state.known:
                yield _Need(index, needed, state.stale.get(needed))

    def _why_not(self, index: int, run: Run, bad: Sequence[_Need], state: _State) -> str:
        """Return why a run stays behind, empty if it runs again."""
        if run.never:
            return run.never
        if run.wanted or index in self.forced:
            return ""
        if run.stays:
            return run.stays
        if run.touched & set(self.declared):
            return f"`{min(run.touched & set(self.declared))}` is named in values="
        if index not in self.quick:
            return TOOK_LONG
        return f"uses {', '.join(f'`{one.name}`' for one in bad)}" if bad else ""

    def _run(self, index: int, run: Run, state: _State) -> None:
        kind, line = ("whole", None) if run.failed_line is None else ("until", run.failed_line)
        state.plan.steps.append(Step(index, kind, run.source, line, line))  # type: ignore[arg-type]
        for name in run.bound | run.removed:
            state.stale.pop(name, None)
        state.known |= run.bound
        state.known -= run.removed - run.bound - ALWAYS_THERE
        state.stale |= dict.fromkeys(run.lost | run.drawn, index)

    def _leave(self, index: int, run: Run, why: str, state: _State) -> None:
        state.plan.left[index] = why
        state.known |= run.bound
        settings = Settings()
        if run.source and not run.never:
            again = run.secret_lines | ({run.failed_line} if run.failed_line is not None else set())
            settings = settings_of(run.source, state.stale.keys(), self.modules, again)
        if settings.source:
            state.plan.steps.append(Step(index, "settings", settings.source))
        settled = (settings.names & run.bound) - run.changed
        if lost := self._lost_settings(run, settings):
            state.plan.lost_settings[index] = lost
        for name in settled:
            state.stale.pop(name, None)
        state.stale |= dict.fromkeys(run.touched - settled, index)

    @staticmethod
    def _lost_settings(run: Run, settings: Settings) -> tuple[str, ...]:
        """Return what a run has set for the process and its settings do not."""
        text = ast.unparse(ast.parse(settings.source)) if run.sets and settings.source else ""
        return tuple(one for one in run.sets if one not in text)

    # What is needed.

    def _meet(self, state: _State) -> None:
        """Have what is needed be made again, if some of it cannot travel; else have it travel."""
        stuck = [(need, travel) for need in state.needs if (travel := self._travels(need, state)).refused]
        makers = {
            need.maker: Refusal(need.name, need.user, need.maker, travel.refused)
            for need, travel in reversed(stuck)
            if need.maker is not None and self._can_force(need, state)
        }
        if makers:
            self.forced |= makers
            self.carried = {key: maker for key, maker in self.carried.items() if maker not in makers}
            return
        for need, travel in stuck:
            if need.maker is not None and need.name in self.runs[need.maker].drawn:
                self.unlike[need.user, need.name] = need.maker
                continue
            self.refused[need.user, need.name] = Refusal(need.name, need.user, need.maker, travel.refused)
        bound: set[str] = set()  # before an earlier run: a second copy would share nothing with what that one makes
        for need in sorted(state.needs, key=lambda need: need.user):
            settled = self.refused.keys() | self.unlike.keys() | {(need.user, name) for name in bound}
            if (need.user, need.name) not in settled and not self._travels(need, state).refused:
                self._carry(need, state)
                bound.add(need.name)

    def _carry(self, need: _Need, state: _State) -> None:
        """Have a value travel, and with it those that share objects with it, so that they still do so there."""
        waiting = [need]
        while waiting:
            one = waiting.pop()
            if self.carried.get((one.user, one.name), -1) != -1:
                continue
            later = [key for key in self.carried if key[1] == one.name and key[0] > one.user]
            for key in later if not self._is_touched(one.name, one.user) else ():
                del self.carried[key]
            self.carried[one.user, one.name] = one.maker
            shared = self._sharing(one.name, one.user)
            waiting += [also for also in shared if not self._travels(also, state).refused]

    def _sharing(self, name: str, user: int) -> Iterator[_Need]:
        """Yield the names that are needed later and share objects with one that travels."""
        for other in sorted(self.travel(name).shares):
            if other not in self.present or self._is_touched(other, user) or self.last_touch.get(other, user) >= user:
                continue
            data = self.travel(other).is_data
            if not data and any(other in run.reads for run in self.runs[user:]):
                yield _Need(user, other, self.last_touch[other])

    def _can_force(self, need: _Need, state: _State) -> bool:
        maker = self.runs[need.maker] if need.maker is not None else None
        return (
            maker is not None
            and not maker.never
            and need.maker not in self.forced
            and not maker.wanted
            and need.name not in maker.lost
            and not (need.name in maker.drawn and need.maker in self._running_again(state))
        )

    def _travels(self, need: _Need, state: _State) -> Travel:
        """Return whether the present value is the one that is needed, and can travel."""
        if need.name not in self.present or self._is_touched(need.name, need.user):
            return Travel(refused=GONE)
        travel = self.travel(need.name)
        if travel.refused:
            return travel
        is_built_there = travel.weights or need.maker in travel.wrapped_in
        if is_built_there and not self._is_built(need.name, need.user, state):
            return Travel(refused="an object that is not made here")
        if travel.holds_model:
            for also in self._sharing(need.name, need.user):
                other = self.travel(also.name)
                if other.refused or (other.weights and not self._is_built(also.name, also.user, state)):
                    return Travel(refused=f"shares a model with `{also.name}`, which cannot travel")
        if need.name not in self.declared:
            names = {name for _, name in self.carried} | {need.name}
            if sum(self.travel(name).size for name in names if name not in self.declared) > ROOM:
                return Travel(travel.size, TOO_MUCH)
        return travel

    def _is_touched(self, name: str, since: int) -> bool:
        """Whether a run from `since` on has made a name another one than it was before it."""
        last = self.last_touch.get(name, -1)
        if last == since:
            return name in self.runs[since].touched
        return last > since

    def _is_built(self, name: str, before: int, state: _State) -> bool:
        """Whether the object that a name has before a run is made by one that runs again."""
        runs = [*enumerate(self.runs[:before])]
        # What a run that failed has changed in place is still the object that was there before it.
        binders = [index for index, run in runs if name in run.bound | (run.lost - run.changed) | run.removed]
        others = [index for index, run in runs if name in run.between]
        return bool(binders) and binders[-1] in self._running_again(state) and max(others, default=-1) <= binders[-1]

    @staticmethod
    def _running_again(state: _State) -> set[int]:
        return {step.run for step in state.plan.steps if step.kind != "settings"}

    def _send_declared(self, plan: Plan) -> None:
        """What the user has named travels even if the cell that makes it runs again for something else."""
        for name in self.declared:
            since = self.last_touch.get(name, -1)
            users = [step.run for step in plan.steps if step.run > since and name in self.runs[step.run].reads]
            if users and all(value.name != name for value in plan.values):
                plan.values.append(Value(name, users[0], since if since >= 0 else None))

    def _needed(self, plan: Plan) -> frozenset[int]:
        """Return the runs without which the call cannot be made."""
        needed = {self.call}
        live = set(self.runs[self.call].reads)
        for step in reversed(plan.steps):
            run = self.runs[step.run]
            if step.run in needed or run.wanted or step.run in self.forced or not run.touched.isdisjoint(live):
                needed.add(step.run)
                live -= run.bound if step.kind != "settings" else set()
                live |= run.reads.keys()
            travelling = {value.name for value in plan.values if value.before == step.run}
            live -= {name for name in travelling if not self.travel(name).weights}
        return frozenset(needed)

    def _is_expensive(self, index: int) -> bool:
        run = self.runs[index]
        return bool(run.stays) or index not in self.quick
