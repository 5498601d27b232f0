"""What a loop of the user's reads: only the loop's own names, also of a cell that is compiled in one piece."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import pytest

from det_native.inspection.parts import names_looked_up
from det_native.proof.loop_code import bound_by, running_loop

BEFORE = "made = prepare(lambda: hidden)\nfor other in range(2):\n    early = other\n"
AFTER = "\nfinish(late, lambda: hidden)\n"
LOOPS = {
    "for": "for batch in batches():\n    total = batch * scale",
    "iterated later": "for place, batch in enumerate(later(batches)):\n    total = batch * scale",
    "epochs": "for epoch in range(2):\n    for batch in batches():\n        total = batch * scale + epoch",
    "inside": "for batch in [1, 2]:\n    batches()\n    total = batch * scale",
    "comprehension": "total = [batch * scale for batch in batches()]",
    "else": "for batch in batches():\n    total = batch * scale\nelse:\n    total = scale",
}


def look_at(source: str, *, in_one_piece: bool) -> tuple[frozenset[str], frozenset[str]]:
    """Run a cell; return which names its loop looks up, and which it binds."""
    looks: list[Any] = []

    def batches() -> list[int]:
        looks.append(running_loop())
        return [1]

    def later(make: Any) -> Iterator[int]:
        yield from make()

    names: dict[str, Any] = {"__name__": "__main__", "batches": batches, "later": later, "scale": 2}
    names |= {"prepare": bool, "finish": lambda *arguments: None, "hidden": 0, "late": 0}
    tree = ast.parse(source)
    pieces = [tree] if in_one_piece else [ast.Module([statement], []) for statement in tree.body]
    for piece in pieces:
        exec(compile(piece, "cell", "exec"), names)  # noqa: S102
    return names_looked_up(looks[0].__code__), bound_by(looks[0].__code__)


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_the_names_are_those_of_the_loop_however_its_cell_is_compiled(
    loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("det_native.proof.loop_code.is_users_module", lambda name: name == "__main__")
    read, bound = look_at(BEFORE + loop + AFTER, in_one_piece=True)
    assert (read, bound) == look_at(BEFORE + loop + AFTER, in_one_piece=False)
    assert {"batches", "scale"} <= read
    assert not {"prepare", "finish", "hidden", "late"} & read
    assert "total" in bound or loop == LOOPS["comprehension"]
    assert not {"made", "other", "early"} & bound
