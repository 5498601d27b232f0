"""What is read from the code of a cell: which names, and which functions set something."""

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


@pytest.mark.parametrize(
    "body",
    [
        "np.random.seed(1)",
        "np.random.seed(1)\n    total = 3\n    return total",
        "torch.backends.cudnn.benchmark = False",
        "cfg['size'] = 3",
        "global count\n    count += 1",
        "setattr(np, 'size', 3)",
        "import numpy as np\n    np.random.seed(1)",
        "from torch.backends import cudnn\n    cudnn.benchmark = True",
        "if True:\n        for one in range(3):\n            np.random.seed(one)",
        "def inner():\n        np.random.seed(1)\n    inner()",
        "json.loads(text).update(a=1)",
    ],
)
def test_a_function_that_sets_something_of_others(body: str) -> None:
    assert reads_of(f"def set_up():\n    {body}").setters == {"set_up"}


@pytest.mark.parametrize(
    "body",
    [
        "return np.zeros(3)",
        "rows = []\n    rows.append(np.pi)\n    return rows",
        "rows = {}\n    rows['a'] = np.pi\n    return rows",
        "total = 0\n    total += np.pi\n    return total",
        "print(len('a'))",
        "self.size = np.pi",
    ],
)
def test_a_function_that_only_works_with_its_own(body: str) -> None:
    assert reads_of(f"def work(self):\n    {body}").setters == set()


def test_functions_in_functions_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tables: list[str] = []
    real = symtable.symtable

    def counted(code: str, name: str, kind: str) -> Any:
        tables.append(code)
        return real(code, name, kind)

    monkeypatch.setattr(symtable, "symtable", counted)
    deep = "".join(f"{'    ' * depth}def inner{depth}():\n" for depth in range(30)) + "    " * 30 + "np.random.seed(1)"
    assert reads_of(deep).setters == {"inner0"}
    assert len(tables) == 1
