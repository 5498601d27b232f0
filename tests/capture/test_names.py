"""Does every name of a program come from somewhere?"""

from __future__ import annotations

import pytest

from det_native.capture.names import check_bundle_names
from det_native.schema.manifests import Cell, Program


def _program(*sources: str) -> Program:
    cells = tuple(Cell(number=i + 1, cell_id=None, source=source) for i, source in enumerate(sources))
    return Program(kind="cells", framework="keras", cells=cells)


@pytest.mark.parametrize(
    "sources",
    [
        ("x = 1", "print(x)"),
        ("def f():\n    return later", "later = 1", "f()"),
        ("import os.path as p", "p.join('a')"),
        ("[y for y in range(3)]",),
        ("class A:\n    b = 1\n    c = b",),
        ("try:\n    unknown\nexcept NameError:\n    pass",),
        ("from math import *", "sqrt(2)"),
        ("def f():\n    global g\n    g = 1", "f()", "g"),
        ("for i in range(3):\n    pass", "i"),
        ("with open('x') as f:\n    pass", "f"),
        ("display(get_ipython())", "__name__"),
        ("x: 'Unknown' = 1",),
        ("import asyncio\nawait asyncio.sleep(0)",),
        ("if (n := 3):\n    pass", "n"),
        ("def f(a, *b, c=1, **d):\n    return a, b, c, d",),
        ("match 1:\n    case m:\n        pass", "m"),
    ],
)
def test_programs_that_are_complete(sources: tuple[str, ...]) -> None:
    assert check_bundle_names(_program(*sources), set()) == []


@pytest.mark.parametrize(
    ("sources", "where", "name"),
    [
        (("print(x)",), "cell [1]", "x"),
        (("y = x", "x = 1"), "cell [1]", "x"),
        (("z = 1", "def f():\n    return g()"), "cell [2]", "g"),
        (("class A:\n    def m(self):\n        return lost",), "cell [1]", "lost"),
        (("[a for a in lost]",), "cell [1]", "lost"),
        (("f = lambda: lost",), "cell [1]", "lost"),
    ],
)
def test_a_name_from_nowhere_is_a_problem(sources: tuple[str, ...], where: str, name: str) -> None:
    [problem] = check_bundle_names(_program(*sources), set())
    assert problem.where == where
    assert f"`{name}` is used" in problem.what
    assert f"values=['{name}']" in problem.remedy


def test_values_that_are_sent_count() -> None:
    assert check_bundle_names(_program("print(x)"), {"x"}) == []


def test_star_imports_that_cannot_be_told_end_the_check() -> None:
    assert check_bundle_names(_program("from nowhere_to_be_found import *", "anything"), set()) == []


def test_a_script_has_nothing_to_check() -> None:
    program = Program(kind="script", framework="torch", command=("train.py",))
    assert check_bundle_names(program, set()) == []
