"""Functions and classes that keep something, and parts of values that look the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]

SETUP = (
    "import numpy as np\n"
    "class Cfg:\n    rate = 0.1\n    layers = [1]\n"
    "def scale(x):\n    return scale.by * x\n"
    "scale.by = 1\n"
    "def counting():\n"
    "    kept = {'n': 0}\n"
    "    def count():\n        kept['n'] += 1\n        return kept['n']\n"
    "    return count\n"
    "count = counting()\n"
    "def boxed():\n"
    "    kept = {}\n"
    "    class Box:\n"
    "        def put(self, value):\n            kept['value'] = value\n"
    "        def get(self):\n            return kept.get('value')\n"
    "    return Box()\n"
    "box = boxed()\n"
    "data = {'x': np.zeros((4, 6)), 'loss': len, 'part': {'rate': 0.1}}\n"
    "part = {'rate': 0.1}\n"
    "def set_rate(c):\n    c.rate = 0.7\n"
    "def set_by(f):\n    f.by = 3\n"
    "table = [set_rate, set_by]\n"
)
SHOWN = (
    "Cfg.rate",
    "Cfg.layers",
    "scale(1)",
    "count()",
    "box.get()",
    "data['x'].shape",
    "data['loss']([1, 2])",
)


@pytest.mark.parametrize(
    "change",
    [
        "table[0](Cfg)",
        "class Runner:\n    def __init__(self, c):\n        self.c = c\n"
        "    def go(self):\n        self.c.layers.append(7)\nRunner(Cfg).go()",
        "table[1](scale)",
        "list(map(lambda f: f(), [count]))",
        "box.put(3)",
        "data['x'] = data['x'].reshape(2, 12)",
        "data['x'] = data['x'][:, :, None]",
        "data['loss'] = sum",
        "data['loss'] = lambda values: values[0]",
    ],
)
def test_what_was_changed_is_sent(kernel: Kernel, replayed: Replayed, change: str) -> None:
    kernel.cells(SETUP, change, "len(table)", "fit(Cfg, scale, count, box, data)")
    found = kernel.found()
    assert found.needs_none_of(4)
    assert replayed(found, *SHOWN) == kernel.live(*SHOWN)


def test_an_equal_part_that_is_changed_later(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(SETUP, "data['part'] = part", "part['rate'] = 0.5", "fit(data)")
    found = kernel.found()
    assert replayed(found, "data['part']") == kernel.live("data['part']")


def test_what_a_decorator_of_a_module_keeps(kernel: Kernel, replayed: Replayed) -> None:
    (kernel.folder / "tools.py").write_text(
        "import functools\n"
        "def counted(function):\n"
        "    calls = [0]\n"
        "    @functools.wraps(function)\n"
        "    def inner(*given):\n        calls[0] += 1\n        return function(*given), calls[0]\n"
        "    return inner\n"
    )
    kernel.cells(
        "from tools import counted\nclass Own:\n    @counted\n    def go(self):\n        pass\nown = Own()",
        "own.go()",
        "fit(own)",
    )
    found = kernel.found()
    assert replayed(found, "own.go()") == kernel.live("own.go()")


@pytest.mark.parametrize(
    "look",
    [
        "def check(f):\n    assert f(2) == 2\n    print('passed')\ncheck(scale)",
        "def shown(c):\n    return [getattr(c, name) for name in vars(c)]\nshown(Cfg)",
        "import copy\nother = copy.deepcopy(box)",
    ],
)
def test_what_only_looks_is_not_sent(kernel: Kernel, replayed: Replayed, look: str) -> None:
    kernel.cells(SETUP, look, "fit(Cfg, scale, count, box, data)")
    found = kernel.found()
    assert found.needs_none_of(3)
    assert replayed(found, *SHOWN) == kernel.live(*SHOWN)
