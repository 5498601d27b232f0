"""Code that a cell needs and that its text does not name: classes of what is loaded, names that are put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow

Replayed = Callable[..., dict[str, Any]]


def test_the_class_of_what_was_loaded_is_sent(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import pickle",
        "class Net:\n    def __init__(self): self.rate = 3",
        "with open('net.pkl', 'wb') as file: pickle.dump(Net(), file)",
        "with open('net.pkl', 'rb') as file: pre = pickle.load(file)",
        "fit(pre)",
    )
    found = kernel.found()
    assert 3 in found.cells
    assert replayed(found, "pre.rate")["pre.rate"] == "3"


@pytest.mark.parametrize(
    "use",
    ["globals()['make_' + kind]()", "globals()[f'make_{kind}']()", "eval(f'make_{kind}')()", "globals()[wanted]()"],
)
@pytest.mark.parametrize("inside", [False, True])
def test_a_name_that_is_put_together_is_found(kernel: Kernel, replayed: Replayed, use: str, inside: bool) -> None:
    made = f"def build(): return {use}" if inside else f"value = {use}"
    kernel.cells(
        "def make_a(): return 1",
        "def make_b(): return 2",
        "kind, wanted = 'b', 'make_b'",
        made,
        "value = build()" if inside else "1 + 1",
        "fit(value)",
    )
    assert replayed(kernel.found(), "value") == {"value": "2"}
