"""Whatever order cells ran in, running the slice alone gives the values that the call saw in the kernel."""

from __future__ import annotations

import ast
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from det_native.capture.analysis import analyse
from det_native.capture.slicer import Execution, slice_log

NAMES = ["a", "b", "c", "d"]
FUNCTIONS = ["f", "g"]
name = st.sampled_from(NAMES)
number = st.integers(min_value=0, max_value=9)


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


@st.composite
def statement(draw: st.DrawFn) -> str:
    kind = draw(
        st.sampled_from(
            ["assign", "assign", "assign", "augmented", "item", "append", "function", "branch", "loop", "fail", "delete"]
            + ["changer", "call", "alias", "tuple", "global"]
        )
    )
    if kind == "assign":
        return f"{draw(name)} = {draw(expression())}"
    if kind == "augmented":
        return f"{draw(name)} += {draw(st.sampled_from(['1', '[1]']))}"
    if kind == "item":
        return f"{draw(name)}[0] = {draw(number)}"
    if kind == "append":
        return f"{draw(name)}.append({draw(expression())})"
    if kind == "function":
        return f"def {draw(st.sampled_from(FUNCTIONS))}(x):\n    return total(x) + total({draw(name)})"
    if kind == "changer":
        return f"def {draw(st.sampled_from(FUNCTIONS))}(x):\n    x.append({draw(number)})\n    return x"
    if kind == "global":
        target = draw(name)
        return f"def {draw(st.sampled_from(FUNCTIONS))}(x):\n    global {target}\n    {target} = total(x)\n    return 1"
    if kind == "branch":
        return f"if total({draw(name)}) % 2:\n    {draw(name)} = {draw(expression())}\nelse:\n    {draw(name)} = 1"
    if kind == "loop":
        return f"for i in range({draw(st.integers(0, 2))}):\n    {draw(name)} = i"
    if kind == "call":
        return f"{draw(st.sampled_from(FUNCTIONS))}({draw(name)})"
    if kind == "alias":
        return f"{draw(name)} = {draw(name)}"
    if kind == "tuple":
        return f"{draw(name)}, {draw(name)} = {draw(expression())}, {draw(number)}"
    if kind == "delete":
        return f"del {draw(name)}"
    return "1 / 0"


def total(value: Any) -> int:
    if isinstance(value, list):
        return sum(total(element) for element in value[:50])
    return value if isinstance(value, int) else 0


cell = st.lists(statement(), min_size=1, max_size=3).map("\n".join)
program = st.tuples(st.lists(cell, min_size=1, max_size=6), st.lists(st.integers(0, 5), min_size=1, max_size=10))


def run(source: str, namespace: dict[str, Any]) -> int | None:
    """Run statement by statement; return the line that failed."""
    for node in ast.parse(source).body:
        try:
            exec(compile(ast.Module([node], []), "<cell>", "exec"), namespace)  # noqa: S102 (the test's own programs)
        except Exception:  # noqa: BLE001 (any failure of a generated statement is a failed cell)
            return node.lineno
    return None


@settings(max_examples=300, deadline=None)
@given(program)
def test_running_the_slice_gives_the_values_of_the_kernel(drawn: tuple[list[str], list[int]]) -> None:
    cells, order = drawn
    live: dict[str, Any] = {"total": total}
    log = []
    sources = ["a = 1\nb = [2]\nc = [b, 3]\nd = 4", *(cells[i % len(cells)] for i in order)]
    for index, source in enumerate(sources):
        failed = run(source, live)
        log.append(
            Execution(index, index + 1, str(index), analyse(source), failed=failed is not None, failed_line=failed)
        )
    call = "wanted = [a, b, c, d]"
    log.append(Execution(len(log), len(log) + 1, "call", analyse(call)))
    found = slice_log(log, len(log) - 1, 1)
    unknown = {missing.name for missing, _ in found.missing if missing.certain}
    if found.problems or not live.keys() >= set(NAMES):
        return
    assert unknown <= {"total"}
    fresh: dict[str, Any] = {"total": total}
    for index in sorted(found.included)[:-1]:
        assert run(sources[index], fresh) is None, sources[index]
    for wanted in NAMES:
        assert repr(fresh[wanted]) == repr(live[wanted]), wanted
