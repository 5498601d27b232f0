"""What ordinary notebooks do with tables, own objects, settings and trial trainings, and what is sent of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]

TABLES = (
    "import numpy as np, pandas as pd\n"
    "train, test = pd.DataFrame({'v': [1, 2]}), pd.DataFrame({'v': [3]})\n"
    "both = {'train': train}\nxs, ys = np.ones(2), np.ones(1)\n"
    "def prepare(table):\n    table['p'] = 1\n    return table\n"
    "def clean(table):\n    table = table.copy()\n    table['q'] = 1\n    return table"
)


@pytest.mark.parametrize(
    "change",
    [
        "for d in [train, test]:\n    d['n'] = 1",
        "for i, d in enumerate((train, test)):\n    d['n'] = i",
        "for name, d in zip('ab', [train, test]):\n    d['n'] = name",
        "for a in (xs, ys):\n    a *= 2",
        "d = both['train']\nd['n'] = 1",
        "d = train if len(train) > 1 else test\nd['n'] = 1",
        "d = prepare(train)\nd['n'] = 1",
    ],
)
def test_tables_that_are_changed_by_another_name(kernel: Kernel, replayed: Replayed, change: str) -> None:
    kernel.cells(TABLES, change, "fit(train, test, xs, ys)")
    found = kernel.found()
    assert found.cells == [1, 2, 3, 4]
    shown = ("train.to_dict()", "test.to_dict()", "xs.tolist()")
    assert replayed(found, *shown) == kernel.live(*shown)


@pytest.mark.parametrize(
    "look",
    [
        "v = train['v']\nv[0] = 5",
        "d = train[train.v > 1]\nd['n'] = 1",
        "d = clean(train)\nd['n'] = 1",
        "y = xs + 1\ny *= 2",
    ],
)
def test_what_is_made_from_a_table_is_another_one(kernel: Kernel, look: str) -> None:
    kernel.cells(TABLES, look, "fit(train, test, xs)")
    assert kernel.found().cells == [1, 2, 4]
