"""Whatever order cells ran in, running the slice alone gives the values that the call saw in the kernel."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tries import Tries, counted

from det_native.capture.execution import Execution, Facts
from det_native.capture.failure import Divided, divide
from det_native.capture.observation.watch import Effects, Watch
from det_native.capture.slicer import slice_log
from det_native.capture.steps import steps_of
from det_native.capture.wider import wider_program

NAMES = ["a", "b", "c", "d"]
FUNCTIONS = ["f", "g"]
COPIES = ["list({})", "sorted({}, key=str)", "{}[:]"]
EXAMPLES, QUICK = settings.default.max_examples, settings.get_profile("quick").max_examples
name = st.sampled_from(NAMES)
number = st.integers(min_value=0, max_value=9)


@pytest.fixture(scope="module")
def slices() -> Iterator[Tries]:
    with counted("programs cut to what a call needs, values looked at") as tries:
        yield tries


@pytest.fixture(scope="module")
def wider() -> Iterator[Tries]:
    with counted("programs of all that can run again, values looked at") as tries:
        yield tries


@st.composite
def expression(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["number", "name", "sum", "call", "list", "item"]))
    if kind == "number":
        return str(draw(number))
    if kind == "name":
        return draw(name)
    if kind == "sum":
        return f"total({draw(name)}) + {draw(number)}"
    if kind == "call":
        return f"{draw(st.sampled_from(FUNCTIONS))}({draw(name)})"
    if kind == "list":
        return f"[{draw(name)}, {draw(number)}]"
    return f"{draw(name)}[0]"


function = st.sampled_from(FUNCTIONS)
statement = st.one_of(
    *[st.builds("{} = {}".format, name, expression())] * 3,
    st.builds("{} += {}".format, name, st.sampled_from(["1", "[1]"])),
    st.builds("{}[0] = {}".format, name, number),
    st.builds("{}.append({})".format, name, expression()),
    st.builds("def {}(x):\n    return total(x) + total({})".format, function, name),
    st.builds("def {}(x):\n    x.append({})\n    return x".format, function, number),
    st.builds("def {0}(x):\n    global {1}\n    {1} = total(x)\n    return 1".format, function, name),
    st.builds("if total({}) % 2:\n    {} = {}\nelse:\n    {} = 1".format, name, name, expression(), name),
    st.builds("for i in range({}):\n    {} = i".format, st.integers(0, 2), name),
    st.builds("{}({})".format, function, name),
    st.builds("{} = {}".format, name, name),
    *(st.builds(f"{{}} = {made}".format, name, name) for made in COPIES),
    st.builds("{}[0].append({})".format, name, number),
    st.builds("{}[0][0] = {}".format, name, number),
    st.builds("{}[0] += [{}]".format, name, number),
    st.builds("{}, {} = {}, {}".format, name, name, expression(), number),
    st.builds("del {}".format, name),
    st.just("1 / 0"),
    st.builds("for i in range(2):\n    {} = [{}]\n    {}.append(1 // (1 - i))".format, name, name, name),
)


def total(value: Any) -> int:
    if isinstance(value, list):
        return sum(total(element) for element in value[:50])
    return value if isinstance(value, int) else 0


cell = st.lists(statement, min_size=1, max_size=3).map("\n".join)
program = st.tuples(st.lists(cell, min_size=1, max_size=6), st.lists(st.integers(0, 5), min_size=1, max_size=10))


def run(source: str, namespace: dict[str, Any]) -> Divided | None:
    """Run statement by statement; return how the statement that failed divides the cell."""
    for node in ast.parse(source).body:
        try:
            exec(compile(ast.Module([node], []), "<cell>", "exec"), namespace)  # noqa: S102 (the test's own programs)
        except Exception:  # noqa: BLE001 (any failure of a generated statement is a failed cell)
            return divide(source, node.lineno)
    return None


def runs(cells: list[str], order: list[int]) -> tuple[list[Execution], dict[str, Any]]:
    """Run the cells in the order of a kernel; return the log and the names at the end."""
    live: dict[str, Any] = {"__name__": "__main__", "total": total}
    log = []
    watch = Watch()
    sources = ["a = 1\nb = [2]\nc = [b, 3]\nd = 4", *(cells[i % len(cells)] for i in order)]
    for index, source in enumerate(sources):
        watch.begin(live, (), source)
        failed = run(source, live)
        effects = watch.end(live, (), source)
        log.append(
            Execution(
                index,
                index + 1,
                str(index),
                failed=failed is not None,
                source=source,
                effects=effects,
                head=failed.head if failed is not None else "",
                last=failed.last if failed is not None else "",
            )
        )
    log.append(Execution(len(log), len(log) + 1, "call", source="wanted = [a, b, c, d]", effects=Effects()))
    return log, live


@settings(max_examples=EXAMPLES if EXAMPLES <= QUICK else max(300, EXAMPLES))  # they are cheap
@given(drawn=program)
def test_running_the_slice_gives_the_values_of_the_kernel(slices: Tries, drawn: tuple[list[str], list[int]]) -> None:
    slices.drawn += 1
    log, live = runs(*drawn)
    found = slice_log(log, len(log) - 1, 1)
    unknown = {missing.name for missing, _ in found.missing if missing.certain}
    if found.problems or found.warnings or not live.keys() >= set(NAMES):
        return
    with slices.attempt():
        assert unknown <= {"total"}
        fresh: dict[str, Any] = {"__name__": "__main__", "total": total}
        for index in sorted(found.included)[:-1]:
            assert run(log[index].sent, fresh) is None, log[index].sent
        for wanted in NAMES:
            assert repr(fresh[wanted]) == repr(live[wanted]), wanted


@settings(max_examples=EXAMPLES if EXAMPLES <= QUICK else max(300, EXAMPLES))
@given(drawn=program, staying=st.sets(st.integers(1, 10), max_size=3))
def test_running_all_that_can_run_again_gives_the_values_of_the_kernel(
    wider: Tries, drawn: tuple[list[str], list[int]], staying: set[int]
) -> None:
    wider.drawn += 1
    log, live = runs(*drawn)
    calling = len(log) - 1
    found = slice_log(log, calling, 1)
    if found.problems or found.warnings or not live.keys() >= set(NAMES):
        return
    with wider.attempt():
        known = Facts(fixed=frozenset({"total"}))
        log[0] = replace(log[0], effects=log[0].effects._replace(bound=log[0].effects.bound | {"total"}))
        taken = wider_program(steps_of(log, calling, 1, known), found.included, staying - found.included.keys(), {})
        assert set(found.included) <= set(taken)
        fresh: dict[str, Any] = {"__name__": "__main__", "total": total}
        for index in taken[:-1]:
            assert run(log[index].sent, fresh) is None, log[index].sent
        # What a statement had done before it failed is not done again; names that the call needs are problems by then.
        half_done = {name for index in taken if log[index].failed for name in _touched(log[index])}
        for wanted in set(NAMES) - half_done:
            assert repr(fresh[wanted]) == repr(live[wanted]), wanted


def _touched(execution: Execution) -> frozenset[str]:
    effects = execution.effects
    return (effects.bound | effects.changed) if effects is not None else frozenset()
