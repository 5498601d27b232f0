"""Which names are read from the code of a cell."""

from __future__ import annotations

import symtable
from typing import Any

import pytest

from det_native.capture.reads import reads_of


def test_functions_that_call_each_other_are_followed_once() -> None:
    even = "def even(n):\n    return n == zero or odd(n - 1)\n"
    code = reads_of(even + "def odd(n):\n    return n != zero and even(n - one)\nx = even(4)")
    assert code.reads.keys() == {"zero", "one"}


def test_many_functions_that_call_each_other_take_no_time() -> None:
    calls = " + ".join(f"f{number}()" for number in range(40))
    cell = "".join(f"def f{number}():\n    return {calls} + last\n" for number in range(40)) + "x = f0()"
    assert reads_of(cell).reads.keys() == {"last"}


def test_functions_in_functions_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tables: list[str] = []
    real = symtable.symtable

    def counted(code: str, name: str, kind: str) -> Any:
        tables.append(code)
        return real(code, name, kind)

    monkeypatch.setattr(symtable, "symtable", counted)
    deep = "".join(f"{'    ' * depth}def inner{depth}():\n" for depth in range(30)) + "    " * 30 + "np.random.seed(1)"
    assert reads_of(deep).functions.keys() == {"inner0"}
    assert len(tables) == 1


def test_a_cell_looks_up_the_annotations_of_its_methods() -> None:
    code = reads_of("class Net:\n    def forward(self, x: Batch, *, y: 'Text' = None) -> Output:\n        return x")
    assert code.reads.keys() == code.guarded == {"Batch", "Output"}
    assert code.functions["Net"] == frozenset()


@pytest.mark.parametrize(
    "source",
    ["(a, box.size) = 1, 2", "with f() as box.size:\n    pass", "for box[0] in f():\n    pass", "box.a, *box.b = f()"],
)
def test_what_is_set_of_a_name_is_noted_wherever_it_is_set(source: str) -> None:
    assert reads_of(source).stored_into == {"box"}


def test_names_of_a_pattern_are_bound_and_its_classes_are_read() -> None:
    code = reads_of("match f():\n    case Point(x=[first, *rest]) | {Kind.A: Point() as first, **rest}:\n        pass")
    assert code.reads.keys() == {"f", "Point", "Kind"}
    assert code.bound == {"first", "rest"}
