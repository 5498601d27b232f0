"""Generated histories of a notebook: short cells that ran in any order, and what was seen of each."""

from __future__ import annotations

import ast
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from det_native.capture.execution import Execution
from det_native.capture.failure import Divided, divide
from det_native.capture.log import Ending, LoggedExecution, Seen
from det_native.capture.transform import Transformed
from det_native.capture.watch import Effects, Watch

NAMES = ["a", "b", "c", "d"]
FUNCTIONS = ["f", "g"]
COPIES = ["list({})", "sorted({}, key=str)", "{}[:]"]
EXAMPLES, QUICK = settings.default.max_examples, settings.get_profile("quick").max_examples
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


def failing_line(source: str, namespace: dict[str, Any]) -> int | None:
    """Run statement by statement; return the line of the one that failed."""
    for node in ast.parse(source).body:
        try:
            exec(compile(ast.Module([node], []), "<cell>", "exec"), namespace)  # noqa: S102 (the test's own programs)
        except Exception:  # noqa: BLE001 (any failure of a generated statement is a failed cell)
            return node.lineno
    return None


def history(cells: list[str], order: list[int]) -> tuple[list[Execution], dict[str, Any]]:
    """Run the cells in the order of a kernel; return the log and the names at the end."""
    live: dict[str, Any] = {"__name__": "__main__", "total": total}
    log = []
    watch = Watch()
    sources = ["a = 1\nb = [2]\nc = [b, 3]\nd = 4", *(cells[i % len(cells)] for i in order)]
    for index, source in enumerate(sources):
        watch.begin(live, (), source)
        line = failing_line(source, live)
        divided = divide(source, line) if line is not None else Divided(source, "")
        effects = watch.end(live, (), source)
        ending = Ending(line is None)
        logged = LoggedExecution(index, index + 1, source, ending=ending, seen=Seen(effects=effects))
        log.append(Execution(logged, Transformed(source), divided.again, divided.head, line))
    wanted = "wanted = [a, b, c, d]"
    last = LoggedExecution(len(log), len(log) + 1, wanted, seen=Seen(effects=Effects()))
    log.append(Execution(last, Transformed(wanted), wanted))
    return log, live
