"""What runs again, what travels and what stays behind: short histories, each for one rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from det_native.capture.execution import Execution, Facts
from det_native.capture.failure import divide
from det_native.capture.log import Ending, LoggedExecution, Seen
from det_native.capture.program.choose import ROOM, choose
from det_native.capture.program.records import Plan, Refusal, Travel
from det_native.capture.program.runs import runs_of
from det_native.capture.program.settings import settings_of
from det_native.capture.transform import Transformed
from det_native.capture.watch import Effects

SLOW = 20.0
CALL = "fit(x)"


def execution(
    index: int,
    source: str,
    bound: str = "",
    changed: str = "",
    process: str = "",
    *,
    code: Transformed | None = None,
    ending: Ending | None = None,
    **known: Any,
) -> Execution:
    effects = Effects(
        bound=frozenset(bound.split()), changed=frozenset(changed.split()), process=frozenset(process.split())
    )
    seen = Seen(effects=effects)
    logged = LoggedExecution(index, index + 1, source, ending=ending or Ending(), seen=seen)
    return Execution(logged, code or Transformed(source), source, **known)


def planned(
    *cells: Execution,
    slow: tuple[int, ...] = (),
    stays: Mapping[int, str] | None = None,
    travels: Mapping[str, Travel] | None = None,
    declared: tuple[str, ...] = (),
    seconds: Mapping[int, float] | None = None,
    present: str = "",
) -> Plan:
    """Choose for cells of which the last one makes the call; all values travel but those that `travels` tells of."""
    took = {**dict.fromkeys(slow, SLOW), **(seconds or {})}
    runs = runs_of(cells, 1, Facts(), stays=stays, seconds=took)
    names = {name for run in runs for name in run.bound} | set(present.split())
    known = travels or {}
    return choose(
        runs, lambda name: known.get(name, Travel(size=8)), present=names, modules=("os", "plt"), declared=declared
    )


def names(forced: Mapping[int, Refusal | None]) -> dict[int, str]:
    return {index: refusal.name for index, refusal in forced.items() if refusal is not None}


def steps(plan: Plan) -> list[tuple[int, str]]:
    return [(step.run, step.kind) for step in plan.steps]


FIT = execution(0, "from det_stand_in import fit", "fit")


def test_all_that_is_quick_runs_again_and_what_nothing_needs_is_optional() -> None:
    plan = planned(FIT, execution(1, "x = 1", "x"), execution(2, "print(3)"), execution(3, CALL))
    assert steps(plan) == [(0, "whole"), (1, "whole"), (2, "whole"), (3, "whole")]
    assert [step.optional_from for step in plan.steps] == [None, None, 1, None]


def test_the_shortest_runs_are_quick_as_long_as_they_take_ten_seconds_together() -> None:
    cells = [
        FIT,
        *(execution(i, f"n{i} = 1", f"n{i}") for i in (1, 2, 3)),
        execution(4, "x = n1 + n2 + n3", "x"),
        execution(5, CALL),
    ]
    plan = planned(*cells, seconds={1: 6.0, 2: 3.0, 3: 5.0, 4: 1.0})
    assert plan.left == {1: "took long"}
    assert {step.run for step in plan.steps if step.kind == "whole"} == {0, 2, 3, 4, 5}


def test_what_nothing_needs_runs_again_for_a_second_at_most() -> None:
    cells = [FIT, *(execution(i, f"n{i} = 1", f"n{i}") for i in (1, 2, 3, 4)), execution(5, "x = 1", "x")]
    plan = planned(*cells, execution(6, CALL), seconds={1: 0.7, 2: 5.4, 3: 0.2, 4: 9.0, 5: 6.0})
    assert plan.left == {2: "nothing needs it", 4: "took long"}
    assert {step.run for step in plan.steps if step.kind == "whole"} == {0, 1, 3, 5, 6}


def test_what_a_slow_run_made_travels_and_what_reads_it_stays_behind() -> None:
    cells = (FIT, execution(1, "raw = open('f')", "raw"), execution(2, "x = raw + 1", "x"), execution(3, CALL))
    plan = planned(*cells, slow=(1,))
    assert steps(plan) == [(0, "whole"), (3, "whole")]
    assert [(value.name, value.before, value.maker) for value in plan.values] == [("x", 3, 2)]
    assert plan.left == {1: "took long", 2: "uses `raw`"}


def test_a_slow_run_runs_again_if_what_is_needed_of_it_cannot_travel() -> None:
    cells = (FIT, execution(1, "x = open('f')", "x"), execution(2, CALL))
    plan = planned(*cells, slow=(1,), travels={"x": Travel(refused="a generator")})
    assert steps(plan) == [(0, "whole"), (1, "whole"), (2, "whole")]
    assert names(plan.forced) == {1: "x"}
    assert not plan.refusals


def test_values_of_more_than_there_is_room_for_are_made_again() -> None:
    cells = (FIT, execution(1, "x = open('f')", "x"), execution(2, CALL))
    plan = planned(*cells, slow=(1,), travels={"x": Travel(size=ROOM + 1)})
    assert names(plan.forced) == {1: "x"}
    assert not planned(*cells, slow=(1,), travels={"x": Travel(size=ROOM + 1)}, declared=("x",)).forced


def test_a_value_that_was_another_one_when_it_was_needed_does_not_travel() -> None:
    cells = (
        FIT,
        execution(1, "n = len('f')", "n"),
        execution(2, "x = [iter(n)]", "x"),
        execution(3, "n += 1", "n"),
        execution(4, CALL),
    )
    plan = planned(*cells, slow=(1,), travels={"x": Travel(refused="a generator")})
    assert names(plan.forced) in ({1: "n", 2: "x"}, {1: "n"})
    assert {step.run for step in plan.steps if step.kind == "whole"} >= {1, 2, 4}


def test_a_value_travels_once_so_that_what_a_quick_run_makes_of_it_still_shares_it_with_the_call() -> None:
    cells = (
        FIT,
        execution(1, "x = open('f')", "x"),
        execution(2, "loader = [x]", "loader"),
        execution(3, "fit(loader, x)"),
    )
    plan = planned(*cells, slow=(1,), travels={"loader": Travel(refused="a loader")})
    assert steps(plan) == [(0, "whole"), (2, "whole"), (3, "whole")]
    assert [(value.name, value.before) for value in plan.values] == [("x", 2)]


def test_what_cannot_run_again_and_cannot_travel_is_refused_by_its_run() -> None:
    cells = (FIT, execution(1, "", "x", language="%%bash"), execution(2, CALL))
    assert [value.name for value in planned(*cells).values] == ["x"]
    plan = planned(*cells, travels={"x": Travel(refused="a generator")})
    assert [(one.name, one.user, one.maker) for one in plan.refusals] == [("x", 2, 1)]


def test_what_no_run_has_made_travels_or_is_refused() -> None:
    cells = (FIT, execution(1, CALL))
    assert [(value.name, value.maker) for value in planned(*cells, present="x").values] == [("x", None)]
    plan = planned(*cells, present="x", travels={"x": Travel(refused="a lock")})
    assert [(one.name, one.maker) for one in plan.refusals] == [("x", None)]


def test_a_call_may_ask_for_a_name_that_is_not_there_but_not_in_the_functions_that_it_calls() -> None:
    guarded = "try:\n    tpu\nexcept NameError:\n    tpu = None\nfit(tpu)"
    call = execution(1, guarded)
    runs = runs_of([FIT, call], 5, Facts())
    assert choose(runs, lambda name: Travel(), present=["fit"]).refusals == []
    lost = execution(1, "def build():\n    return lost", "build")
    assert [one.name for one in planned(FIT, lost, execution(2, "fit(build())")).refusals] == ["lost"]


def test_what_a_run_has_bound_itself_by_then_or_is_built_in_is_not_missing() -> None:
    loop = execution(0, "for i in range(2):\n    loss = i\nprint(loss)", "i loss")
    builtin = execution(2, "del sum\nget_ipython().run_line_magic('x', sum([1]))")
    cells = (loop, execution(1, "sum = max", "sum"), builtin, execution(3, "print(loss)"))
    assert steps(planned(*cells)) == [(0, "whole"), (1, "whole"), (2, "whole"), (3, "whole")]


def test_what_a_magic_of_the_same_cell_made_is_refused_in_the_call_and_its_result_travels_else() -> None:
    plan = planned(
        FIT,
        execution(1, "x = [1]", "x"),
        execution(2, CALL, changed="x", code=Transformed("", hidden=("%run more.py",))),
    )
    assert [(one.name, one.user, one.maker) for one in plan.refusals] == [("x", 2, 2)]
    timed = execution(2, "pass", repeated=frozenset({"x"}))
    assert not planned(FIT, execution(1, "x = [1]", "x"), timed, execution(3, CALL)).values
    timed = execution(2, "pass", changed="x", repeated=frozenset({"x"}))
    assert [value.name for value in planned(FIT, execution(1, "x = [1]", "x"), timed, execution(3, CALL)).values] == [
        "x"
    ]
    listed = execution(1, "pass\nx = len(lines)", "lines x", code=Transformed("", shell={"lines": "lines = !ls"}))
    plan = planned(FIT, listed, execution(2, CALL))
    assert steps(plan) == [(0, "whole"), (2, "whole")]
    assert [value.name for value in plan.values] == ["x"]


def test_settings_of_a_run_that_stays_run_again() -> None:
    source = "import os\nsize = 3\nx = train(size)\ndef scale(a):\n    return a * size"
    cells = (FIT, execution(1, source, "os size x scale"), execution(2, "y = scale(2)", "y"), execution(3, "fit(y)"))
    plan = planned(*cells, stays={1: "trained"})
    assert steps(plan) == [(0, "whole"), (1, "settings"), (2, "whole"), (3, "whole")]
    assert plan.steps[1].source == "import os\nsize = 3\n\ndef scale(a):\n    return a * size"
    assert not plan.values


def test_a_slow_run_that_sets_something_for_the_process_runs_again_unless_its_settings_do() -> None:
    cells = (FIT, execution(1, "x = len('f')", "x", process="os.environ['A']"), execution(2, CALL))
    assert planned(*cells, slow=(1,)).forced == {1: None}
    text = "import os\nos.environ['A'] = '1'\nx = work()"
    cells = (FIT, execution(1, text, "os x", process="os.environ['A']"), execution(2, CALL))
    plan = planned(*cells, slow=(1,))
    assert not plan.forced
    assert (1, "settings") in steps(plan)


def test_what_a_run_that_trained_has_set_is_told() -> None:
    cells = (FIT, execution(1, "x = len('f')", "x", process="os.environ['A']"), execution(2, CALL))
    assert planned(*cells, stays={1: "trained"}).lost_settings == {1: ("os.environ['A']",)}


def test_a_failed_run_runs_again_as_far_as_the_statement_that_failed() -> None:
    again, head = divide("x = [1]\nx.append(1 / 0)\nx.append(2)", 2)
    failed = execution(1, again, "x", ending=Ending(False), failed_line=2, head=head)
    plan = planned(FIT, failed, execution(2, CALL))
    assert plan.steps[1].source == "x = [1]\nx.append(1 / 0)\n"
    assert plan.steps[1].optional_from == 2


def test_a_failed_run_that_could_do_without_the_name_that_it_failed_for_runs_again() -> None:
    again, head = divide("x = 1\nif x > 1:\n    x = grow(x)\ngrow(x)", 4)
    plan = planned(FIT, execution(1, again, "x", ending=Ending(False), failed_line=4, head=head), execution(2, CALL))
    assert [step.run for step in plan.steps] == [0, 1, 2]
    assert plan.values == []


def test_what_an_interrupted_statement_has_changed_travels() -> None:
    failed = execution(1, "x = []\n", "x", ending=Ending(False, interrupted=True), failed_line=2, head="x = []\n")
    plan = planned(FIT, failed, execution(2, CALL))
    assert plan.steps[1].source == "x = []\n"
    assert [value.name for value in plan.values] == ["x"]


def test_the_settings_of_a_failed_run_that_stays_behind_run_again() -> None:
    again, head = divide("import os\nx = work()\nimport plt, missing", 3)
    failed = execution(1, again, "os x plt", ending=Ending(False), failed_line=3, head=head)
    plan = planned(FIT, failed, execution(2, "fit(os, x)"), stays={1: "trained"})
    assert [step.source.strip() for step in plan.steps] == [FIT.source, "import os", "fit(os, x)"]
    assert [value.name for value in plan.values] == ["x"]


def test_what_is_made_anew_needs_no_earlier_run() -> None:
    cells = (FIT, execution(1, "x = 1", "x"), execution(2, "x = 2", "x"), execution(3, CALL))
    assert planned(*cells).needed == {0, 2, 3}


def test_what_travels_needs_no_earlier_run() -> None:
    cells = (FIT, execution(1, "x = [1]", "x"), execution(2, "x.append(len(x))", changed="x"), execution(3, CALL))
    plan = planned(*cells, slow=(2,))
    assert steps(plan) == [(0, "whole"), (1, "whole"), (3, "whole")]
    assert plan.needed == {0, 3}


@pytest.mark.parametrize(
    ("source", "line", "refused", "again"),
    [
        ("a = 1\nb = f(\n  1)\nc = 2", 3, False, "a = 1\nb = f(\n  1)\n"),
        ("a = 1\nb = f(1)\nc = 2", 2, True, "a = 1\n"),
        ("a = 1\nb = 2; f(1)\nc = 2", 2, True, "a = 1\nb = 2; f(1)\n"),
        ("a = 1\nfor b in f(1):\n    g()\nc = 2", 3, True, "a = 1\nfor b in f(1):\n    g()\n"),
        ("a = 1\n@f\ndef g(): pass", 2, False, "a = 1\n@f\ndef g(): pass"),
    ],
)
def test_what_of_a_failed_cell_runs_again(source: str, line: int, refused: bool, again: str) -> None:
    assert divide(source, line, refused=refused) == (again, "a = 1\n")


@pytest.mark.parametrize(
    ("source", "kept", "names"),
    [
        ("a = 1; b = work()", "a = 1; 0         ".rstrip(), {"a"}),
        ("b = work(); a = 1", "0         ; a = 1", {"a"}),
        ("a = []\na.append(work())", "", set()),
        ("a = 1\na = work()", "", set()),
        ("import plt\nplt.rc['x'] = 2\nplt.show()", "import plt\nplt.rc['x'] = 2\n", {"plt"}),
        ("class A(Base):\n    n = 2\nmodel = A()", "class A(Base):\n    n = 2\n", {"A"}),
        ("class A(Base):\n    n = 2\nA.n = work()", "class A(Base):\n    n = 2\n", set()),
        ("def f(a=stale):\n    return a", "", set()),
    ],
)
def test_settings_are_imports_functions_classes_and_literals(source: str, kept: str, names: set[str]) -> None:
    found = settings_of(source, {"stale"}, {"plt"})
    assert found.source.rstrip(" ") == kept
    assert found.names == names


def test_weights_travel_only_where_the_object_that_takes_them_is_made_again() -> None:
    weights = {"x": Travel(size=8, weights=True)}
    built = (FIT, execution(1, "x = fit", "x"), execution(2, "x.train()", changed="x"), execution(3, CALL))
    plan = planned(*built, slow=(2,), travels=weights)
    assert [(value.name, value.before, value.in_place) for value in plan.values] == [("x", 3, True)]
    assert not plan.forced
    loaded = (FIT, execution(1, "x = open('f')", "x"), execution(2, CALL))
    plan = planned(*loaded, slow=(1,), travels=weights)
    assert not plan.values
    assert plan.forced == {1: Refusal("x", 2, 1, "an object that is not made here")}


def test_a_declared_value_travels_once_before_its_first_user_though_its_cell_runs_again() -> None:
    cells = (
        FIT,
        execution(1, "z = open('g')", "z"),
        execution(2, "x = open('f')\ny = iter(x)", "x y"),
        execution(3, "a = x", "a"),
        execution(4, "fit(x, y, z, a)"),
    )
    travels = {"y": Travel(refused="a generator")}
    plan = planned(*cells, slow=(1,), travels=travels, declared=("x",))
    assert steps(plan) == [(0, "whole"), (2, "whole"), (3, "whole"), (4, "whole")]
    assert sorted((value.name, value.before, value.maker) for value in plan.values) == [("x", 3, 2), ("z", 4, 1)]
