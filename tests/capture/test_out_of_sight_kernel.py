"""What changes without a name being assigned to: registries, protocols, iterators, copies, names in texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]

TOKENS = (
    "class Tokens:\n    def __init__(self):\n        self.known = {}\n"
    "    def number(self, word):\n        return self.known.setdefault(word, len(self.known))\n"
    "    def encode(self, text):\n        return [self.number(word) for word in text.split()]\n"
    "tokens = Tokens()"
)


@pytest.mark.parametrize(
    ("setup", "look"),
    [
        ("from collections import defaultdict\nd = defaultdict(int)", "print(d['a'])"),
        ("d = iter([1, 2])", "print(list(zip(d, [1])))"),
        (f"{TOKENS}\nd = tokens", "print(d.encode('a'))"),
    ],
)
def test_a_look_in_a_cell_that_failed_is_sent(kernel: Kernel, replayed: Replayed, setup: str, look: str) -> None:
    kernel.cells(setup, f"{look}\n1 / 0", "fit(d)")
    shown = "repr(getattr(d, 'known', None) or list(d))"
    assert replayed(kernel.found(), shown) == kernel.live(shown)


@pytest.mark.parametrize(
    "odd",
    [
        "class Odd:\n    @property\n    def __class__(self):\n        raise RuntimeError\nodd = Odd()",
        "class Odd(tuple):\n    def __iter__(self):\n        raise ValueError\nodd = Odd([1])",
        "odd = ()\nfor _ in range(3000):\n    odd = (odd,)\nodd = [odd]",
        "odd = eval('+'.join(['1'] * 4000))",
    ],
)
def test_values_that_cannot_be_looked_at_do_not_stop_a_submit(kernel: Kernel, replayed: Replayed, odd: str) -> None:
    kernel.cells(odd, "x = 1", "fit(x)")
    found = kernel.found()
    assert found.needs_none_of(2)
    assert replayed(found, "x") == {"x": "1"}


@pytest.mark.parametrize(
    "use",
    [
        "frame.query('a > @limit').a.tolist()",
        "frame.query(f'{column} > @limit').a.tolist()",
        "eval('limit * 2')",
        "globals()['limit']",
        "globals().get('limit')",
    ],
)
def test_names_in_texts_are_found(kernel: Kernel, replayed: Replayed, use: str) -> None:
    kernel.cells(
        "import pandas as pd\nframe = pd.DataFrame({'a': [1, 2]})\ncolumn = 'a'", "limit = 1", f"x = {use}", "fit(x)"
    )
    found = kernel.found()
    assert replayed(found, "x") == kernel.live("x")


def test_what_is_imported_from_the_future_holds_on(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("from __future__ import annotations", "class Node:\n    next: Node", "fit(Node)")
    found = kernel.found()
    assert replayed(found, "Node.__annotations__") == {"Node.__annotations__": "{'next': 'Node'}"}
    kernel.run("fit()")
    assert kernel.found().needs_none_of(3)


def test_weights_that_cells_left_out_have_drawn_change_nothing(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import torch\ntorch.manual_seed(1)",
        "tried = torch.nn.Linear(2, 2)",
        "def build():\n    return torch.nn.Linear(2, 2)",
        "net = build()",
        "fit(net)",
    )
    found = kernel.found()
    assert found.needs_none_of(3)
    assert replayed(found, "net.weight.tolist()") == kernel.live("net.weight.tolist()")
    kernel.run("torch.manual_seed(1)\nnet = build()\nfit(net)")
    found = kernel.found()
    assert found.warnings == []
    assert replayed(found, "net.weight.tolist()") == kernel.live("net.weight.tolist()")
