"""Does every name of a program come from somewhere?"""

from __future__ import annotations

import pytest

from det_native.capture.names import check_bundle_names
from det_native.schema.manifests import CallSite, Cell, Program


def _program(*sources: str) -> Program:
    cells = tuple(Cell(number=i + 1, cell_id=None, source=source) for i, source in enumerate(sources))
    return Program(kind="cells", framework="keras", cells=cells)


def test_what_may_fail_may_use_what_is_not_there() -> None:
    call = CallSite(kind="fit", cell=2, line=1, column=0, running_line=1)
    sources = ("def f():\n    return nowhere", "x = 1\ny = f()\nx = unknown", "x")
    program = _program(*sources).model_copy(update={"call": call})
    assert [one.what.split("`")[1] for one in check_bundle_names(program, set())] == ["unknown", "nowhere"]
    cells = [cell.model_copy(update={"optional_from": 2 if cell.number == 2 else None}) for cell in program.cells]
    assert check_bundle_names(program.model_copy(update={"cells": tuple(cells)}), set()) == []
    cells[1] = cells[1].model_copy(update={"optional_from": 3})
    [problem] = check_bundle_names(program.model_copy(update={"cells": tuple(cells)}), set())
    assert "nowhere" in problem.what


@pytest.mark.parametrize(
    "sources",
    [
        ("x = 1", "print(x)"),
        ("def f():\n    return nobody_asks_for_it",),
        ("def f():\n    return later", "later = 1", "f()"),
        ("def count():\n    return model.steps", "losses, count = [], 0\ndef f():\n    return count", "f()"),
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
        (("def f():\n    return g()", "f()"), "cell [2]", "g"),
        (("class A:\n    def m(self):\n        return lost\nA().m()",), "cell [1]", "lost"),
        (("[a for a in lost]",), "cell [1]", "lost"),
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


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("e = 1\nplt.plot(e)", 1),
        ("def show(e):\n    plt.plot(e)\ne = 1\nshow(e)", 3),
        ("def train():\n    return 1\ne = train()\n@plt.style\ndef later():\n    return 1", 3),
        ("e = 1; later = 2\nlater.x(lost)", 1),
        ("class Show:\n    def draw(self):\n        plt.plot(1)\ne = 1\nShow().draw()", 4),
    ],
)
def test_names_that_are_used_after_the_call_only_are_not_needed(source: str, line: int) -> None:
    program = _program("x = 1", source)
    assert check_bundle_names(program, set()) != []
    call = CallSite(kind="fit", cell=1, line=line, column=0, running_line=line)
    assert check_bundle_names(program.model_copy(update={"call": call}), set()) == []


@pytest.mark.parametrize(
    ("source", "line", "said"),
    [
        ("print(plt)\ne = 1", 2, "`plt` is used, but"),
        ("for i in range(2):\n    e = 1\n    plt.plot(e)", 2, "`plt` is used, but"),
        ("with open('x') as f:\n    e = 1\n    plt.plot(e)", 2, "`plt` is used, but"),
        ("def show():\n    plt.plot(1)\nshow()\ne = 1", 4, "`plt` is used, in show"),
        ("class Show:\n    def draw(self):\n        plt.plot(1)\nShow().draw()\ne = 1", 5, "`plt` is used, in Show"),
        ("def inner():\n    plt.plot(1)\ndef outer():\n    inner()\nouter()\ne = 1", 6, "`plt` is used, in inner"),
    ],
)
def test_names_that_are_used_before_or_around_the_call_are_needed(source: str, line: int, said: str) -> None:
    call = CallSite(kind="fit", cell=1, line=line, column=0, running_line=line)
    program = _program("x = 1", source).model_copy(update={"call": call})
    [problem] = check_bundle_names(program, set())
    assert problem.where == "cell [2]"
    assert said in problem.what
