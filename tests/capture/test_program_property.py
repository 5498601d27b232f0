"""Whatever order cells ran in, and whichever of them are expensive: the plan gives the values that the call saw."""

from __future__ import annotations

import ast
import copy
from dataclasses import replace
from typing import Any

from histories import EXAMPLES, NAMES, QUICK, failing_line, history, program, total
from hypothesis import example, given, settings
from hypothesis import strategies as st

from det_native.capture.execution import Facts
from det_native.capture.program.choose import choose
from det_native.capture.program.records import Plan, Run, Travel
from det_native.capture.program.runs import runs_of

MANY = settings(max_examples=EXAMPLES if EXAMPLES <= QUICK else max(1000, EXAMPLES))
SLOW = 20.0
places = st.sets(st.integers(0, 10), max_size=4)
Drawn = tuple[list[str], list[int]]


def planned(drawn: Drawn, slow: set[int], stay: set[int], cannot: set[str]) -> tuple[Plan, list[Run], dict[str, Any]]:
    """Run a history, and choose what of it runs again."""
    log, live = history(*drawn)
    runs = runs_of(log, 1, Facts(fixed=frozenset({"total"})), seconds=dict.fromkeys(slow, SLOW))
    runs = [
        replace(run, stays="trained") if place in stay and place < len(runs) - 1 else run
        for place, run in enumerate(runs)
    ]
    runs[0] = replace(runs[0], bound=runs[0].bound | {"total"})
    plan = choose(runs, lambda name: travel(name, live, cannot), present=live.keys())
    return plan, runs, live


def travel(name: str, live: dict[str, Any], cannot: set[str]) -> Travel:
    """Say that numbers and lists travel, but for some."""
    if name in cannot or callable(live[name]):
        return Travel(refused="a function")
    return Travel(size=len(repr(live[name])))


def replayed(plan: Plan, live: dict[str, Any]) -> dict[str, Any]:
    """Run a plan as a worker does, up to the call."""
    fresh: dict[str, Any] = {"__name__": "__main__", "total": total}
    for step in plan.steps:
        for value in plan.values:
            if value.before == step.run:
                fresh[value.name] = copy.deepcopy(live[value.name])
        line = failing_line(step.source, fresh)
        if line is not None:
            assert step.optional_from is not None, step
            assert line >= step.optional_from, step
    return fresh


#: A cell changes an object by way of a name to which it gives another value then.
REPLACED = (["c[0].append(0)\nfor i in range(1):\n    c = i"], [0])
#: A list of a loop lies where the one was that it has replaced.
AT_THE_SAME_PLACE = (["a = 0", "for i in range(2):\n    b = [a]\n    b.append(1 // (1 - i))"], [1, 0, 1])


@MANY
@given(drawn=program, slow=places, stay=places, cannot=st.sets(st.sampled_from(NAMES)))
@example(drawn=REPLACED, slow=set(), stay={1}, cannot=set())
@example(drawn=AT_THE_SAME_PLACE, slow=set(), stay={3}, cannot=set())
def test_the_plan_gives_the_values_of_the_kernel(
    drawn: Drawn, slow: set[int], stay: set[int], cannot: set[str]
) -> None:
    plan, _, live = planned(drawn, slow, stay, cannot)
    if not live.keys() >= set(NAMES):
        return
    assert not plan.refusals
    fresh = replayed(plan, live)
    assert {name: repr(fresh[name]) for name in NAMES} == {name: repr(live[name]) for name in NAMES}


@MANY
@given(drawn=program, slow=places, stay=places)
def test_expensive_cells_stay_behind_where_all_that_they_make_travels(
    drawn: Drawn, slow: set[int], stay: set[int]
) -> None:
    plan, runs, live = planned(drawn, slow, stay, set())
    if not live.keys() >= set(NAMES):
        return
    whole = {step.run for step in plan.steps if step.kind != "settings"}
    functions = {name for name, value in live.items() if callable(value)}
    for index in whole & (slow | stay) - {len(runs) - 1}:
        refusal = plan.forced[index]
        name = refusal.name if refusal is not None else ""
        assert name in functions or any(name in run.touched for run in runs[index + 1 :]), (index, name)


@MANY
@given(drawn=program)
def test_all_that_is_quick_runs_again(drawn: Drawn) -> None:
    plan, runs, live = planned(drawn, set(), set(), set())
    if not live.keys() >= set(NAMES):
        return
    assert not plan.values
    assert [step.run for step in plan.steps] == [place for place, run in enumerate(runs) if not run.never]
    for step in plan.steps:
        assert ast.parse(step.source).body, step
